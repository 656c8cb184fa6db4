"""Contributions of a change of models: against Shapley values of the difference of both answers.

The older model is the same one, fitted to the targets in the reverse order. The games are those of
`accounts`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

import limes
from fuzz.accounts import AccountCase, AccountTrial
from fuzz.answers import EXACT, Answers, answers_of
from fuzz.cuts import cuts_of
from fuzz.options import Options

Array = Any
# Rounding of one model's answers in double precision, relative to the largest
_ROUNDING = 1e-14


@dataclass(frozen=True)
class ModelChangeCase(AccountCase):
    """A case of a table whose model is compared with another."""

    prints: ClassVar[str] = (
        "*[getattr(limes.between_models(old, explanation.explainer, explanation.data.tolist())"
        ".contributions, name).tolist() for name in ('values', 'alone', 'last', 'base_values')]"
    )

    def run(self) -> ModelChangeTrial:
        """Run the case's script."""
        return ModelChangeTrial.of(self)


class ModelChangeTrial(AccountTrial):
    """A case that was run."""

    old: Any = None

    @classmethod
    def of(cls, case: Any) -> ModelChangeTrial:
        trial = super().of(case)
        trial.old = case.setup.run()["old"]
        d = trial.background.matrix.shape[1]
        if case.shape == "steps":
            cuts = cuts_of(trial.old, d)
        elif case.kinks is not None:
            cuts = case.kinks(trial.old)
        else:
            cuts = trial.cuts
        trial.cuts = [np.union1d(a, b) for a, b in zip(trial.cuts, cuts, strict=True)]
        return trial

    def _explained(self, options: Options, tables: Any) -> Any:
        return limes.between_models(self.old, self.explainer(options), tables)

    def _answers(self, options: Options, sample: Any) -> Answers:
        """How the difference of both models' answers is got."""
        new, old = (answers_of(model, options.output, sample) for model in (self.model, self.old))

        def change(table: Any) -> Array:
            return new.ask(table) - old.ask(table)

        def tolerance(of_new: float, of_old: float) -> float:
            """Each model's answers are rounded, however small their difference."""
            larger = max(of_new, of_old)
            most, least = np.abs([new.ask(sample), old.ask(sample)]).max(), np.abs(change(sample)).max()
            if not least:
                return larger
            cancels = max(1.0, float(most / least))
            return max(larger, _ROUNDING * cancels) if larger == EXACT else larger * cancels

        return replace(
            new, ask=change, slope=tolerance(new.slope, old.slope), level=tolerance(new.level, old.level)
        )
