"""One output of one explained row: what all diagnostics read off the explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.explanation import Explanation
from limes.explanation.selection import name_positions

# Relative rounding error of predictions
ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class RowOutput:
    """One output of one explained row; values and errors are (d,)."""

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
        """Largest coefficient that rounding may cause where the model does not vary."""
        return ROUNDING * max(abs(self.prediction), abs(self.intercept), abs(self.surrogate))


def row_outputs(explanation: Explanation, output: Ints) -> tuple[RowOutput, ...]:
    """Return the part of an explanation that is about each row's output, given by its position (n,)."""
    n = len(explanation)
    values, errors = (a.reshape(n, a.shape[1], -1) for a in (explanation.values, explanation.standard_errors))

    def entry(array: Any, i: int) -> float:
        return 0.0 if array is None else float(array.reshape(n, -1)[i, output[i]])

    return tuple(
        RowOutput(
            names=explanation.feature_names,
            conditions=explanation.conditions[i],
            output=explanation.output_names[output[i]],
            values=values[i, :, output[i]],
            errors=errors[i, :, output[i]],
            intercept=entry(explanation.intercepts, i),
            prediction=entry(explanation.predictions, i),
            surrogate=entry(explanation.surrogate_predictions, i),
            surrogate_error=entry(explanation.surrogate_errors, i),
            fidelity=entry(explanation.fidelity, i),
            fidelity_error=entry(explanation.fidelity_errors, i),
        )
        for i in range(n)
    )


def output_positions(explanation: Explanation, output: str | int | None) -> Ints:
    """Return the position of each row's output, (n,): of `output`, or of the largest prediction if None."""
    predictions = explanation.predictions.reshape(len(explanation), -1)
    if output is None:
        return np.asarray(predictions.argmax(axis=1))
    (position,) = name_positions(output, explanation.output_names, "output")
    return np.full(len(explanation), position)
