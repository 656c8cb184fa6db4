"""Encoders of scikit-learn as codebooks of categories, and its discretiser as bins of a number.

Every encoder is a codebook: a code for each category of training, one for a missing value, and one for any
other category, or its refusal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models._folding.feature_maps import MonotoneMap, StepMap, Values, is_blank, numbers
from limes.models._folding.operations import Codebook, ModelColumn, Pointwise
from limes.models._reading import CannotRead
from limes.models.readers.sklearn_transformers import StepColumns

# The slot of a category without a column
_NOWHERE = -1.0


@dataclass(frozen=True)
class _Categories:
    """Categories of one column in their order, and the position of the missing value among them, if any."""

    values: list[Any]
    missing: int | None

    @classmethod
    def from_array(cls, categories: Any) -> _Categories:
        values = np.asarray(categories).tolist()
        blank = [i for i, value in enumerate(values) if is_blank(value)]
        if len(blank) > 1:
            raise CannotRead(
                "it distinguishes None from NaN in one column, and limes takes both as missing; use one of "
                "them"
            )
        return cls(values, blank[0] if blank else None)

    def position(self, value: Any) -> int:
        """The position of a category."""
        if is_blank(value) and self.missing is not None:
            return self.missing
        return self.values.index(value)

    def codebook(self, codes: Sequence[float], *, other: float | None) -> Codebook:
        """A code for each category; a missing value that is not among them counts as any other value."""
        by_value = {
            v: float(c) for i, (v, c) in enumerate(zip(self.values, codes, strict=True)) if i != self.missing
        }
        return Codebook(by_value, other if self.missing is None else float(codes[self.missing]), other)

    def grouped(self, infrequent: Any, left_out: int | None = None) -> list[float]:
        """0, 1, ... for frequent categories in their order, the next number for all infrequent ones.

        ``left_out`` is the position of a category without a number.
        """
        rare = set() if infrequent is None else {self.position(v) for v in np.asarray(infrequent).tolist()}
        frequent = [i for i in range(len(self.values)) if i not in rare and i != left_out]
        code = {position: float(number) for number, position in enumerate(frequent)}
        return [code.get(i, float(len(frequent))) for i in range(len(self.values))]


def one_hot_encoder(step: Any, columns: StepColumns) -> StepColumns:
    """A column for each category that is neither dropped nor in the common column of infrequent ones."""
    columns.expect(len(step.categories_))
    dropped = [None] * len(step.categories_) if step.drop_idx_ is None else step.drop_idx_
    outputs: list[ModelColumn] = []
    for column, values, rare, drop in zip(
        columns.columns, step.categories_, _infrequent(step), dropped, strict=True
    ):
        categories = _Categories.from_array(values)
        slots = categories.grouped(rare)
        unknown = _look_up(_one_hot_unknown(slots, rare), step.handle_unknown)
        if drop is not None:
            dropped_slot = slots[int(drop)]
            unknown = None if unknown is None else _without(unknown, dropped_slot)
            slots = [_without(slot, dropped_slot) for slot in slots]
        outputs += _flags(column.then(categories.codebook(slots, other=unknown)), int(max(slots)) + 1)
    return StepColumns(tuple(outputs), bool(step.sparse_output))


def _one_hot_unknown(slots: list[float], rare: Any) -> Mapping[str, float | None]:
    shared = _NOWHERE if rare is None else max(slots)
    return {"error": None, "ignore": _NOWHERE, "infrequent_if_exist": shared, "warn": shared}


def _without(slot: float, dropped: float) -> float:
    return _NOWHERE if slot == dropped else slot - (slot > dropped)


def _flags(column: ModelColumn, count: int) -> list[ModelColumn]:
    """One column for each slot: 1 in it, 0 elsewhere."""

    def flag(slot: int) -> Pointwise:
        return Pointwise(lambda values: _is_slot(numbers(values), slot))

    return [column.then(flag(slot)) for slot in range(count)]


def _is_slot(values: Floats, slot: int) -> Values:
    flags: Values = values == slot
    undefined = np.isnan(values)
    return np.where(undefined, np.nan, flags) if undefined.any() else flags


def ordinal_encoder(step: Any, columns: StepColumns) -> StepColumns:
    """The number of a category; separate codes for NaN and for unknown categories."""
    unknown = _look_up({"error": None, "use_encoded_value": step.unknown_value}, step.handle_unknown)
    codebooks = []
    for values, rare in zip(step.categories_, _infrequent(step), strict=True):
        categories = _Categories.from_array(values)
        missing = categories.missing if categories.missing is not None and values[-1] is not None else None
        codes = categories.grouped(rare, left_out=missing)
        if missing is not None:
            codes[missing] = float(step.encoded_missing_value)
        codebooks.append(categories.codebook(codes, other=None if unknown is None else float(unknown)))
    return StepColumns(columns.each(codebooks).columns)


def target_encoder(step: Any, columns: StepColumns) -> StepColumns:
    """The mean target of a category, or of all rows if unknown; a column for each of several classes."""
    columns.expect(len(step.categories_))
    unknown = np.atleast_1d(np.asarray(step.target_mean_, dtype=np.float64))
    outputs = []
    for j, (column, values) in enumerate(zip(columns.columns, step.categories_, strict=True)):
        categories = _Categories.from_array(values)
        for k, mean in enumerate(unknown):
            codes = step.encodings_[j * unknown.size + k].tolist()
            outputs.append(column.then(categories.codebook(codes, other=float(mean))))
    return StepColumns(tuple(outputs))


def k_bins_discretizer(step: Any, columns: StepColumns) -> StepColumns:
    """The bin [edge, next edge) of a number, or a column for each bin."""
    single = MonotoneMap(lambda values: numbers(values).astype(np.float32).astype(np.float64))
    outputs: list[ModelColumn] = []
    columns.expect(len(step.bin_edges_))
    for column, edges, count in zip(columns.columns, step.bin_edges_, step.n_bins_.tolist(), strict=True):
        inner = np.asarray(edges[1:-1], dtype=np.float64)
        bins = StepMap(np.nextafter(inner, -np.inf), np.arange(inner.size + 1.0), np.nan)
        binned = (column.then(single) if step.dtype is np.float32 else column).then(bins)
        outputs += [binned] if step.encode == "ordinal" else _flags(binned, count)
    return StepColumns(tuple(outputs), step.encode == "onehot")


def _infrequent(step: Any) -> Sequence[Any]:
    if step.min_frequency is None and step.max_categories is None:
        return [None] * len(step.categories_)
    rare: Sequence[Any] = step.infrequent_categories_
    return rare


def _look_up(choices: Mapping[str, Any], choice: str) -> Any:
    if choice not in choices:
        raise CannotRead(f"limes does not know handle_unknown={choice!r}")
    return choices[choice]
