"""The page's questions, answered by the public explainers: what a browser gets is what a call returns.

Answers are mappings that JSON can hold. Texts are written here, by the words of terminals and pages, so that
the page only places them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from limes._arrays import EXACT, Floats
from limes._diagnostics.diagnosis import diagnose
from limes._explainers.tables.columns import TableColumn
from limes._explainers.tables.model import TabularModel
from limes._explainers.tabular import TabularExplainer
from limes._explanation import Explanation
from limes._explanation.fit import account_at
from limes._explanation.json import jsonable
from limes._explanation.view import (
    main_output,
    meaning,
    output_title,
    usual_is,
    view_row,
    with_outputs,
)
from limes._explanation.wording import cell, number, one_line
from limes.designs._marginals import BinCells, Marginal
from limes.exceptions import InputError
from limes.models._calling.outputs import MEMBERSHIP

# Rows that a search lists
_LISTED = 20
# Methods with a column a class or cluster, which has a name
_OF_CLASSES = ("predict_proba", "decision_function", MEMBERSHIP)


@dataclass(frozen=True, eq=False)
class WhatIfSession:
    """A model, its explainer, and the rows to start from."""

    explainer: TabularExplainer
    rows: Any  # the table whose rows can be picked, with the background's columns
    ids: Sequence[str]
    # from an output, as explainers accept it (None if there is one), to the explainer of its rules
    rules: Callable[[str | int | None], Any]
    start: int = 0  # position of the row that is picked first
    # explainers of rules by output: reading a model takes a while
    _kept_rules: dict[int, Any] = field(default_factory=dict, init=False)

    def table(self) -> dict[str, Any]:
        explanation = self._first
        return {
            "model": one_line(str(explanation.provenance["model"])),
            "columns": [control.facts() for control in self._controls],
            "outputs": [output_title(explanation, k) for k in range(len(explanation.output_names))],
            "meaning": meaning(explanation),
            "usual": usual_is(explanation),
            "accounts": account_at(explanation, [0]) is not None,
            "rows": len(self.ids),
            "start": self.start,
        }

    def search(self, text: str) -> list[dict[str, Any]]:
        """Return rows by their names: the name itself, names that start with the text, names that have it."""
        wanted = text.strip().casefold()
        ranked = sorted(
            (name != wanted, not name.startswith(wanted), row)
            for row, name in enumerate(self._folded)
            if wanted in name
        )
        return [{"row": row, "id": self.ids[row]} for *_, row in ranked[:_LISTED]]

    def row(self, position: int) -> dict[str, Any]:
        matrix = self._encoded(position)
        explanation = self._explanation(matrix)
        pairs = zip(self._controls, matrix[0].tolist(), strict=True)
        return {
            "row": position,
            "id": self.ids[position],
            "values": [control.sent(value) for control, value in pairs],
            "predictions": [number(p) for p in with_outputs(explanation.predictions, explanation)[0]],
            "output": main_output(explanation, 0),
        }

    def explain(self, values: Any, output: Any) -> dict[str, Any]:
        explanation = self._explained(values, output)
        view = view_row(explanation, 0, len(self._controls), account=account_at(explanation, [0]))
        (shown,) = view.outputs
        texts = shown.texts() if shown.base is None else shown.account_texts()[0]
        # in the table's order
        ordered = sorted(zip(shown.lines, texts, strict=False), key=lambda each: each[0].position)
        numbers: dict[str, Any] = {
            "base": shown.base,
            "prediction": shown.prediction,
            "values": [line.value for line, _ in ordered],
            "standard_errors": [line.standard_error for line, _ in ordered],
        }
        if shown.base is None:
            numbers |= {name: getattr(shown, name) for name in ("surrogate", "intercept", "fidelity")}
            facts = {name: number(numbers[name]) for name in ("surrogate", "intercept")}
        else:
            facts = {"surrogate": "", "intercept": ""}
        return {
            "prediction": number(shown.prediction),
            **facts,
            "fidelity": shown.r2,
            "headline": "" if shown.base is None else shown.headline,
            "remark": shown.remark if shown.base is None else "",
            "warnings": view.warnings,
            "method": view.method,
            "lines": [
                {
                    "condition": line.named,
                    "data": line.data,
                    "text": text,
                    "error": error,
                    # bars in units of the prediction
                    "bar": line.drawn if np.isfinite(line.drawn) else 0.0,
                    "reach": line.reach,
                }
                for line, (text, error) in ordered
            ],
            "numbers": jsonable(numbers),
        }

    def rule(self, values: Any, output: Any) -> dict[str, Any]:
        matrix = self._matrix(values, output)
        explanation = self._rules_of(output)(self._cells(matrix), progress=False)
        view = view_row(explanation, 0, len(self._controls))
        return {"rule": view.rule, "certificate": view.certificate}

    def diagnosis(self, values: Any, output: Any) -> dict[str, Any]:
        explanation = self._explained(values, output)
        (row,) = diagnose(explanation, progress=False).rows
        names = ("title", "severity", "sentence", "advice")
        findings = [{name: one_line(getattr(finding, name)) for name in names} for finding in row.findings]
        return {"verdict": one_line(row.verdict), "findings": findings}

    @cached_property
    def _model(self) -> TabularModel:
        return self.explainer._model_at(self._native(self.start))[0]  # noqa: SLF001

    @cached_property
    def _controls(self) -> list[Control]:
        table, laws = self._model.table, self._model.family.marginals
        return [
            Control.from_column(*parts) for parts in zip(table.columns, laws, table.matrix.T, strict=True)
        ]

    @cached_property
    def _folded(self) -> list[str]:
        return [name.casefold() for name in self.ids]

    @cached_property
    def _first(self) -> Explanation:
        return self._explanation(self._encoded(self.start))

    def _rules_of(self, output: int) -> Any:
        if output not in self._kept_rules:
            names, answer = self._first.output_names, self._first.provenance["answer"]
            by_name = answer in _OF_CLASSES
            chosen = None if len(names) == 1 else names[output] if by_name else output
            self._kept_rules[output] = self.rules(chosen)
        return self._kept_rules[output]

    def _native(self, position: int) -> Any:
        if not 0 <= position < len(self.ids):
            raise InputError(f"row {position}: the table has {len(self.ids)} rows, counted from 0")
        return nw.from_native(self.rows, eager_only=True)[position : position + 1].to_native()

    def _encoded(self, position: int) -> Any:
        return self.explainer._model_at(self._native(position))[1]  # noqa: SLF001

    def _matrix(self, values: Any, output: Any) -> Any:
        """Return the values as a row of the table, after a check of the question."""
        if not isinstance(values, list) or len(values) != len(self._controls):
            raise InputError(f"values must be a list of {len(self._controls)} numbers, one a column")
        count = len(self._first.output_names)
        if type(output) is not int or not 0 <= output < count:
            raise InputError(f"output {output!r}: send the position of an output, 0 to {count - 1}")
        pairs = zip(self._controls, values, strict=True)
        return np.array([[control.encoded(value) for control, value in pairs]])

    def _cells(self, matrix: Any) -> Any:
        """Return the user's values, which explainers accept like a frame, and process in less time."""
        return self._model.table.originals(matrix)

    def _explanation(self, matrix: Any) -> Explanation:
        return self.explainer(self._cells(matrix), progress=False)

    def _explained(self, values: Any, output: Any) -> Explanation:
        return self._explanation(self._matrix(values, output))[..., output]


# -- controls of a column's value ----------------------------------------------------------------------------
# A value is sent as a number, as the position of a level, or as null where it is missing.

# A slider has about this many steps, each 1, 2 or 5 times a power of ten
_STEPS = 200


@dataclass(frozen=True)
class Control:
    """One column's control: a slider between the background's extremes, or a choice of its levels."""

    column: TableColumn
    range: Mapping[str, Any]  # extremes, step and inner edges of bins; or the levels

    @classmethod
    def from_column(cls, column: TableColumn, marginal: Marginal, values: Floats) -> Control:
        """Return the control of a column with these background values (n,)."""
        if column.categorical:
            return cls(column, {"levels": [cell(level) for level in column.levels]})
        cells, numbers = marginal.cells, values[~np.isnan(values)]
        low, high, whole = float(numbers.min()), float(numbers.max()), bool((numbers % 1 == 0).all())
        edges = cells.edges[1:-1] if isinstance(cells, BinCells) else np.zeros(0)
        step = _step(low, high, whole=whole)
        sent = {"low": low, "high": high, "step": step, "edges": edges.tolist()}
        quantity = column.quantity
        if quantity is not None and quantity.has_texts:  # dates are shown, not numbers of days
            steps = np.clip(np.arange(round(low / step), round(high / step) + 1) * step, low, high)
            sent["texts"], sent["marks"] = (
                quantity.texts(x, values) if x.size else [] for x in (steps, edges)
            )
        return cls(column, sent)

    def facts(self) -> dict[str, Any]:
        column = self.column
        kind = "category" if column.categorical else "number"
        return {"kind": kind, "name": one_line(column.name), **self.range, "missing": column.missing}

    def sent(self, value: float) -> float | None:
        if math.isnan(value):
            return None
        return int(self.column.places(np.array([value]))[0]) if self.column.categorical else value

    def encoded(self, value: Any) -> float:
        column, levels = self.column, len(self.column.levels)
        # of a number the explainer checks whether it may be missing, or is too large
        if value is None and (column.missing or not column.categorical):
            return math.nan
        if column.categorical:
            if type(value) is not int or not 0 <= value < levels:
                allowed = " or null" if column.missing else ""
                what = f"the position of a level, 0 to {levels - 1}{allowed}"
                raise InputError(f"column {column.name!r}: send {what}")
            return float(column.points[value])
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"column {column.name!r}: send a number, or null if missing")
        if column.integer and abs(value) > EXACT:
            raise InputError(f"column {column.name!r}: send a whole number up to 2**53")
        try:
            return float(value)
        except OverflowError:
            raise InputError(f"column {column.name!r}: the number is larger than any float64") from None


def _step(low: float, high: float, *, whole: bool) -> float:
    """Return the smallest of 1, 2, 5, 10, ... times a power of ten that makes few enough steps."""
    rough = (high / _STEPS - low / _STEPS) or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * (1 - 1e-9))
    return max(step, 1.0) if whole else step
