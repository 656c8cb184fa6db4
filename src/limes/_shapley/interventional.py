r"""Contributions under the joint law: Shapley values of v(S) = Σ_b w_b f(ξ_S, b_-S).

The background's rows b have the weights of the explained row ξ (``designs/_joint.py``). For an infinite
bandwidth these are the interventional values against the whole background. Of a sum Σ_j f_j(x_j)

    φ_j = f_j(ξ_j) - Σ_b w_b f_j(b_j).

Trees take all rows down together (``kernels/joint_contributions.cpp``); where background rows weigh the same,
what the background says by itself is kept (``kernels/joint_background.h``). A product ∏_j g_j(x_j) has,
against one row b, the multilinear extension ∏_j (t g_j(ξ) + (1 - t) g_j(b)), whose integral a few nodes t
give exactly (``exact.py``). A link of a sum of terms has, against one row, what it has where columns are
independent and have one value each (``SingleRowFamily``); or its margins of all coalitions, if these are
few, are added up column by column. Whatever else was read is asked about all coalitions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, reduce
from itertools import pairwise, product
from math import comb
from typing import Any, NamedTuple

import numpy as np

from limes import _kernels
from limes._arrays import Bools, Floats, Ints
from limes._expectations.exact import products_of_pairs
from limes._expectations.linked import LinkedExpectation
from limes._expectations.of_forms import exact_expectation
from limes._expectations.tabulated import TabulatedExpectation
from limes._sampling.least_squares import student_factors
from limes._shapley.exact import RowContributions, combined, exact_contributions, quadrature
from limes._shapley.pairs import exact_pairs, indices_of_game, nodes_of_pairs
from limes._threads import WORTH_SHARING, SharedState, in_threads
from limes.designs._joint import JointFamily, SingleRowFamily
from limes.designs._product import ProductFamily
from limes.exceptions import InputError, ModelError, NotReadableError
from limes.models.forms._base import Combination, Form, Reducible, Sum, SumOfProducts
from limes.models.forms._linked import Linked, Ridges, Softmax, as_sum
from limes.models.forms._links import Relu
from limes.models.forms._trees import Forest
from limes.models.forms._tuples import ForestOfTuples

# Most rows of one call of the kernel, and most of their weights: the more rows, the more tests they share
_ROWS, _WEIGHTS = 512, 1 << 22
# Bytes that a forest keeps of its background, at most: of masks, and half of them of tables
_KEPT = 192 << 20
# Background rows times nodes of a forest, at most, where something is kept: ten seconds or so, once
_STEPS = 1 << 34
# Share of the stated seconds that kept backgrounds take, measured: most leaves of shallow trees are in tables
_IN_TABLES = 0.4
# Nodes of trees whose contributions are added up before they join the others
_NODES_TOGETHER = 1 << 14
# Columns of products that the nodes of `quadrature` are exact for, at most
_EXACT_COLUMNS = 64
# Columns that only the explained row differs in, at most, where all coalitions are asked about
_BESIDE = 2
# Numbers of an array that is made at once
_NUMBERS = 1 << 21
# Exponentials of all values of columns, at most: 64 MB a table, of which there are a few; numbers of a
# background in which distinct values are looked for; nodes of a link for which times were measured
_EXPONENTIALS, _SORTED, _USUAL_NODES = 1 << 22, 1 << 19, 100
# Parts of a background by which contributions vary, where it has more rows
_PARTS = 16
# Seconds that contributions at a row may take, at most: else walks estimate them
_MOST_SECONDS = 1.0


class InterventionalGame(ABC):
    """Computes a form's contributions against the rows of one background; threads may share it."""

    seconds: float  # about what a row by itself takes
    way: str = ""  # by which they are exact, where that may take long
    numbers: int = 1  # of an array for each row
    is_compiled = False  # by compiled loops alone, which multiply no matrices

    @property
    def seconds_alike(self) -> float:
        """The same where background rows weigh the same."""
        return self.seconds

    @abstractmethod
    def __call__(self, x: Floats, weights: Floats | None) -> RowContributions:
        """Contributions at rows x (n, d).

        Weights are (n, N), or (1, N) where rows share them, or None where background rows weigh the same.
        """

    @property
    def pair_seconds(self) -> float:
        """About what pairs of a row take."""
        # the background goes down trees with every row, and a leaf has as many pairs as columns, squared
        return 4.0 * self.seconds

    @abstractmethod
    def pairs(self, x: Floats, weights: Floats | None) -> Floats:
        """Shapley interaction indices at the same rows, (n, d, d, k): symmetric, 0 on the diagonal."""


class Interventional:
    """Exact contributions of one form under the joint laws of one background."""

    def __init__(self, form: Form | None, predict: Callable[[Floats], Floats], family: JointFamily) -> None:
        """``predict`` are the answers of the form, or of what was read without being one.

        Raises a NotReadableError if contributions would take too long.
        """
        self._family = family
        if form is None:  # trees and a curve behind them
            self._against: InterventionalGame = CoalitionGame(predict, family.rows, 1e-5)
        else:
            self._against = against(form, family.rows)
        if self.seconds > _MOST_SECONDS:
            raise NotReadableError(
                f"exact contributions against {len(family.rows):,} rows{self._against.way} take too long: "
                f"about {self.seconds:,.0f} s a row"
            )

    @property
    def seconds(self) -> float:
        return self._against.seconds_alike if self._are_alike else self._against.seconds

    @property
    def pair_seconds(self) -> float:
        return self._against.pair_seconds

    @property
    def is_compiled(self) -> bool:
        return self._against.is_compiled

    @property
    def _are_alike(self) -> bool:
        """Whether all background rows weigh the same."""
        return bool(np.isinf(self._family.weights.bandwidth))

    def at(self, x: Floats, cells: Ints) -> RowContributions:
        """Contributions at rows x in these cells (n, d)."""
        weights = 1 if self._are_alike else len(self._family.rows)
        step = max(1, min(_ROWS, _WEIGHTS // max(weights, self._against.numbers)))
        blocks = [slice(start, start + step) for start in range(0, len(x), step)]
        return RowContributions.joined([self._of_rows(x[i], self._weights(cells[i])) for i in blocks])

    def pairs(self, x: Floats, cells: Ints) -> Floats:
        """Shapley interaction indices at rows x in these cells (n, d), (n, d, d, k)."""
        if self._family.omitted:
            raise NotReadableError(
                f"pairs under law='joint' need the whole background, and {self._family.omitted:,} of its "
                "rows were left out: pass a smaller background"
            )
        weights = [self._weights(of_row[None]) for of_row in cells]
        return np.concatenate([self._against.pairs(*each) for each in zip(x[:, None], weights, strict=True)])

    def _of_rows(self, x: Floats, weights: Floats | None) -> RowContributions:
        """Contributions at rows x; with errors, by how parts differ, where the background has more rows."""
        whole, omitted = self._against(x, weights), self._family.omitted
        if not omitted:
            return whole
        weights = _alike(self._family.rows) if weights is None else weights
        variances = [np.zeros_like(numbers) for numbers in (whole.values, whole.base)]
        for part in range(_PARTS):
            its = np.where(np.arange(weights.shape[1]) % _PARTS == part, weights, 0.0)
            share = its.sum(axis=1)
            one = self._against(x, its / np.where(share > 0, share, 1.0)[:, None])
            for total, numbers, mean in zip(
                variances, (one.values, one.base), (whole.values, whole.base), strict=True
            ):
                moved = share.reshape(-1, *[1] * (mean.ndim - 1)) * (numbers - mean)
                total += omitted * _PARTS / (_PARTS - 1) * moved**2
        errors, of_base = (student_factors(np.array(_PARTS - 1)) * np.sqrt(its) for its in variances)
        return replace(whole, errors=errors, base_errors=of_base)

    def _weights(self, cells: Ints) -> Floats | None:
        if self._are_alike:
            return None
        return np.stack([self._family.around(of_row).weights for of_row in cells])


def _alike(background: Floats) -> Floats:
    """Weights (1, N) of background rows (N, d) that weigh the same."""
    return np.full((1, len(background)), 1.0 / len(background))


def against(form: Form, background: Floats) -> InterventionalGame:
    """Return what computes a form's contributions against background rows (N, d)."""
    if isinstance(form, Combination):
        return _Parts(form, background)
    if isinstance(form, Forest):
        return _Trees(form, background)
    if isinstance(form, ForestOfTuples):
        return _TreesOfTuples(form, background)
    if isinstance(form, Reducible):
        reduced = form.reduce()
        if isinstance(reduced, SumOfProducts) and any(f is not None for f in reduced.functions):
            return _Products(reduced, background)
        return _Terms(as_sum(form), background)
    if isinstance(form, Ridges):
        return against(form.expanded, background)
    if isinstance(form, Softmax):
        return _Margins(form, background)
    if not isinstance(form, Linked) or form.margins.interactions:
        return CoalitionGame(form.predict, background, 5e-7)
    # kinks have no exact expectation where columns have single values
    return _Margins(form, background) if isinstance(form.curve, Relu) else _Links(form, background)


class _Parts(InterventionalGame):
    def __init__(self, form: Combination, background: Floats) -> None:
        self._form, self._parts = form, [against(part, background) for part in form.parts]
        self.seconds = sum(part.seconds for part in self._parts)
        self.numbers = max(part.numbers for part in self._parts)

    @property
    def seconds_alike(self) -> float:
        return sum(part.seconds_alike for part in self._parts)

    def __call__(self, x: Floats, weights: Floats | None) -> RowContributions:
        return combined(self._form, [part(x, weights) for part in self._parts])

    def pairs(self, x: Floats, weights: Floats | None) -> Floats:
        parts = zip(self._form.weights, self._parts, strict=True)
        # one part after the other, as contributions
        return reduce(np.add, [w * part.pairs(x, weights) for w, part in parts])


class _Terms(InterventionalGame):
    """A sum of functions of one column each."""

    def __init__(self, form: Sum, background: Floats) -> None:
        self._form = form
        self._background, self.seconds = form.addends(background), 1e-8 * background.size

    @cached_property
    def _means(self) -> Floats:
        """For functions at background rows that weigh the same, (1, d, k)."""
        return np.asarray(self._background.mean(axis=0, keepdims=True))

    def __call__(self, x: Floats, weights: Floats | None) -> RowContributions:
        # row by row, whatever their number
        means = (
            self._means
            if weights is None
            else np.stack([np.tensordot(w, self._background, 1) for w in weights])
        )
        values = self._form.addends(x) - means
        base = np.broadcast_to(self._form.intercept.reshape(-1) + means.sum(axis=1), values[:, 0].shape)
        return RowContributions.exact(base, values, values, values)

    def pairs(self, x: Floats, weights: Floats | None) -> Floats:  # noqa: ARG002 - all are 0
        n, d = x.shape
        return np.zeros((n, d, d, self._form.intercept.size))


class _Trees(SharedState, InterventionalGame):
    is_compiled = True

    def __init__(self, form: Forest, background: Floats) -> None:
        self._form, self._background = form, np.ascontiguousarray(background.T)
        self._value = form.value.reshape(len(form.value), -1)
        self._leaves = int((form.feature < 0).sum())
        # measured: a leaf at 1,000 rows, of which the fewer are apart there the more there are
        self.seconds = 1e-6 * self._leaves * float(np.sqrt(len(background) / 1000.0))
        self.numbers = 3 * form.size * self._value.shape[1] * len(self._runs)
        self._kept: list[_kernels.JointBackground] = []
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_kept": []}

    @property
    def _keeps(self) -> bool:
        """Whether what the background says by itself is computed once."""
        return bool(self._form.feature.size * self._background.shape[1] <= _STEPS)

    @property
    def seconds_alike(self) -> float:
        # measured: a leaf that no table has
        return min(self.seconds, 2e-7 * self._leaves) if self._keeps else self.seconds

    def __call__(self, x: Floats, weights: Floats | None) -> RowContributions:
        (n, d), outputs = x.shape, self._value.shape[1]
        parts = [(np.zeros((n, outputs)), np.zeros((n, 3, d, outputs))) for _ in self._runs]
        rows = np.ascontiguousarray(x)
        seconds = WORTH_SHARING if weights is not None else _IN_TABLES * n * self.seconds_alike
        try:
            kept = self._kept_of_runs() if weights is None and self._keeps else None

            def run(which: int) -> None:
                first, end = self._runs[which]
                if kept is not None:
                    _kernels.add_against(kept[which], rows, *parts[which])
                    first = kept[which].end
                if first < end:
                    shared = _alike(self._background.T) if weights is None else weights
                    self._add(first, end, rows, shared, *parts[which])

            in_threads(run, range(len(parts)), seconds)
        except ValueError as error:  # a path of more columns than a mask has bits, or very many splits
            raise ModelError(f"trees have no exact contributions against the background: {error}") from error
        base, sums = parts[0]
        for of_base, of_sums in parts[1:]:
            base += of_base
            sums += of_sums
        base += self._form.intercept.reshape(-1)
        return RowContributions.exact(base, *(sums[:, which] for which in range(3)))

    def _add(self, first: int, end: int, x: Floats, weights: Floats, base: Floats, sums: Floats) -> None:
        """Take rows and the background down trees together."""
        _kernels.add_joint_contributions(
            *(self._form.trees, self._value, first, end),
            *(np.ascontiguousarray(x.T), self._background, weights, base, sums),
        )

    def pairs(self, x: Floats, weights: Floats | None) -> Floats:
        (n, d), outputs = x.shape, self._value.shape[1]
        parts = [np.zeros((n, d, d, outputs)) for _ in self._runs]
        rows = np.ascontiguousarray(x.T)
        weights = _alike(self._background.T) if weights is None else weights

        def run(which: int) -> None:
            first, end = self._runs[which]
            numbers = self._form.trees, self._value, first, end, rows, self._background, weights
            _kernels.add_joint_pairs(*numbers, parts[which])

        try:
            in_threads(run, range(len(parts)))
        except ValueError as error:  # a path of more columns than a mask has bits
            raise ModelError(f"trees have no exact pairs against the background: {error}") from error
        return reduce(np.add, parts)

    def _kept_of_runs(self) -> list[_kernels.JointBackground]:
        """Get what each run of trees keeps of the background; trees that it has no room for are its last."""
        with self._lock:
            if not self._kept:
                kept = dict[int, _kernels.JointBackground]()

                def keep(which: int) -> None:
                    trees = self._form.trees, self._value, *self._runs[which]
                    kept[which] = _kernels.JointBackground(*trees, self._background, _KEPT)

                in_threads(keep, range(len(self._runs)))
                self._kept = [kept[which] for which in range(len(self._runs))]
            return self._kept

    @cached_property
    def _runs(self) -> list[tuple[int, int]]:
        """Runs of trees, (first, last + 1)."""
        roots = self._form.roots
        cuts = np.flatnonzero(np.diff(np.sort(roots) // _NODES_TOGETHER)) + 1
        return [*pairwise([0, *cuts.tolist(), roots.size])]


class _RowsOfTrees(NamedTuple):
    """Rows whose tuples these trees know, with their weights, and their positions among all."""

    game: _Trees
    x: Floats
    weights: Floats | None
    at: Ints


def _places(games: list[_RowsOfTrees]) -> Ints:
    """The place of each row in the parts, one after the other."""
    return np.argsort(np.concatenate([rows.at for rows in games]))


class _TreesOfTuples(InterventionalGame):
    """A forest over groups, as one that splits codes of tuples by sets."""

    def __init__(self, form: ForestOfTuples, background: Floats) -> None:
        try:
            self._usual = _Trees(form.by_sets({}), background)
        except InputError as error:
            raise NotReadableError(f"contributions of groups against the background: {error}") from error
        self._form, self._background = form, background
        self.seconds, self.numbers = self._usual.seconds, self._usual.numbers

    @property
    def seconds_alike(self) -> float:
        return self._usual.seconds_alike

    def __call__(self, x: Floats, weights: Floats | None) -> RowContributions:
        games = self._parts(x, weights)
        parts = [game(rows, its) for game, rows, its, _ in games]
        return RowContributions.joined(parts).take(_places(games))

    def pairs(self, x: Floats, weights: Floats | None) -> Floats:
        games = self._parts(x, weights)
        return np.concatenate([game.pairs(rows, its) for game, rows, its, _ in games])[_places(games)]

    def _parts(self, x: Floats, weights: Floats | None) -> list[_RowsOfTrees]:
        """Rows by the trees that know their tuples, with their weights, and their positions among all."""
        codes, new = x.copy(), dict[int, Floats]()
        is_new = np.zeros(len(x), dtype=np.bool_)
        for group, tuples in enumerate(self._form.grouping.tuples):
            if tuples is not None and (beyond := x[:, group] >= tuples.size).any():
                new[group], place = np.unique(x[beyond, group], return_inverse=True)
                codes[beyond, group] = tuples.size + place
                is_new |= beyond
        if not new:
            return [_RowsOfTrees(self._usual, x, weights, np.arange(len(x)))]
        # sets that have the new tuples, too, for the rows that have one
        at, usual = np.flatnonzero(is_new), np.flatnonzero(~is_new)
        extended = _Trees(self._form.by_sets(new), self._background)
        shared = _alike(self._background) if weights is None else weights
        parts = [_RowsOfTrees(extended, codes[at], shared if len(shared) == 1 else shared[at], at)]
        if usual.size:
            some = weights if weights is None or len(weights) == 1 else weights[usual]
            parts.append(_RowsOfTrees(self._usual, x[usual], some, usual))
        return parts


def _one_by_one(x: Floats, weights: Floats | None) -> Iterator[tuple[Floats, Floats | None]]:
    """Each of the rows x, (1, d), and its weights."""
    each = [weights] * len(x) if weights is None or len(weights) == 1 else weights[:, None]
    return zip(x[:, None], each, strict=True)


def _shares(x: Floats, weights: Floats | None, background: Floats) -> Floats:
    """Weights (n, N) for each of the rows x."""
    return np.broadcast_to(_alike(background) if weights is None else weights, (len(x), len(background)))


class _Products(InterventionalGame):
    """Σ_i coef_i ∏_j g_ij(x_j)."""

    def __init__(self, form: SumOfProducts, background: Floats) -> None:
        self._coef, self._intercept = form.coef.reshape(len(form.coef), -1), form.intercept.reshape(-1)
        self._functions = {j: function for j, function in enumerate(form.functions) if function is not None}
        self._read = [*self._functions]
        self._background = background
        if len(self._read) > _EXACT_COLUMNS:
            raise NotReadableError(
                f"products of {len(self._read)} columns need too many nodes of a quadrature"
            )
        self._t, self._weights = quadrature(len(self._read))
        # measured: a factor of a product at a node
        self.seconds = 2e-8 * len(self._t) * len(self._coef) * len(self._read) * len(background)

    def __call__(self, x: Floats, weights: Floats | None) -> RowContributions:
        shares = _shares(x, weights, self._background)
        return RowContributions.joined([self._at(*each) for each in zip(x, shares, strict=True)])

    def _factors(self, x: Floats) -> Floats:
        """(columns that are read, products, rows)."""
        return np.stack([function(x[:, j]) for j, function in self._functions.items()])

    def _at(self, row: Floats, weights: Floats) -> RowContributions:
        kept, d = self._factors(row[None]), row.size
        base, (_, outputs) = self._intercept.copy(), self._coef.shape
        beta = np.zeros((len(self._t), d, outputs))
        step = max(1, _NUMBERS // (len(self._coef) * max(1, len(self._read))))
        for start in range(0, len(weights), step):
            some = slice(start, start + step)
            drawn = self._factors(self._background[some])
            base += (drawn.prod(axis=0) @ weights[some]) @ self._coef
            for node, (t, rest) in enumerate(self._t):
                without = _others(t * kept + rest * drawn)
                beta[node, self._read] += ((kept - drawn) * without) @ weights[some] @ self._coef
        values = np.tensordot(self._weights, beta, 1)
        return RowContributions.exact(*(each[None] for each in (base, values, beta[0], beta[-1])))

    def pairs(self, x: Floats, weights: Floats | None) -> Floats:
        shares = _shares(x, weights, self._background)
        return np.stack([self._pairs_at(*each) for each in zip(x, shares, strict=True)])

    def _pairs_at(self, row: Floats, weights: Floats) -> Floats:
        kept, d, read = self._factors(row[None]), row.size, self._read
        pairs = np.zeros((d, d, self._coef.shape[1]))
        t, of_nodes = nodes_of_pairs(len(read))
        step = max(1, _NUMBERS // (len(self._coef) * max(1, len(read))))
        for start in range(0, len(weights), step):
            some = slice(start, start + step)
            drawn = self._factors(self._background[some])
            for (of_kept, of_drawn), of_node in zip(t, of_nodes, strict=True):
                means = of_kept * kept + of_drawn * drawn
                for i, j, term in products_of_pairs(means, kept - drawn):
                    pairs[read[i], read[j]] += of_node * (term @ weights[some] @ self._coef)
        return pairs + pairs.swapaxes(0, 1)


def _others(factors: Floats) -> Floats:
    """Products of all other factors, along the first axis."""
    before, after = np.ones_like(factors), np.ones_like(factors)
    np.cumprod(factors[:-1], axis=0, out=before[1:])
    np.cumprod(factors[:0:-1], axis=0, out=after[1:])
    return before * after[::-1]


class _SingleRows(InterventionalGame):
    """A form of which independent columns have exact contributions, as those of one background row are."""

    def __init__(self, form: Linked, background: Floats) -> None:
        expectation = exact_expectation(form)
        assert isinstance(expectation, TabulatedExpectation)  # noqa: S101 - of links
        self._form, self._expectation, self._background = form, expectation, background
        self.seconds = np.inf
        if background.size <= _SORTED:
            self._family = SingleRowFamily.of(background)
            nodes = _nodes_of(form, background)
            if nodes * sum(law.cells.count for law in self._family.marginals) <= _EXPONENTIALS:
                a_row = expectation.account_seconds(self._family) * max(1.0, nodes / _USUAL_NODES)
                self.seconds = float(len(background) * a_row)

    @property
    def pair_seconds(self) -> float:
        # two passes a column
        return float(2.0 * self._background.shape[1] * self.seconds)

    @cached_property
    def _cells(self) -> Ints:
        return self._family.cells(self._background)

    @cached_property
    def _of_background(self) -> Floats:
        """Answers to the background's rows, (N, k)."""
        return self._form.predict(self._background).reshape(len(self._background), -1)

    def __call__(self, x: Floats, weights: Floats | None) -> RowContributions:
        shares = _shares(x, weights, self._background)
        return RowContributions.joined([self._at(*each) for each in zip(x, shares, strict=True)])

    def _at(self, row: Floats, weights: Floats) -> RowContributions:
        its = exact_contributions(*self._beside(row, weights))
        sums = (np.tensordot(weights, each, 1) for each in (its.values, its.alone, its.last))
        return RowContributions.exact(*(each[None] for each in (weights @ self._of_background, *sums)))

    def pairs(self, x: Floats, weights: Floats | None) -> Floats:
        shares = _shares(x, weights, self._background)
        return np.stack(
            [np.tensordot(w, exact_pairs(*self._beside(row, w)), 1) for row, w in zip(x, shares, strict=True)]
        )

    def _beside(self, row: Floats, weights: Floats) -> tuple[Form, Any, ProductFamily, Floats, Ints]:
        """The explained row under the law of each row of the background."""
        expectation, x = self._expectation, np.broadcast_to(row, self._background.shape)
        if isinstance(expectation, LinkedExpectation):
            # errors are relative to the mean over rows, which may be far above what one row has
            usual, at_row = weights @ self._links_of_background, self._links(row[None])[0]
            expectation = expectation.relative_to(float(np.maximum(usual, at_row).min()))
        return self._form, expectation, self._family, x, self._cells

    @cached_property
    def _links_of_background(self) -> Floats:
        return self._links(self._background)

    def _links(self, x: Floats) -> Floats:
        """The links of rows' margins, (n, K)."""
        return self._form.curve.function(self._form.margin.predict(x).reshape(len(x), -1))


def _nodes_of(form: Linked, background: Floats) -> float:
    """The most exponentials that a link of margins in the background's range takes; inf for too many."""
    addends = form.terms.addends(background)
    ends = [form.terms.intercept + pick(addends, axis=0).sum(axis=0) for pick in (np.min, np.max)]
    try:
        return max(
            form.curve.sum(low, high, 0.0).nodes.size
            for low, high in zip(*np.array(ends).tolist(), strict=True)
        )
    except InputError:
        return np.inf


class _Links(InterventionalGame):
    """Links of sums: by all coalitions of the columns in which a row differs, if these are few enough."""

    def __init__(self, form: Linked, background: Floats) -> None:
        self._margins, self._single_rows = _Margins(form, background), _SingleRows(form, background)
        self.seconds = min(self._margins.seconds, self._single_rows.seconds)

    @property
    def pair_seconds(self) -> float:
        return min(self._margins.pair_seconds, self._single_rows.pair_seconds)

    def __call__(self, x: Floats, weights: Floats | None) -> RowContributions:
        return RowContributions.joined(
            [self._quicker(row, self._single_rows.seconds)(row, its) for row, its in _one_by_one(x, weights)]
        )

    def pairs(self, x: Floats, weights: Floats | None) -> Floats:
        return np.concatenate(
            [
                self._quicker(row, self._single_rows.pair_seconds / 4.0).pairs(row, its)
                for row, its in _one_by_one(x, weights)
            ]
        )

    def _quicker(self, row: Floats, seconds: float) -> InterventionalGame:
        """All coalitions, where these take less than some seconds."""
        return self._margins if self._margins.seconds_at(row) < seconds else self._single_rows


class CoalitionGame(InterventionalGame):
    """Whatever answers rows (n, d), about all coalitions of the columns that vary."""

    def __init__(
        self,
        predict: Callable[[Floats], Floats],
        background: Floats,
        seconds: float,
        *,
        beside: int = _BESIDE,
    ) -> None:
        """``seconds`` are measured, of an answer; ``beside`` columns may differ in the row alone, at most."""
        self._predict, self._background, self._beside = predict, background, beside
        self._columns = int((background != background[:1]).any(axis=0).sum())
        self._coalition = seconds * len(background)
        self.seconds = 2.0**self._columns * self._coalition
        self.way = f" by all coalitions of {self._columns:,} columns"

    def __call__(self, x: Floats, weights: Floats | None) -> RowContributions:
        shares = _shares(x, weights, self._background)
        return RowContributions.joined([self._at(*each) for each in zip(x, shares, strict=True)])

    def pairs(self, x: Floats, weights: Floats | None) -> Floats:
        shares = _shares(x, weights, self._background)
        return np.stack([self._pairs_at(*each) for each in zip(x, shares, strict=True)])

    def _pairs_at(self, row: Floats, weights: Floats) -> Floats:
        differs, game = self._values(row, weights)
        pairs = np.zeros((row.size, row.size, game.shape[-1]))
        if differs.size > 1:
            pairs[differs[:, None], differs] = indices_of_game(game)
        return pairs

    def _at(self, row: Floats, weights: Floats) -> RowContributions:
        differs, game = self._values(row, weights)
        sums = np.zeros((3, row.size, game.shape[-1]))
        if differs.size:
            sums[:, differs] = shapley(game)
        return RowContributions.exact(game.reshape(-1, game.shape[-1])[:1], *sums[:, None])

    def _values(self, row: Floats, weights: Floats) -> tuple[Ints, Floats]:
        """Columns (m,) in which the row differs from others, and their game, (2, ..., 2, k)."""
        differs = self._few(row)
        if not differs.size:
            return differs, self._predict(row[None]).reshape(-1)
        kept = np.array([*product((False, True), repeat=differs.size)])
        game = np.concatenate([self._game(row, weights, differs, some) for some in self._parts(kept)])
        return differs, game.reshape((*(2,) * differs.size, -1))

    def seconds_at(self, row: Floats) -> float:
        """About what a row (1, d) takes."""
        return float(2.0 ** self._differing(row).size * self._coalition)

    def _differing(self, row: Floats) -> Ints:
        """Columns in which the row differs from others."""
        rows = self._background
        return np.flatnonzero(~((rows == row) | (np.isnan(rows) & np.isnan(row))).all(axis=0))

    def _few(self, row: Floats) -> Ints:
        """The same; ModelError if they are too many."""
        differs = self._differing(row)
        if differs.size > self._columns + self._beside:
            raise ModelError(f"the row differs in {differs.size} columns, too many for all their coalitions")
        return differs

    def _parts(self, kept: Bools) -> list[Bools]:
        step = max(1, _NUMBERS // self._background.size)
        return [kept[start : start + step] for start in range(0, len(kept), step)]

    def _game(self, row: Floats, weights: Floats, columns: Ints, kept: Bools) -> Floats:
        """Σ_b w_b f of some coalitions (C, m) of columns (m,), (C, k)."""
        mixed = np.repeat(self._background[None], len(kept), axis=0)
        mixed[..., columns] = np.where(kept[:, None], row[columns], mixed[..., columns])
        answers = self._predict(mixed.reshape(-1, row.size))
        return np.asarray(np.einsum("n,cnk->ck", weights, answers.reshape(*mixed.shape[:2], -1)))


class _Margins(CoalitionGame):
    """A function of margins that are sums over columns: those of all coalitions follow from each other."""

    def __init__(self, form: Linked | Softmax, background: Floats) -> None:
        # measured: an addition and a link
        super().__init__(form.predict, background, 4e-8 * len(form.coef))
        self._form = form

    @cached_property
    def _addends(self) -> Floats:
        """Return what each column of the background adds to the margins, (N, d, K)."""
        return self._form.terms.addends(self._background)

    @cached_property
    def _margins_of_background(self) -> Floats:
        return np.asarray(self._form.terms.intercept + self._addends.sum(axis=1))

    def _values(self, row: Floats, weights: Floats) -> tuple[Ints, Floats]:
        differs = self._few(row)
        changes = (self._form.terms.addends(row[None]) - self._addends)[:, differs]
        start = self._margins_of_background
        coalitions = 1 << differs.size
        step = max(1, _NUMBERS // (coalitions * start.shape[1]))
        game = np.zeros((coalitions, self._form.intercept.size))
        for first in range(0, len(start), step):
            some = slice(first, first + step)
            margins = start[None, some]
            for j in range(differs.size):
                # the last column is the lowest bit of a coalition's number
                joined = np.stack([margins, margins + changes[some, j]], axis=1)
                margins = joined.reshape(-1, *margins.shape[1:])
            answers = self._form.answers(margins.reshape(-1, margins.shape[-1]))
            game += np.einsum("n,cnk->ck", weights[some], answers.reshape(*margins.shape[:2], -1))
        return differs, game.reshape((*(2,) * differs.size, -1))


def shapley(game: Floats) -> Floats:
    """Contributions, those alone, and last, (3, m, k), from values of all coalitions (2, ..., 2, k)."""
    m = game.ndim - 1
    sizes = np.indices((2,) * (m - 1)).sum(axis=0).reshape(-1)
    shares = np.array([1.0 / (m * comb(m - 1, size)) for size in range(m)])[sizes]
    changes = np.stack([np.diff(game, axis=j).reshape(sizes.size, -1) for j in range(m)])
    return np.stack([np.einsum("s,jsk->jk", shares, changes), changes[:, 0], changes[:, -1]])
