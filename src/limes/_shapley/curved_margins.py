"""Curves of a margin that is read, as probabilities of boosted trees: answers along walks, without the model.

The trees' values at all steps of a walk are one compiled pass (``kernels/tree_walks.h``); those of a sum are
the columns' changes, added up, and a product of a few columns changes with these alone. The margin's own
contributions are exact, and its changes along the same walks are control variates with known means. Where a
column moves all margins of a sum in proportion, as in a linear model, the one that it moves most is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from limes import _kernels
from limes._arrays import Floats, Ints, are_complements, times
from limes._expectations.moments import REFUSED
from limes._expectations.of_forms import exact_expectation
from limes._functions import Lookup, Step
from limes._shapley.exact import exact_contributions
from limes._threads import in_threads
from limes.designs._product import ProductFamily
from limes.exceptions import InputError
from limes.models.forms._base import Form, Reducible, Sum
from limes.models.forms._linked import Linked, Ridges, terms_of
from limes.models.forms._trees import Forest

# PermutationSampler that one thread takes down the trees
_WALKS = 256
# Largest number of columns, and of thresholds of a column, that the compiled pass takes
_MOST_COLUMNS, _MOST_THRESHOLDS = 65_534, 65_534
# Numbers of the rows on the way of walks, where these are written out: some 30 MB
_NUMBERS = 1 << 22
# Most pairs of walks to a row, and most steps of these, times trees; a column of another margin costs as much
# as some trees
_MOST_PAIRS, _FEWEST_PAIRS, _MOST_STEPS, _A_COLUMN = 1 << 13, 1 << 9, 1 << 27, 8


def behind_links(form: Form) -> CurvedMargin | None:
    """The answers of links of sums, as of a network with one hidden layer; None for other forms."""
    links = form.expanded if isinstance(form, Ridges) else form
    if not isinstance(links, Linked) or _Proportional.of(links.margin) is None:
        return None
    return CurvedMargin(links.margin, links.answers)


class _Proportional(NamedTuple):
    """Margins c + Σ_j loadings_j · g_j(x_j), with one function a column."""

    terms: Sum
    loadings: Floats  # (d, m)

    @classmethod
    def of(cls, margin: Form) -> _Proportional | None:
        # a forest is no sum, and its boxes are leaves times columns
        is_forest = isinstance(margin, Forest)
        terms = margin.reduce() if isinstance(margin, Reducible) and not is_forest else None
        if not isinstance(terms, Sum) or any(len(loading) > 1 for loading in terms.loadings):
            return None
        return cls(terms, np.concatenate(terms.loadings).reshape(len(terms.loadings), -1))

    @property
    def largest(self) -> Ints:
        """The margin that each column moves most, (d,)."""
        return np.asarray(np.abs(self.loadings).argmax(axis=1))

    def along(self, row: Floats, starts: Floats, orders: Ints) -> tuple[Floats, Floats]:
        """Margins (W, d + 1, m) at the steps of walks, and the sum of those that columns move most."""
        rows = np.concatenate([row[None], starts])
        values = np.zeros(rows.shape)
        for j, function in enumerate(self.terms.functions):
            if function is not None:
                values[:, j] = np.asarray(function(rows[:, j])).reshape(-1)
        steps = _steps(values[0], values[1:], orders)
        most = np.take_along_axis(self.loadings, self.largest[:, None], axis=1)
        return steps @ self.loadings + self.terms.intercept.reshape(-1), steps @ most


class _Product(NamedTuple):
    """Σ_i coef_i ∏_c g_ci(x_c) over a few columns c."""

    columns: tuple[int, ...]
    functions: tuple[Step | Lookup, ...]  # m functions of each column
    coef: Floats  # (m, K)

    def changes(self, row: Floats, starts: Floats, place: Ints) -> tuple[Floats, Floats, Ints]:
        """Values at starts (W, K), each next change (c, W, K), and the step of walks before it, (c, W).

        Columns of walks change at the ``place`` (W, d) in their order.
        """
        kept = [g(row[[j]]).T for g, j in zip(self.functions, self.columns, strict=True)]  # (1, m)
        drawn = [g(starts[:, j]).T for g, j in zip(self.functions, self.columns, strict=True)]  # (W, m)
        its = place[:, self.columns]
        rank, steps = np.argsort(np.argsort(its, axis=1), axis=1), np.sort(its, axis=1).T
        values = []
        for changed in range(len(self.columns) + 1):
            product = np.ones((len(starts), len(self.coef)))
            for c, both in enumerate(zip(kept, drawn, strict=True)):
                product *= np.where(rank[:, [c]] < changed, *both)
            values.append(times(product, self.coef))
        return values[0], np.diff(values, axis=0), steps


class _Interacting(NamedTuple):
    """Margins of functions of one column each, and of products of a few that are constant between breaks."""

    terms: Sum
    products: tuple[_Product, ...]
    outputs: int

    @classmethod
    def of(cls, margin: Form) -> _Interacting | None:
        if isinstance(margin, Forest):  # its leaves are many products of many columns
            return None
        try:
            terms, interactions = terms_of(margin)
        except InputError:
            return None
        products = []
        for each in interactions:
            steps = [g for g in each.functions if isinstance(g, Step | Lookup)]
            if len(steps) < len(each.functions):
                return None
            functions = tuple(g.select(each.products) for g in steps)
            products.append(_Product(each.columns, functions, each.coef.reshape(len(each.coef), -1)))
        return cls(terms, tuple(products), terms.intercept.size) if products else None

    def along(self, row: Floats, starts: Floats, orders: Ints) -> Floats:
        """Margins (W, d + 1, K) at the steps of walks."""
        place, walks = np.argsort(orders, axis=1), np.arange(len(orders))
        at_row, at_start = self.terms.addends(row[None]), self.terms.addends(starts)
        # the margin at the start, and each change
        margins = np.zeros((len(orders), row.size + 1, self.outputs))
        margins[:, 0] = self.terms.intercept.reshape(-1) + at_start.sum(axis=1)
        margins[walks[:, None], place + 1] = at_row - at_start
        for product in self.products:
            at_starts, changes, steps = product.changes(row, starts, place)
            margins[:, 0] += at_starts
            for change, step in zip(changes, steps, strict=True):
                margins[walks, step + 1] += change
        return np.cumsum(margins, axis=1)


@dataclass(frozen=True, eq=False)
class CurvedMargin:
    """f(x) = curve(margin(x)): ``curve`` maps margins (n,) or (n, m) to answers (n,) or (n, k)."""

    margin: Form
    curve: Callable[[Floats], Floats]

    def __call__(self, x: Floats) -> Floats:
        return self.curve(self.margin.predict(x))

    def most_pairs(self, columns: int) -> int:
        """How many pairs of walks a row may take."""
        margin = self.margin
        work = margin.roots.size if isinstance(margin, Forest) else _A_COLUMN * columns
        pairs = _MOST_STEPS // (2 * (columns + 1) * max(work, 1))
        return min(max(pairs, _FEWEST_PAIRS), _MOST_PAIRS)

    def is_complement(self, row: Floats) -> bool:
        """Whether answers are the probabilities of two classes, by one margin; ``row`` is any (d,)."""
        margins = self.margin.predict(row[None])
        return margins.ndim == 1 and are_complements(self.curve(margins).reshape(1, -1))

    def contributions(self, family: ProductFamily, x: Floats, cells: Ints) -> Floats | None:
        """Contributions to the margins that :meth:`along` returns, at rows (n, d): (n, d, m).

        None where they have no closed form.
        """
        expectation = self._expectation
        try:
            values = exact_contributions(self.margin, expectation, family, x, cells).values
        except REFUSED:
            return None
        if self._proportional is None:
            return values
        return np.take_along_axis(values, self._proportional.largest[None, :, None], axis=2)

    @cached_property
    def _expectation(self) -> Any:
        return exact_expectation(self.margin)

    @cached_property
    def _proportional(self) -> _Proportional | None:
        return _Proportional.of(self.margin)

    def along(self, row: Floats, starts: Floats, orders: Ints) -> tuple[Floats, Floats]:
        """Answers (W, d + 1, k) and margins (W, d + 1, m) at the steps of W walks from rows (W, d)."""
        if self._is_compiled:
            values, steps = self._down_trees(row, starts, orders), (len(orders), row.size + 1)
            return self.curve(values).reshape(*steps, -1), values.reshape(*steps, -1)
        # few walks at a time: each has d + 1 rows of d columns on its way
        few = max(1, _NUMBERS // (row.size * (row.size + 1)))
        blocks = [slice(first, first + few) for first in range(0, len(orders), few)]
        both = [self._by_rows(row, starts[some], orders[some]) for some in blocks]
        answers, margins = zip(*both, strict=True)
        return np.concatenate(answers), np.concatenate(margins)

    def _by_rows(self, row: Floats, starts: Floats, orders: Ints) -> tuple[Floats, Floats]:
        steps = (len(orders), row.size + 1)
        if self._proportional is not None:
            margins, beside = self._proportional.along(row, starts, orders)
            shape = np.shape(self._proportional.terms.intercept)
            return self.curve(margins.reshape(-1, *shape)).reshape(*steps, -1), beside
        if self._interacting is None:
            values = self.margin.predict(_steps(row, starts, orders).reshape(-1, row.size))
        else:
            values = self._interacting.along(row, starts, orders).reshape(
                -1, *self._interacting.terms.intercept.shape
            )
        return self.curve(values).reshape(*steps, -1), values.reshape(*steps, -1)

    @cached_property
    def _interacting(self) -> _Interacting | None:
        return _Interacting.of(self.margin)

    @cached_property
    def _is_compiled(self) -> bool:
        margin = self.margin
        if self._proportional is not None or not isinstance(margin, Forest) or margin.size > _MOST_COLUMNS:
            return False
        return bool(np.bincount(margin.feature[margin.feature >= 0], minlength=1).max() <= _MOST_THRESHOLDS)

    def _down_trees(self, row: Floats, starts: Floats, orders: Ints) -> Floats:
        """Margins (W · (d + 1), ...), step by step."""
        margin = self.margin
        assert isinstance(margin, Forest)  # noqa: S101 - the compiled pass is of trees
        value = margin.value.reshape(len(margin.value), -1)
        values = np.empty((len(orders), row.size + 1, value.shape[1]))
        end, rows = (np.require(each, requirements="C") for each in (row, starts))
        columns = np.require(orders, requirements="C")

        def block(first: int) -> None:
            some = slice(first, first + _WALKS)
            _kernels.add_walks(margin.trees, value, end, rows[some], columns[some], values[some])

        in_threads(block, range(0, len(orders), _WALKS))
        return np.asarray(values.reshape(-1, *margin.value.shape[1:]) + margin.intercept)


def _steps(row: Floats, starts: Floats, orders: Ints) -> Floats:
    """Rows (W, d + 1, d) from starts to the row (d,), a column at a time."""
    place, step = np.argsort(orders, axis=1), np.arange(row.size + 1)
    return np.where(place[:, None] < step[:, None], row, starts[:, None])
