"""The page's questions, answered by the public explainers: what a browser gets is what a call returns.

Answers are mappings that JSON can hold. Texts are written here, by the words of terminals and pages, so that
the page only places them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import narwhals as nw
import numpy as np

from limes._arrays import EXACT, Floats
from limes._diagnostics.diagnosis import diagnose
from limes._explainers.tables.model import TabularModel
from limes._explainers.tables.table import TableColumn
from limes._explainers.tabular import TabularExplainer
from limes._explanation import Explanation
from limes._explanation.json import jsonable
from limes._explanation.view import (
    OutputView,
    coefficient_texts,
    fidelity,
    main_output,
    meaning,
    method_line,
    output_title,
    view_row,
    with_outputs,
)
from limes._explanation.wording import CONFIDENCE, cell, number, one_line
from limes.designs._marginals import BinCells, Marginal
from limes.exceptions import InputError
from limes.models._calling.methods import MEMBERSHIP

# Rows that a search lists
_LISTED = 20
# Methods with a column a class or cluster, which has a name
_OF_CLASSES = ("predict_proba", "decision_function", MEMBERSHIP)


@dataclass(frozen=True, eq=False)
class Desk:
    """A model, its explainer, and the rows to start from.

    Attributes
    ----------
    explainer
        The explainer of tables.
    rows
        The table whose rows can be picked, with the background's columns.
    ids
        Names of its rows.
    rules
        Function from an output, as explainers accept it (None if there is one), to the explainer of its
        rules.
    start
        Position of the row that is picked first.
    """

    explainer: TabularExplainer
    rows: Any
    ids: Sequence[str]
    rules: Callable[[str | int | None], Any]
    start: int = 0

    def table(self) -> dict[str, Any]:
        """Return the data of the page: the columns' controls, the outputs, the row to start from."""
        explanation = self._first
        return {
            "model": one_line(str(explanation.provenance["model"])),
            "columns": [control.facts() for control in self._controls],
            "outputs": [output_title(explanation, k) for k in range(len(explanation.output_names))],
            "meaning": meaning(explanation),
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
        """Return a row's values, and the predictions of the model there."""
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
        """Return the explanation of a row with these values."""
        explanation = self._output(self._explanation(self._matrix(values)), output)
        view = view_row(explanation, 0, len(self._controls))
        (shown,) = view.outputs
        shared = 0 if explanation.shared_calls is None else int(explanation.shared_calls[0])
        return {
            "prediction": number(shown.prediction),
            "surrogate": number(shown.surrogate),
            "intercept": number(shown.intercept),
            "fidelity": fidelity(shown),
            "remark": shown.remark,
            "warnings": view.warnings,
            "method": method_line(explanation, explanation.model_calls, shared),
            "lines": _lines(shown, sampled=explanation.method == "sampled"),
            "numbers": jsonable(_numbers(shown)),
        }

    def rule(self, values: Any, output: Any) -> dict[str, Any]:
        """Return the short rule of a row with these values, and the sentences of its certificate."""
        matrix = self._matrix(values)
        self._check_output(output)
        explanation = self._rules_of(output)(self._cells(matrix), progress=False)
        view = view_row(explanation, 0, len(self._controls))
        return {"rule": view.rule, "certificate": view.certificate}

    def diagnosis(self, values: Any, output: Any) -> dict[str, Any]:
        """Return the diagnosis of the explanation of a row with these values."""
        explanation = self._output(self._explanation(self._matrix(values)), output)
        (row,) = diagnose(explanation, progress=False).rows
        findings = [
            {
                "kind": finding.kind,
                "severity": finding.severity,
                "sentence": one_line(finding.sentence),
                "advice": one_line(finding.advice),
            }
            for finding in row.findings
        ]
        return {"verdict": one_line(row.verdict), "findings": findings}

    @cached_property
    def _model(self) -> TabularModel:
        return self.explainer.model_at(self._native(self.start))[0]

    @cached_property
    def _controls(self) -> list[Control]:
        table, laws = self._model.table, self._model.family.marginals
        return [control_of(*parts) for parts in zip(table.columns, laws, table.matrix.T, strict=True)]

    @cached_property
    def _folded(self) -> list[str]:
        return [name.casefold() for name in self.ids]

    @cached_property
    def _first(self) -> Explanation:
        return self._explanation(self._encoded(self.start))

    def _rules_of(self, output: int) -> Any:
        """Return the explainer of an output's rules, cached: reading a model takes a while."""
        if output not in self._kept_rules:
            names, answer = self._first.output_names, self._first.provenance["answer"]
            by_name = answer in _OF_CLASSES
            chosen = None if len(names) == 1 else names[output] if by_name else output
            self._kept_rules[output] = self.rules(chosen)
        return self._kept_rules[output]

    @cached_property
    def _kept_rules(self) -> dict[int, Any]:
        return {}

    def _native(self, position: int) -> Any:
        if not 0 <= position < len(self.ids):
            raise InputError(f"row {position}: the table has {len(self.ids)} rows, counted from 0")
        return nw.from_native(self.rows, eager_only=True)[position : position + 1].to_native()

    def _encoded(self, position: int) -> Any:
        return self.explainer.model_at(self._native(position))[1]

    def _matrix(self, values: Any) -> Any:
        if not isinstance(values, list) or len(values) != len(self._controls):
            raise InputError(f"values must be a list of {len(self._controls)} numbers, one a column")
        pairs = zip(self._controls, values, strict=True)
        return np.array([[control.encoded(value) for control, value in pairs]])

    def _cells(self, matrix: Any) -> Any:
        """Return the user's values, which explainers accept like a frame, and process in less time."""
        return self._model.table.originals(matrix)

    def _explanation(self, matrix: Any) -> Explanation:
        return self.explainer(self._cells(matrix), progress=False)

    def _output(self, explanation: Explanation, output: Any) -> Explanation:
        self._check_output(output)
        return explanation[..., output]

    def _check_output(self, output: Any) -> None:
        count = len(self._first.output_names)
        if type(output) is not int or not 0 <= output < count:
            raise InputError(f"output {output!r}: send the position of an output, 0 to {count - 1}")


def _lines(view: OutputView, *, sampled: bool) -> list[dict[str, Any]]:
    """Return one line a column, in the table's order: bars in units of the prediction."""
    texts = coefficient_texts(view.lines, sampled=sampled)
    lines = {
        line.position: {
            "condition": line.condition,
            "data": line.data,
            "coefficient": text,
            "error": error,
            "bar": _finite(line.drawn),
            "reach": _finite(CONFIDENCE * line.drawn_error),
        }
        for line, (text, error) in zip(view.lines, texts, strict=True)
    }
    return [lines[position] for position in sorted(lines)]


def _numbers(view: OutputView) -> Mapping[str, Any]:
    """Return the numbers in full, coefficients in the table's order."""
    ordered = sorted(view.lines, key=lambda line: line.position)
    return {
        "prediction": view.prediction,
        "surrogate": view.surrogate,
        "intercept": view.intercept,
        "fidelity": view.fidelity,
        "values": [line.value for line in ordered],
        "standard_errors": [line.standard_error for line in ordered],
    }


def _finite(value: float) -> float:
    return value if np.isfinite(value) else 0.0


# -- controls of a column's value ----------------------------------------------------------------------------
# A value is sent as a number, as the position of a level, or as null where it is missing.

# A slider has about this many steps, each 1, 2 or 5 times a power of ten
_STEPS = 200


class Control(Protocol):
    """One column's control."""

    def facts(self) -> dict[str, Any]:
        """Return the facts from which the page draws the control."""
        ...

    def sent(self, value: float) -> float | None:
        """Return an encoded value as it is sent."""
        ...

    def encoded(self, value: Any) -> float:
        """Return the encoded value for a value that the page sent."""
        ...


@dataclass(frozen=True)
class Slider:
    """A number between the background's extremes; ``edges`` are the inner edges of its bins."""

    column: TableColumn
    low: float
    high: float
    step: float
    edges: tuple[float, ...]

    def facts(self) -> dict[str, Any]:
        return {
            "kind": "number",
            "name": one_line(self.column.name),
            "low": self.low,
            "high": self.high,
            "step": self.step,
            "edges": self.edges,
            "missing": self.column.missing,
        }

    def sent(self, value: float) -> float | None:
        return None if math.isnan(value) else value

    def encoded(self, value: Any) -> float:
        # the explainer checks whether it may be missing, or is too large
        if value is None:
            return math.nan
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"column {self.column.name!r}: send a number, or null if missing")
        if self.column.integer and abs(value) > EXACT:
            raise InputError(f"column {self.column.name!r}: send a whole number up to 2**53")
        try:
            return float(value)
        except OverflowError:
            raise InputError(f"column {self.column.name!r}: the number is larger than any float64") from None


@dataclass(frozen=True)
class Choice:
    """One of the background's levels."""

    column: TableColumn

    def facts(self) -> dict[str, Any]:
        return {
            "kind": "category",
            "name": one_line(self.column.name),
            "levels": [cell(level) for level in self.column.levels],
            "missing": self.column.missing,
        }

    def sent(self, value: float) -> float | None:
        return None if math.isnan(value) else int(self.column.places(np.array([value]))[0])

    def encoded(self, value: Any) -> float:
        name, count = self.column.name, len(self.column.levels)
        if value is None and self.column.missing:
            return math.nan
        if type(value) is not int or not 0 <= value < count:
            allowed = " or null" if self.column.missing else ""
            raise InputError(f"column {name!r}: send the position of a level, 0 to {count - 1}{allowed}")
        return float(self.column.points[value])


def control_of(column: TableColumn, marginal: Marginal, values: Floats) -> Control:
    """Return the control of a column with these background values (n,)."""
    if column.categorical:
        return Choice(column)
    cells = marginal.cells
    edges = cells.edges[1:-1].tolist() if isinstance(cells, BinCells) else []
    numbers = values[~np.isnan(values)]
    low, high, whole = float(numbers.min()), float(numbers.max()), bool((numbers % 1 == 0).all())
    return Slider(column, low, high, _step(low, high, whole=whole), tuple(edges))


def _step(low: float, high: float, *, whole: bool) -> float:
    """Return the smallest of 1, 2, 5, 10, ... times a power of ten that makes few enough steps."""
    rough = (high / _STEPS - low / _STEPS) or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * (1 - 1e-9))
    return max(step, 1.0) if whole else step
