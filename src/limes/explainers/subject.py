"""The model that is explained: what it is asked, what could be read off it, and why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.expectations.controls.control import Control
from limes.expectations.controls.margin import margin
from limes.expectations.sampling import Sampling
from limes.explainers.sampling import controls_of
from limes.explainers.table import Table
from limes.models.asking import answer_of
from limes.models.outputs import Asker, Output, resolve
from limes.models.read import check_against, read_output, tolerance_of
from limes.models.reductions import BlackBox
from limes.models.registry import EXACT_TOLERANCE, SINGLE_TOLERANCE
from limes.models.trees import Forest
from limes.pipeline import Expectation, exact_expectation, expectation_of

# A reading is compared with the model's own predictions on so many background rows.
_CHECKED_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Subject:
    """A model as the pipeline wants it.

    Attributes
    ----------
    predict
        (n, d) -> (n,) or (n, k), the model's own answers, or those of its form where they are the same.
    predict_steadily
        The same, where a row's answer does not depend on the rows beside it, to the last bit: a model may add
        up many rows in another order than few.
    expectation
        Exact or sampled.
    outputs
        Names of the outputs.
    answer
        Method of the model, "call" where it is called itself.
    reason
        Why it is sampled; "" where exact.
    """

    predict: Callable[[Floats], Floats]
    predict_steadily: Callable[[Floats], Floats]
    expectation: Expectation
    outputs: tuple[str, ...]
    answer: str
    reason: str

    @classmethod
    def of(
        cls, model: Any, output: Any, table: Table, *, method: str, sampling: Sampling, control: str
    ) -> Subject:
        """Ask the model, read it, and compare what was read with what it says.

        Raises
        ------
        InputError, ModelError, NotReadableError, ReadMismatchError
            As :class:`limes.TabularExplainer` says.
        """
        wanted = resolve(model, output)
        ask = Asker(model, wanted, table.decode)
        # asked before it is read: a model that is not fitted, or fails on this table, says so itself
        outputs = wanted.names(ask(table.matrix[:2]).shape[1:])
        form = read_output(model, wanted, table.decode, schema=table.schema)
        controls = controls_of(control, _margin_of(model, wanted, table))
        expectation = expectation_of(form, ask, method=method, sampling=replace(sampling, controls=controls))
        predict: Callable[[Floats], Floats] = ask
        steadily: Callable[[Floats], Floats] = partial(_one_by_one, ask)
        reason = "asked for by method='sampled'"
        if isinstance(form, BlackBox):
            reason = form.reason
        elif expectation.method == "exact":
            tolerance = _tolerance(model, table)
            check_against(ask, form, _some_rows(table.matrix), tolerance=tolerance)
            predict, reason = form.predict if tolerance <= EXACT_TOLERANCE else ask, ""
            # trees are added up row by row, by every library
            steadily = predict if isinstance(form, Forest) else form.predict
        return cls(predict, steadily, expectation, outputs, wanted.method or "call", reason)


def _one_by_one(ask: Callable[[Floats], Floats], rows: Floats) -> Floats:
    return np.concatenate([ask(rows[i : i + 1]) for i in range(len(rows))])


def _margin_of(model: Any, wanted: Output, table: Table) -> Control | None:
    """The control made of the sum behind a model's probabilities, or behind a link; None if not read."""
    if wanted.method not in ("predict", "predict_proba") or answer_of(model, "decision_function") is None:
        return None
    try:
        form = read_output(model, resolve(model, "margin"), table.decode, schema=table.schema)
    except InputError:
        return None
    return None if isinstance(form, BlackBox) else margin(form.predict, exact_expectation(form))


def _tolerance(model: Any, table: Table) -> float:
    single = any(column.dtype == np.float32 for column in table.columns)
    return max(tolerance_of(model), SINGLE_TOLERANCE if single else 0.0)


def _some_rows(matrix: Floats) -> Floats:
    """Rows to compare a reading on: up to 1000, evenly spread, and one missing value in each column."""
    spread = np.linspace(0, len(matrix) - 1, min(_CHECKED_ROWS, len(matrix))).astype(np.int64)
    missing = np.isnan(matrix)
    rows = np.union1d(spread, missing.argmax(axis=0)[missing.any(axis=0)])
    return np.asarray(matrix[rows])
