"""limes' explanations with lime's names of features, outputs or conditions, which can still be diagnosed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from limes._diagnostics.finding import row_outputs

if TYPE_CHECKING:
    from limes._arrays import Ints
    from limes._diagnostics.context import DiagnosticContext
    from limes._explanation import Explanation


def renamed(explanation: Explanation, **names: Any) -> Explanation:
    """Replace names of features, outputs or conditions; ``limes.diagnose`` works as before."""
    explainer = explanation.explainer
    if explainer is not None:
        explainer = RenamedExplainer(explainer, explanation.feature_names, explanation.output_names)
    return replace(explanation, **names, explainer=explainer)


@dataclass(frozen=True, eq=False)
class RenamedExplainer:
    """An explainer with its names of features and outputs, for explanations in which they were replaced."""

    explainer: Any
    features: tuple[str, ...]
    outputs: tuple[str, ...]

    def diagnostic_context(
        self, explanation: Explanation, *, output: Ints, calls: int | None
    ) -> DiagnosticContext:
        """The explainer's diagnostic context, with the names of the explanation."""
        original = replace(
            explanation, feature_names=self.features, output_names=self.outputs, explainer=self.explainer
        )
        context: DiagnosticContext = self.explainer.diagnostic_context(original, output=output, calls=calls)
        return replace(context, row_outputs=row_outputs(explanation, output))
