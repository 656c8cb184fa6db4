"""One output of one row, as the explanation has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limes._arrays import Floats, Ints
from limes.explanation import Explanation

# Of the model's answers
ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """One output of one explained row, as the explanation has it; values and errors are (d,)."""

    names: tuple[str, ...]
    conditions: tuple[str, ...]
    output: str
    values: Floats
    errors: Floats
    intercept: float
    prediction: float
    surrogate: float
    surrogate_error: float
    fidelity: float
    fidelity_error: float

    @property
    def rounding(self) -> float:
        """What coefficients of a model that does not vary may come to."""
        return ROUNDING * max(abs(self.prediction), abs(self.intercept), abs(self.surrogate))


def facts_of(explanation: Explanation, output: Ints) -> tuple[Facts, ...]:
    """What the explanation says of each row, for the output that was chosen."""
    n = len(explanation)
    values, errors = (a.reshape(n, a.shape[1], -1) for a in (explanation.values, explanation.standard_errors))

    def of(array: Any, i: int) -> float:
        return 0.0 if array is None else float(array.reshape(n, -1)[i, output[i]])

    return tuple(
        Facts(
            names=explanation.feature_names,
            conditions=explanation.conditions[i],
            output=explanation.output_names[output[i]],
            values=values[i, :, output[i]],
            errors=errors[i, :, output[i]],
            intercept=of(explanation.intercepts, i),
            prediction=of(explanation.predictions, i),
            surrogate=of(explanation.surrogate_predictions, i),
            surrogate_error=of(explanation.surrogate_errors, i),
            fidelity=of(explanation.fidelity, i),
            fidelity_error=of(explanation.fidelity_errors, i),
        )
        for i in range(n)
    )
