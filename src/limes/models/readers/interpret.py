"""Explainable boosting machines of interpret: sums of tables over bins of one, two or more columns.

A term is a table of scores. Bins of a number are steps, categories are looked up; entry 0 of an axis is for
missing values, the last one for categories unseen in training. A term of one column is a step or a lookup. A
term of several columns, T[a, b] where x is in bin a and y in bin b, is Σ_a 1[x in bin a] T[a, bin of y]: as
many products as all columns but one have bins. Interactions of one order share their bins, so that many of
them are one sum of products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import Floats
from limes._functions import Function, Lookup, Step
from limes.exceptions import InputError
from limes.models._algebra import combine
from limes.models._reading import CannotRead, Schema
from limes.models.forms._base import Form, Reduced, Sum, SumOfProducts
from limes.models.forms._linked import Linked
from limes.models.readers.links import with_probabilities

# Interpret writes larger numbers sometimes with an exponent, sometimes in full.
_LARGEST_CATEGORY = 1e15
# Scores of one sum of products: 32 MB
_BLOCK = 4_000_000
_SCORED = ("logit", "mlogit", "vlogit")


@with_probabilities("effects", scale=lambda model: float(model.link_ == "mlogit"))
def machine(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """Predictions of the regressor with identity or log link, margin of the classifier."""
    name, link = type(model).__name__, model.link_
    if hasattr(model, "classes_"):
        if link not in _SCORED:
            raise CannotRead(f"{name} with link {link!r} has no margin that is a sum of effects")
    elif link not in ("identity", "log"):
        raise CannotRead(
            f"{name} with link {link!r} predicts a curve of its score; 'identity' and 'log' are read"
        )
    intercept = np.asarray(model.intercept_, dtype=np.float64)
    intercept = intercept.reshape(()) if intercept.size == 1 else intercept
    size = len(model.feature_names_in_) if schema is None else len(schema.names)
    single: list[Function | None] = [None] * size
    several: list[_Interaction] = []
    for axes, table in _terms(model, intercept.ndim, schema):
        if len(axes) > 1:
            several.append(_interaction(axes, table, intercept))
        elif single[axes[0].column] is None:
            single[axes[0].column] = axes[0].function(table.reshape(len(table), -1).T)
        else:
            raise CannotRead(f"two terms of one column, {axes[0].name!r}: the model is damaged")
    units = np.eye(intercept.size).reshape(intercept.size, *intercept.shape)
    loadings = tuple(units if function else np.zeros((1, *intercept.shape)) for function in single)
    effects = Reduced(Sum(tuple(single), loadings, np.zeros_like(intercept)))
    products = [_product(block, intercept, size) for block in _blocks(several)]
    score = combine([effects, *products], intercept=intercept)
    if link != "log":
        return score
    try:
        return Linked(score, "exp")
    except InputError as error:
        raise CannotRead(f"{name} with link 'log' predicts the exponential of its score ({error})") from error


def _terms(model: Any, axes_of_output: int, schema: Schema | None) -> Iterator[tuple[list[_Axis], Floats]]:
    """Axes and scores of terms, those of fewest columns first."""
    columns = _columns(model, schema)
    terms = zip(model.term_features_, model.term_scores_, strict=True)
    for features, scores in sorted(terms, key=lambda term: (len(term[0]), term[0])):
        table = np.asarray(scores, dtype=np.float64)
        if table.ndim != len(features) + axes_of_output or not np.isfinite(table).all():
            raise CannotRead(f"the scores of term {features} have shape {table.shape}: the model is damaged")
        yield [_Axis(model, j, len(features), columns[j], schema) for j in features], table


def _columns(model: Any, schema: Schema | None) -> dict[int, int]:
    """The column of every feature: by name where the background has all names, else by position."""
    names = [str(name) for name in model.feature_names_in_]
    used = [j for j, kind in enumerate(model.feature_types_in_) if kind != "ignore"]
    if schema is None:
        return {j: j for j in used}
    if all(names[j] in schema.names for j in used):
        return {j: schema.names.index(names[j]) for j in used}
    if len(schema.names) == len(names):
        return {j: j for j in used}
    if len(schema.names) == len(used):
        return {j: position for position, j in enumerate(used)}
    raise CannotRead(
        f"the model was fitted on {len(used)} columns ({', '.join(names[:5])}, ...), "
        f"the background has {len(schema.names)} others"
    )


class _Axis:
    """One axis of a term: the bins of a feature at the resolution of the term."""

    def __init__(self, model: Any, feature: int, resolution: int, column: int, schema: Schema | None) -> None:
        self.column = column
        self.name = str(model.feature_names_in_[feature])
        self._levels = schema.levels[column] if schema is not None else ()
        self._kind = model.feature_types_in_[feature]
        bins = model.bins_[feature]
        self._bins = bins[min(len(bins), resolution) - 1]

    def function(self, values: Floats) -> Function:
        """The functions whose values (m, bins) follow the entries of the axis."""
        if self._kind == "continuous":
            if self._levels:
                raise CannotRead(f"column {self.name!r} holds texts, but the model takes it for a number")
            cuts = np.asarray(self._bins, dtype=np.float64)
            self._check(values, cuts.size + 3)
            # a value on a cut belongs to the bin above
            return Step(np.nextafter(cuts, -np.inf), values[:, 1:-1], values[:, 0])
        if self._kind not in ("nominal", "ordinal"):
            raise CannotRead(f"column {self.name!r} is of the unknown kind {self._kind!r}")
        self._check(values, max(self._bins.values(), default=0) + 2)
        if not all(isinstance(level, str) for level in self._levels):
            raise CannotRead(f"column {self.name!r} mixes texts with other values; make all of them texts")
        # -1 is the bin of unseen texts
        of_texts = {float(code): self._bins.get(level, -1) for code, level in enumerate(self._levels)}
        bin_of = of_texts or self._numbers()
        keys = sorted(bin_of)
        scores = values[:, [bin_of[key] for key in keys]]
        return Lookup(np.array(keys, dtype=np.float64), scores, values[:, 0], values[:, -1])

    def _numbers(self) -> dict[float, int]:
        """Bins of categories that are numbers, which interpret writes as 3, not 3.0; True is 1."""
        bin_of = {}
        for text, position in self._bins.items():
            try:
                number = float(text)
            except ValueError:
                continue
            if not np.isfinite(number):
                continue
            if abs(number) >= _LARGEST_CATEGORY:
                raise CannotRead(f"column {self.name!r} has the category {text!r}, too large to be read")
            if text == (str(int(number)) if number == int(number) else repr(number)):
                bin_of[number] = position
        return bin_of

    def _check(self, values: Floats, expected: int) -> None:
        if values.shape[1] != expected:
            raise CannotRead(
                f"column {self.name!r} has {expected} bins, its scores have {values.shape[1]}: "
                "the model is damaged"
            )


class _Interaction(NamedTuple):
    """Σ_i coef[i] ∏_c values[c][i, bin of x_c] over axes c; values (m, bins) each, coef (m, ...)."""

    axes: Sequence[_Axis]
    values: Sequence[Floats]
    coef: Floats


def _interaction(axes: list[_Axis], table: Floats, intercept: Floats) -> _Interaction:
    """Products of the indicators of all columns but the one with most bins, and the scores along that one."""
    last = int(np.argmax(table.shape[: len(axes)]))
    axes = [*axes[:last], *axes[last + 1 :], axes[last]]
    table = np.moveaxis(table, last, len(axes) - 1)
    bins, outputs = table.shape[: len(axes)], intercept.size
    rows = table.reshape(-1, bins[-1], outputs).swapaxes(1, 2)  # bins of the first columns, outputs, last
    entry, output = np.nonzero(rows.any(axis=2))
    entries = np.unravel_index(entry, bins[:-1])
    indicators = [np.eye(count)[at] for count, at in zip(bins, entries, strict=False)]
    coef = np.eye(outputs)[output].reshape(-1, *intercept.shape)
    return _Interaction(axes, [*indicators, rows[entry, output]], coef)


def _blocks(terms: list[_Interaction]) -> Iterator[list[_Interaction]]:
    """Terms of one order that fit together into memory."""
    block: list[_Interaction] = []
    for term in terms:
        together = [*block, term]
        columns = {axis.column for each in together for axis in each.axes}
        bins = max(values.shape[1] for each in together for values in each.values)
        size = sum(len(each.coef) for each in together) * len(columns) * bins
        if block and (size > _BLOCK or len(term.axes) != len(block[0].axes)):
            yield block
            together = [term]
        block = together
    if block:
        yield block


def _product(block: list[_Interaction], intercept: Floats, size: int) -> Reduced:
    """One sum of products; a column is 1 in the products that do not read it."""
    ends = np.cumsum([0, *(len(term.coef) for term in block)])
    factors: dict[int, tuple[_Axis, Floats]] = {}
    for start, end, term in zip(ends[:-1], ends[1:], block, strict=True):
        for axis, values in zip(term.axes, term.values, strict=True):
            ones = np.ones((ends[-1], values.shape[1]))
            factors.setdefault(axis.column, (axis, ones))[1][start:end] = values
    functions = tuple(factors[j][0].function(factors[j][1]) if j in factors else None for j in range(size))
    coef = np.concatenate([term.coef for term in block])
    return Reduced(SumOfProducts(functions, coef, np.zeros_like(intercept)))
