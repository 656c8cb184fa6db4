"""limes' explanations in lime's words, for which their explainer can still be asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from limes.diagnostics.row_output import row_outputs

if TYPE_CHECKING:
    from limes._arrays import Ints
    from limes.diagnostics.context import DiagnosticContext
    from limes.explanation import Explanation

__all__ = ["Renamed", "renamed"]


def renamed(explanation: Explanation, **names: Any) -> Explanation:
    """Give it other names of features, outputs or conditions; ``limes.diagnose`` works as before."""
    maker = explanation.explainer
    if maker is not None:
        maker = Renamed(maker, explanation.feature_names, explanation.output_names)
    return replace(explanation, **names, explainer=maker)


@dataclass(frozen=True, eq=False)
class Renamed:
    """An explainer, which knows features and outputs by these names, of an explanation with others."""

    explainer: Any
    features: tuple[str, ...]
    outputs: tuple[str, ...]

    def diagnostic_context(
        self, explanation: Explanation, *, output: Ints, calls: int | None
    ) -> DiagnosticContext:
        """The explainer's diagnostic context, with the names of the explanation."""
        own = replace(
            explanation, feature_names=self.features, output_names=self.outputs, explainer=self.explainer
        )
        context: DiagnosticContext = self.explainer.diagnostic_context(own, output=output, calls=calls)
        return replace(context, row_outputs=row_outputs(explanation, output))
