"""One row of an explanation as people look at it: sorted, in words, one part an output.

Terminal, HTML and plots all draw a `RowView`; none of them indexes arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limes.show.wording import cell, count, error, number, one_line

if TYPE_CHECKING:
    from limes._arrays import Floats
    from limes.explanation import Explanation

MEANING = "change of the surrogate when the condition holds against when it does not"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One feature of one output: what holds, the row's own value, its coefficient."""

    position: int
    feature: str
    condition: str
    data: str
    value: float
    standard_error: float


@dataclass(frozen=True, kw_only=True)
class OutputView:
    """One output of one row; its lines by falling size of the coefficient."""

    name: str
    prediction: float
    surrogate: float
    intercept: float
    fidelity: float
    fidelity_error: float
    lines: tuple[Line, ...]
    left_out: int

    @property
    def difference(self) -> float:
        """What the surrogate misses at this very row."""
        return self.prediction - self.surrogate


@dataclass(frozen=True, kw_only=True)
class RowView:
    """One row: its outputs and how sure its numbers are."""

    number: int
    outputs: tuple[OutputView, ...]
    calls: int
    warnings: tuple[str, ...]


def with_outputs(array: Floats, explanation: Explanation) -> Floats:
    """Return the array with a last axis of outputs, of length one for a single output."""
    return array[..., None] if explanation.values.ndim == 2 else array


def view_row(explanation: Explanation, row: int, max_features: int) -> RowView:
    """Return one row with at most `max_features` lines an output."""
    outputs = range(len(explanation.output_names))
    return RowView(
        number=row,
        outputs=tuple(_view_output(explanation, row, k, max_features) for k in outputs),
        calls=int(explanation.calls[row]),
        warnings=_warnings(explanation, row),
    )


def _view_output(explanation: Explanation, row: int, output: int, limit: int) -> OutputView:
    values = with_outputs(explanation.values, explanation)[row, :, output]
    order = by_size(np.abs(values))[:limit]

    def of_row(array: Floats) -> float:
        return float(with_outputs(array, explanation)[row, output])

    return OutputView(
        name=one_line(explanation.output_names[output]),
        prediction=of_row(explanation.predictions),
        surrogate=of_row(explanation.surrogate_predictions),
        intercept=of_row(explanation.intercepts),
        fidelity=of_row(explanation.fidelity),
        fidelity_error=0.0 if explanation.fidelity_errors is None else of_row(explanation.fidelity_errors),
        lines=tuple(_view_line(explanation, row, int(j), output) for j in order),
        left_out=len(values) - len(order),
    )


def _view_line(explanation: Explanation, row: int, feature: int, output: int) -> Line:
    at = (row, feature, output)
    return Line(
        position=feature,
        feature=one_line(explanation.feature_names[feature]),
        condition=one_line(explanation.conditions[row][feature]),
        data=cell(explanation.data[row, feature]),
        value=float(with_outputs(explanation.values, explanation)[at]),
        standard_error=float(with_outputs(explanation.standard_errors, explanation)[at]),
    )


def by_size(sizes: Floats) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return positions by falling size, ties in their given order, nan last."""
    return np.argsort(-np.where(np.isnan(sizes), -np.inf, sizes), kind="stable")


def largest_output(explanation: Explanation, row: int) -> int:
    """Return the position of the output with the largest prediction for this row."""
    predictions = with_outputs(explanation.predictions, explanation)[row]
    return int(by_size(predictions)[0])


def _warnings(explanation: Explanation, row: int) -> tuple[str, ...]:
    told = tuple(one_line(warning) for warning in explanation.row_warnings[row])
    if explanation.row_converged[row]:
        return told
    calls = count(int(explanation.calls[row]), "model call")
    return (f"The tolerance was not reached within {calls}: the errors are larger than asked.", *told)


def method_line(explanation: Explanation, calls: int) -> str:
    """Say how the numbers came about: exact, or sampled with how many calls and why."""
    spent = count(calls, "model call")
    if explanation.method == "exact":
        how = one_line(explanation.reason) or "read off the model"
        return f"exact: {how}, no sampling ({spent})"
    why = f", because {one_line(explanation.reason)}" if explanation.reason else ""
    return f"sampled with {spent}{why}"


def meaning(explanation: Explanation) -> str:
    """Say what a coefficient is; designs without conditions say it in provenance["meaning"]."""
    return one_line(str(explanation.provenance.get("meaning", MEANING)))


def headline(view: OutputView) -> str:
    """Say prediction and surrogate of one output in a line."""
    return f"prediction {number(view.prediction)}, surrogate {number(view.surrogate)}"


def fidelity(view: OutputView) -> str:
    """Write R² with its error if it has one; "" where nobody asked for it."""
    if not np.isfinite(view.fidelity):
        return ""
    uncertain = f" {error(view.fidelity_error)}" if view.fidelity_error > 0 else ""
    return f"{number(view.fidelity, 3)}{uncertain}"
