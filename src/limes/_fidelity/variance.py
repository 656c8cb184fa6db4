r"""Var_w f of a form, and effects of cells, where they have closed forms: nothing is drawn.

Columns of a table are independent under w, so that

    f = Σ_j f_j(x_j):             Var_w f = Σ_j Var_w f_j
    f = c + Σ_i a_i ∏_j g_ij(x_j):   E_w (f - c)² = Σ_il a_i a_l ∏_j E_w[g_ij g_lj]    for few terms i
    f = a single tree:            E_w (f - c)² = Σ_leaves (value - c)² P_w(leaf)
    f = a few trees:              the same for pairs of leaves, which may exclude each other or not
    f = link(S):                  the square of a link is a link, too (``models/forms/_links.py``)

The first four need integrals of products of one-dimensional functions only (`Products`). For links

    Var link(S) = E link²(S) - (E link(S))²,    Var Σ_h v_h cos S_h by cosines of sums and differences.

The variance of a probability near 1 is computed as that of its complement, whose moments keep their digits.
Where the difference cancels all the same, or a bound is not met, it is nan. Everything is divided by a unit,
one an output, so that squares of large answers stay finite. Other forms have no cheap closed form: their
variance is estimated on rows of w (``weighted_rows.py``).

Effects of cells, E_w[f | x_j in cell b] - E_w f: with V_ij(b) = E[g_ij | cell b], its mean
m_ij = Σ_b q_jb V_ij(b) and its deviation D_ij(b) = V_ij(b) - m_ij, a sum of products has

    effect_j(b)   = Σ_i a_i D_ij(b) ∏_{l≠j} m_il
    pair_jk(b, c) = Σ_i a_i D_ij(b) D_ik(c) ∏_{l≠j,k} m_il
                  = E_w[f | b, c] - E_w[f | b] - E_w[f | c] + E_w f,

and a sum Σ_j f_j(x_j) has the deviations of f_j themselves, and no pair effects. A forest's effects are
computed by one compiled pass over its nodes, for many rows at once (``forest.py``), those of links and
networks by their expectations (`LawCells`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.forest import ForestExpectation
from limes._expectations.linked import LinkedExpectation
from limes._expectations.linked_words import LinkedWordsExpectation
from limes._expectations.moments import REFUSED, ExactMoments, ProductExpectation, explain_rows
from limes._expectations.summed import SummedExpectation
from limes._fidelity.weighted_rows import centred
from limes._functions import Density, Filled, Function, Identity, Interval, Members, Stacked, Step, texture
from limes.designs._column import ColumnOfLaws
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._marginals import Marginal
from limes.designs._product import CellRows, ProductDesign, ProductFamily, Rows
from limes.exceptions import InputError, ModelError
from limes.models.forms._base import Combination, Form, Reduced, Reducible, Sum, SumOfProducts, outputs_of
from limes.models.forms._linked import Linked, Ridges
from limes.models.forms._links import SQUARES
from limes.models.forms._presence import NormalizedLinear
from limes.models.forms._trees import Forest

# Terms of a sum of products, of which all pairs are integrated
_MOST_TERMS = 96
# Pairs of a forest's leaves times columns: some 5 ms a row
_MOST_PAIRS = 2_000_000
# A variance below this share of a mean square has lost digits: of trees, and of links, whose moments are
# known to 1e-13
_TREE_CANCELS, _LINK_CANCELS = 1e-6, 2e-4
# Moments of links have nine digits down to the first number, or are refused; of words down to the second
_SMALLEST, _SMALLEST_OF_WORDS = 1e-280, 1e-12
# Largest number of cosines whose pairs are used
_MOST_COSINES = 128
# Laws with each cell as the feature of which tables are made for all rows, such designs that are computed
# together, and cells of all columns beyond which there are too many
_MOST_LAWS, _DESIGNS, _MOST_CELLS = 8192, 4096, 2000
# Terms x cells of all columns that are tabulated: 80 MB of float64
_MOST_NUMBERS = 10_000_000

Design: TypeAlias = ProductDesign | ExchangeableDesign
# The design of a row, by its position
DesignAt: TypeAlias = Callable[[int], ProductDesign]
Terms: TypeAlias = list[tuple[float, Sum | SumOfProducts]]


def exact_variance(
    form: Form, unit: Floats
) -> SumVariance | ProductsVariance | TreeVariance | ForestVariance | LinkVariance | None:
    """Choose the closed form of Var_w (f / unit), for units (k,); None where it is not cheap."""
    if isinstance(form, Forest):
        return TreeVariance(form, unit) if len(form.roots) == 1 else ForestVariance.of(form, unit)
    if isinstance(form, Linked | Ridges):
        return link_variance(form, unit)
    if not isinstance(form, Reducible):
        return None
    reduced = form.reduce()
    if isinstance(reduced, Sum):
        return SumVariance(reduced, unit)
    return ProductsVariance(reduced, unit) if len(reduced.coef) <= _MOST_TERMS else None


@dataclass(frozen=True, eq=False)
class Products:
    """Products h_l · h_r of pairs (l, r) of h = transform @ g - center, g being m functions of a column."""

    functions: Function  # g
    transform: Floats  # (q, m)
    center: Floats  # (q,)
    left: Ints  # l, positions among the q functions h
    right: Ints

    def __call__(self, x: Floats) -> Floats:
        values = self.transform @ self.functions(x) - self.center[:, None]
        return np.asarray(values[self.left] * values[self.right])

    def integrate(self, density: Density) -> Floats:
        if isinstance(self.functions, Identity):
            return self._of_lines(density)
        cuts = _cuts(self.functions)
        if cuts is not None:
            # constant between the cuts: its values at their upper ends, and beyond the last
            beyond = np.nextafter(cuts[-1:], np.inf) if cuts.size else np.zeros(1)
            values = self(np.concatenate([cuts, beyond]))
            return Step(cuts, values, np.zeros(len(values))).integrate(density)
        return density.quadrature(self, _breaks(self.functions))

    def _of_lines(self, density: Density) -> Floats:
        """Integrate products of lines slope · (x - origin) + away, by powers of x - origin."""
        slope, line = self.transform[:, 0], np.array([np.inf])
        steep = slope[np.argmax(np.abs(slope))]
        origin = float(self.center[np.argmax(np.abs(slope))] / steep) if steep else 0.0
        away = slope * origin - self.center
        a, b, c, e = slope[self.left], slope[self.right], away[self.left], away[self.right]
        parts = (a * b, a * e + b * c, c * e)
        integrals = (density.square(origin), density.identity(origin), density.interval(-line, line))
        return np.asarray(
            sum(part[:, None] * integral for part, integral in zip(parts, integrals, strict=True))
        )


def _cuts(functions: Function) -> Floats | None:
    """The points between which the functions are constant; None where they are not."""
    match functions:
        case Interval(lower=lower, upper=upper):
            bounds = np.unique(np.concatenate([lower, upper]))
            return np.asarray(bounds[np.isfinite(bounds)])
        case Step():
            return functions.cuts
        case Filled(function=function):
            return _cuts(function)
        case Stacked(families=families):
            parts = [_cuts(family) for family in families]
            present = [part for part in parts if part is not None]
            return np.unique(np.concatenate(present)) if len(present) == len(parts) else None
    return None


def _breaks(functions: Function) -> Sequence[float]:
    """The points where the functions may jump or bend."""
    match functions:
        case Filled(function=function):
            return _breaks(function)
        case Stacked(families=families):
            return sorted({point for family in families for point in _breaks(family)})
    cuts = _cuts(functions)
    if cuts is not None:
        return tuple(cuts.tolist())
    center = getattr(functions, "center", ()) if hasattr(functions, "rate") else ()
    return (*getattr(functions, "breaks", ()), *np.unique(center).tolist())


class CellTables:
    """Integrals by cell of functions of a column; cached as long as designs share the column's law."""

    def __init__(self) -> None:
        # law and table, replaced together: a thread reads an entry once
        self._entries: dict[Hashable, tuple[Marginal, Floats]] = {}

    def get(self, key: Hashable, law: Marginal, function: Function) -> Floats:
        """E[function | cell], (m, p)."""
        entry = self._entries.get(key)
        if entry is None or entry[0] is not law:
            entry = self._entries[key] = (law, law.expect(function))
        return entry[1]


class SumVariance:
    """Σ_j Var_w f_j."""

    def __init__(self, form: Sum, unit: Floats) -> None:
        self._functions = form.functions
        self._loadings = [loading.reshape(-1, unit.size).T / unit[:, None] for loading in form.loadings]
        self._pairs = np.arange(unit.size)
        self._means, self._squares = CellTables(), CellTables()

    def variance(self, design: ProductDesign) -> Floats:
        total = np.zeros(self._pairs.size)
        for j, function in enumerate(self._functions):
            if function is not None:
                total += self._of_column(j, function, design.coordinates[j])
        return total

    def of_rows(self, family: ProductFamily, cells: Ints) -> Floats:
        """The variances at rows in these cells (n, d), (n, k), of a family whose designs they decide."""
        total = np.zeros((len(cells), self._pairs.size))
        for j, function in enumerate(self._functions):
            if function is not None:
                present, place = np.unique(cells[:, j], return_inverse=True)
                columns = [family.column_in(j, cell) for cell in present.tolist()]
                total += np.stack([self._of_column(j, function, column) for column in columns])[place]
        return total

    def _of_column(self, j: int, function: Function, coordinate: ColumnOfLaws) -> Floats:
        law, q, loading = coordinate.marginal, coordinate.probability, self._loadings[j]
        cells = loading @ self._means.get(j, law, function)  # (k, p)
        # about the likeliest cell's mean: where the others have next to no weight, nothing cancels
        likeliest = int(np.argmax(q))
        center = cells[:, likeliest]
        products = Products(function, loading, center, self._pairs, self._pairs)
        squares = self._squares.get((j, likeliest), law, products)
        return np.maximum(squares @ q - ((cells - center[:, None]) @ q) ** 2, 0.0)


class ProductsVariance:
    """Σ_il a_i a_l (E_w[g_i g_l] - E_w g_i E_w g_l), g_i being the products.

    With S_j = E_w[g_ij g_lj], M_j = E_w g_ij E_w g_lj and C_j their difference, computed about the likeliest
    cell's means, the covariances of the first columns follow from those of fewer ones without cancellation:

        ∏_{k≤j} S_k - ∏_{k≤j} M_k = (∏_{k<j} S_k - ∏_{k<j} M_k) M_j + (∏_{k<j} S_k) C_j.
    """

    def __init__(self, form: SumOfProducts, unit: Floats) -> None:
        self._form = form
        self._coef = form.coef.reshape(-1, unit.size) / unit
        self._left, self._right = np.triu_indices(len(form.coef))
        self._means, self._squares = CellTables(), CellTables()

    def variance(self, design: ProductDesign) -> Floats:
        m, left, right = len(self._coef), self._left, self._right
        covariance, square = np.zeros(left.size), np.ones(left.size)
        for j, function in enumerate(self._form.functions):
            if function is None:
                continue
            law, q = design.coordinates[j].marginal, design.coordinates[j].probability
            cells, likeliest = self._means.get(j, law, function), int(np.argmax(q))
            center = cells[:, likeliest]
            products = Products(function, np.eye(m), center, left, right)
            away, mean = (cells - center[:, None]) @ q, cells @ q
            both = mean[left] * mean[right]
            change = self._squares.get((j, likeliest), law, products) @ q - away[left] * away[right]
            covariance = covariance * both + square * change
            square = square * (both + change)
        # each pair of different products counts twice
        covariance = np.where(left == right, 1.0, 2.0) * covariance
        return np.maximum(covariance @ (self._coef[left] * self._coef[right]), 0.0)


class TreeVariance:
    """E_w (f - c)² - (E_w f - c)² of a single tree, whose leaves exclude each other, for one c."""

    def __init__(self, form: Forest, unit: Floats) -> None:
        self._values = form.value.reshape(form.feature.size, -1) / unit
        self._form = replace(form, value=self._values, intercept=np.zeros(unit.size))
        self._center = self._values[form.feature < 0].mean(axis=0)
        self._shared = self._powers(self._center)

    def variance(self, design: ProductDesign) -> Floats:
        mean, square = np.split(self._shared.moments(design).mean, 2)
        variance = square - mean**2
        if (variance > _TREE_CANCELS * square).all():
            return np.asarray(variance)
        # nearly all weight is on one leaf: squares about its value
        _, square = np.split(self._powers(mean + self._center).moments(design).mean, 2)
        return np.asarray(square)

    def _powers(self, center: Floats) -> ForestExpectation:
        """The expectation of f - c and (f - c)²."""
        away = self._values - center
        value = np.concatenate([away, away**2], axis=1)
        return ForestExpectation(replace(self._form, value=value, intercept=np.zeros(value.shape[1])))


class ForestVariance:
    """Σ_lm a_l a_m P_w(leaf l and leaf m) of a few trees, with the values a of each tree less its mean.

    A box of two leaves is a product over columns of the probability that x_j lies in both intervals: a sum
    over the regions between the column's thresholds, of which equal intervals are computed once.
    """

    def __init__(self, form: Forest, unit: Floats) -> None:
        self._values = form.value[form.feature < 0].reshape(-1, unit.size) / unit
        tree = np.zeros(form.feature.size, dtype=np.int64)
        tree[form.roots] = np.arange(len(form.roots))
        for node in np.flatnonzero(form.feature >= 0).tolist():
            # children come after their parent
            tree[[form.left[node], form.right[node]]] = tree[node]
        self._tree = tree[form.feature < 0]
        reached = form.reduce().functions
        self._columns = [
            (j, *_regions(function)) for j, function in enumerate(reached) if function is not None
        ]
        self._cells = CellTables()

    @classmethod
    def of(cls, form: Forest, unit: Floats) -> ForestVariance | None:
        """The closed form of a forest; None of one whose pairs of leaves take too long."""
        leaves, columns = np.count_nonzero(form.feature < 0), np.unique(form.feature[form.feature >= 0]).size
        return cls(form, unit) if leaves**2 * columns <= _MOST_PAIRS else None

    def variance(self, design: ProductDesign) -> Floats:
        pairs = np.ones((len(self._tree),) * 2)
        for j, region, inside, which in self._columns:
            law, q = design.coordinates[j].marginal, design.coordinates[j].probability
            mass = self._cells.get(j, law, region) @ q
            both = (inside * mass) @ inside.T
            pairs *= both.take(which, axis=1).take(which, axis=0)
        reached = np.diag(pairs)[:, None]
        total = [np.bincount(self._tree, column) for column in (reached * self._values).T]
        away = self._values - np.stack(total, axis=1)[self._tree]
        return np.asarray(np.maximum((away * (pairs @ away)).sum(axis=0), 0.0))


def _regions(function: Function) -> tuple[Function, Floats, Ints]:
    """Indicators of the regions (R,) in which functions (m,) of 0 and 1 are constant, and their values there.

    Of functions that are equal there is one row, (u, R); the last array (m,) is each function's row.
    """
    if isinstance(function, Members):
        one = np.eye(function.allowed.shape[1] + 2, dtype=np.bool_)
        region: Function = Members(one[:, :-2], one[:, -1], one[:, -2], function.group)
        values = function.table
    else:
        breaks = texture(function).breaks
        missing = np.arange(breaks.size + 2) == breaks.size + 1
        lower, upper = np.r_[-np.inf, breaks, np.inf], np.r_[breaks, np.inf, -np.inf]
        region = Interval(lower, upper, missing)
        values = function(np.where(missing, np.nan, upper)) > 0.0
    inside, which = np.unique(values, axis=0, return_inverse=True)
    return region, inside.astype(np.float64), which.reshape(-1)


class LinkVariance:
    """Var_w (f / unit) of a link, (k,), as a difference of moments; nan where it has no digits."""

    def __init__(
        self, sides: Sequence[tuple[ExactMoments, ExactMoments]], unit: Floats, smallest: float
    ) -> None:
        # expectations of g and g², where g is f plus or minus a constant; the pair with most digits counts
        self._sides, self._unit, self._smallest = sides, unit, smallest

    def variance(self, design: Design) -> Floats:
        def mean(expectation: Any) -> Floats:
            try:
                return np.asarray(expectation.moments(design).mean.reshape(-1), dtype=np.float64)
            except (InputError, ModelError):
                return np.full(self._unit.size, np.nan)

        return self._variance(mean)

    def at_rows(self, family: ProductFamily, rows: Floats, cells: Ints) -> Floats:
        """The variances at rows (n, d) with these cells (n, d), (n, k)."""
        its = Rows(family, rows, cells)
        return self._variance(lambda expectation: _means(expectation, its, self._unit.size))

    def _variance(self, mean_of: Callable[[ExactMoments], Floats]) -> Floats:
        pairs = [(mean_of(first), mean_of(second)) for first, second in self._sides]
        best, smallest = np.full(pairs[0][0].shape, np.nan), np.full(pairs[0][0].shape, np.inf)
        for mean, square in pairs:
            variance = square - mean**2
            better = (square < smallest) & (square > self._smallest) & (variance > _LINK_CANCELS * square)
            best = np.where(better, variance, best)
            smallest = np.where(better, square, smallest)
        return np.asarray(best / self._unit**2)


def _means(expectation: Any, rows: Rows, outputs: int) -> Floats:
    """E_w at n rows, (n, k); nan at rows that are refused."""
    try:
        _, moments = explain_rows(expectation, rows)
        return np.asarray(moments.mean.reshape(len(rows), outputs), dtype=np.float64)
    except (InputError, ModelError):
        if len(rows) == 1:
            return np.full((1, outputs), np.nan)
    # one refused row refuses its block: try its halves
    halves = np.array_split(np.arange(len(rows)), [len(rows) // 2])
    return np.concatenate([_means(expectation, rows.take(half), outputs) for half in halves])


def link_variance(form: Linked | Ridges, unit: Floats, kind: type = ProductDesign) -> LinkVariance | None:
    """The closed form of Var_w (f / unit) for a link; None if the square of f is no link of sums."""
    linked = form.expanded if isinstance(form, Ridges) else form
    if not isinstance(linked, Linked):
        return None
    if linked.link == "cos" and len(_loads(linked)) <= _MOST_COSINES:
        sides = [(_without_intercept(linked), _squared_cosines(linked))]
    elif linked.link == "exp" and not linked.adds_up:
        sides = [_powers(linked, "exp", 2.0)]
    elif f"{linked.link} squared" in SQUARES and not linked.adds_up:
        sides = [_powers(linked, f"{linked.link} squared")]
        if linked.curve.is_symmetric and not isinstance(linked.margin, NormalizedLinear):
            sides.append(_powers(_without_intercept(linked, -1.0), f"{linked.link} squared"))
    else:
        return None
    smallest = _SMALLEST if kind is ProductDesign else _SMALLEST_OF_WORDS
    return LinkVariance([(_expectation(f, kind), _expectation(g, kind)) for f, g in sides], unit, smallest)


def _expectation(form: Linked, kind: type) -> Any:
    if kind is not ProductDesign:
        return LinkedWordsExpectation(form)
    return SummedExpectation(form) if form.adds_up else LinkedExpectation(form, _SMALLEST)


def _loads(form: Linked) -> Floats:
    """Coefficients (K, k)."""
    assert form.coef is not None  # noqa: S101 - set by __post_init__
    return form.coef.reshape(len(form.coef), -1)


def _without_intercept(form: Linked, scale: float = 1.0) -> Linked:
    """Σ coef link(scale · margin)."""
    margin = form.margin
    if scale != 1.0 and isinstance(margin, NormalizedLinear):
        margin = replace(margin, c=scale * margin.c, intercept=scale * margin.intercept)
    elif scale != 1.0:
        margin = Combination((margin,), np.array([scale]), np.zeros(outputs_of(margin)))
    return Linked(margin, form.link, _loads(form), np.zeros(_loads(form).shape[1]))


def _powers(form: Linked, square: str, scale: float = 1.0) -> tuple[Linked, Linked]:
    """Σ coef link and its square: an output has one link."""
    first = _without_intercept(form)
    margin = _without_intercept(form, scale).margin
    return first, Linked(margin, square, _loads(form) ** 2, first.intercept)


def _squared_cosines(form: Linked) -> Linked:
    """(Σ_h v_h cos S_h)² = Σ_h v_h²/2 + Σ_{h≤k} (...) [cos(S_h + S_k) + cos(S_h - S_k)]."""
    coef, terms = _loads(form), form.terms
    left, right = np.triu_indices(len(coef))
    half = np.where(left == right, 0.5, 1.0)[:, None] * coef[left] * coef[right]

    def pairs(values: Floats) -> Floats:
        return np.concatenate(
            [values[..., left] + values[..., right], values[..., left] - values[..., right]], -1
        )

    loadings = tuple(pairs(loading) for loading in terms.loadings)
    margin = Reduced(Sum(terms.functions, loadings, pairs(terms.intercept)))
    return Linked(margin, "cos", np.concatenate([half, half]), np.zeros(coef.shape[1]))


def exact_cells(form: Form, expectation: object, family: ProductFamily) -> CellEffects | None:
    """Choose the exact effects of a form; None where no exact ones are feasible."""
    terms = _feasible_terms(form, family)
    if isinstance(expectation, ForestExpectation) and expectation.shares_tables(family):
        return ForestCells(expectation, family, terms)
    if terms is not None:
        return TermCells(terms)
    if sum(law.cells.count for law in family.marginals) > _MOST_CELLS:
        return None
    if not isinstance(expectation, ProductExpectation):
        return None
    return LawCells(expectation, family, prod(outputs_of(form)))


def _feasible_terms(form: Form, family: ProductFamily) -> Terms | None:
    """The form as a weighted sum of sums and sums of products; None if their tables are too large."""
    most = _MOST_NUMBERS // sum(law.cells.count for law in family.marginals)
    parts, terms = list(_parts(form, 1.0)), []
    if any(isinstance(part, Forest) and (part.feature < 0).sum() > most for _, part in parts):
        return None
    for weight, part in parts:
        reduced = part.reduce() if isinstance(part, Reducible) else None
        if reduced is None or (isinstance(reduced, SumOfProducts) and len(reduced.coef) > most):
            return None
        terms.append((weight, reduced))
    return terms


def _parts(form: Form, weight: float) -> Iterator[tuple[float, Form]]:
    if not isinstance(form, Combination):
        yield weight, form
        return
    for part, share in zip(form.parts, form.weights, strict=True):
        yield from _parts(part, weight * float(share))


class TermCells:
    """Effects of a weighted sum of sums and sums of products, for k outputs."""

    is_quick = True

    def __init__(self, terms: Terms) -> None:
        self._terms, self._outputs = terms, terms[0][1].intercept.size
        # whether pairs of columns may have effects
        self.interacts = not all(isinstance(part, Sum) for _, part in terms)
        self._tables = CellTables()

    def effects(self, cells: Ints, design_at: DesignAt, masses: Floats, counts: Ints) -> Floats:
        """E_w[f | cell] - E_w f for every cell of each column at n rows, (n, d, B, k).

        ``cells`` (n, d) are those of the rows; ``masses`` (n, d, B) and ``counts`` (n, d) come from
        `cell_masses`. Effects are 0 beyond a column's last cell.
        """
        # the cells of one background have the same means in a sum, whatever the row
        shared = not self.interacts and design_at(0).family is not None
        means = np.zeros((1 if shared else len(cells), *masses.shape[1:], self._outputs))
        for i, into in enumerate(means):
            for column, values in zip(into, self._means(design_at(i)), strict=True):
                column[: len(values)] = values
        return _centred(means, masses, counts)

    def _means(self, design: ProductDesign) -> list[Floats]:
        total = [np.zeros((c.marginal.cells.count, self._outputs)) for c in design.coordinates]
        for weight, terms, tables, means in self._tabulated(design):
            if isinstance(terms, Sum):
                for j, table in tables.items():
                    total[j] += weight * (table.T @ terms.loadings[j].reshape(-1, self._outputs))
                continue
            coef = weight * terms.coef.reshape(-1, self._outputs)
            for j, table in tables.items():
                total[j] += table.T @ (coef * _product(means, {j}, len(coef))[:, None])
        return total

    def pairs(self, design: ProductDesign, columns: Sequence[tuple[int, int]]) -> list[Floats] | None:
        """Effects of pairs of cells of these columns, (p_j, p_k, k) each."""
        sizes = [c.marginal.cells.count for c in design.coordinates]
        total = [np.zeros((sizes[j], sizes[k], self._outputs)) for j, k in columns]
        for weight, terms, tables, means in self._tabulated(design):
            if isinstance(terms, Sum):
                continue
            coef = weight * terms.coef.reshape(-1, self._outputs)
            for at, (j, k) in enumerate(columns):
                if j in tables and k in tables:
                    others = _product(means, {j, k}, len(coef))
                    for output in range(self._outputs):
                        weighted = tables[j] * (coef[:, output] * others)[:, None]
                        total[at][:, :, output] += weighted.T @ tables[k]
        masses = [c.probability for c in design.coordinates]
        return [centred(values, masses[j], masses[k]) for values, (j, k) in zip(total, columns, strict=True)]

    def _tabulated(
        self, design: ProductDesign
    ) -> Iterator[tuple[float, Sum | SumOfProducts, dict[int, Floats], dict[int, Floats]]]:
        """Weights and terms, with E[g_j | cell] (m, p) of the columns that they read and its means (m,)."""
        columns = design.coordinates
        for i, (weight, terms) in enumerate(self._terms):
            read = [(j, function) for j, function in enumerate(terms.functions) if function is not None]
            tables = {j: self._tables.get((i, j), columns[j].marginal, function) for j, function in read}
            yield weight, terms, tables, {j: table @ columns[j].probability for j, table in tables.items()}


class ForestCells:
    """Effects of a forest under weights that count cells."""

    interacts = True  # a tree may split on several columns
    is_quick = True

    def __init__(self, expectation: ForestExpectation, family: ProductFamily, terms: Terms | None) -> None:
        self._expectation, self._family = expectation, family
        self._terms = None if terms is None else TermCells(terms)

    def effects(
        self,
        cells: Ints,
        design_at: DesignAt,  # noqa: ARG002 - cells decide the designs
        masses: Floats,
        counts: Ints,
    ) -> Floats:
        if self._every_cell_counts:
            means = self._expectation.given_cells(self._family, cells)
        else:
            means = np.stack([self._each_as_instance(row) for row in cells])
        return _centred(means, masses, counts)

    @cached_property
    def _every_cell_counts(self) -> bool:
        return all((column.masses > 0.0).all() for column in self._family.columns)

    def _each_as_instance(self, cells: Ints) -> Floats:
        """E_w[f | cell], (d, B, k), by a pass for each cell."""
        # E_w f + Γ / α where the cell is the instance's; α is positive even for one without background rows
        sizes = [law.cells.count for law in self._family.marginals]
        column, cell = np.array([(j, b) for j, size in enumerate(sizes) for b in range(size)]).T
        patterns = np.repeat(cells[None], len(column), axis=0)
        patterns[np.arange(len(column)), column] = cell
        features = self._family.features(patterns)
        moments = self._expectation.at(Rows.in_cells(self._family, patterns))
        place = np.arange(len(column)), column
        gamma = moments.gamma.reshape(*patterns.shape, -1)[place]
        values = moments.mean.reshape(len(column), -1) + gamma / features.inclusion[place][:, None]
        means = np.zeros((len(sizes), max(sizes), values.shape[1]))
        means[column, cell] = values
        return means

    def pairs(self, design: ProductDesign, columns: Sequence[tuple[int, int]]) -> list[Floats] | None:
        """Effects of pairs of cells of these columns, by the leaves; None if these are too many."""
        return None if self._terms is None else self._terms.pairs(design, columns)


class LawCells:
    """Effects of a form that has no faster way: by its expectation, with each cell as the feature once.

    E_w[f | cell b] - E_w f = Γ_b / P_w(b) for the feature 1[x_j in cell b], of all columns j at once. Effects
    of a pair are the differences that another column makes to a column's effects by keeping to a cell.
    """

    interacts, is_quick = True, False

    def __init__(self, expectation: ProductExpectation, family: ProductFamily, outputs: int) -> None:
        self._expectation, self._family, self._outputs = expectation, family, outputs
        # rows of one background may have tables of all their laws
        laws = sum(law.cells.count * (law.cells.count + 1) for law in family.marginals)
        self._shares = expectation.shares_tables(family) and laws <= _MOST_LAWS and expectation.holds(laws)

    @cached_property
    def _shared(self) -> CellRows:
        return CellRows.of(self._family.columns, self._family)

    def effects(self, cells: Ints, design_at: DesignAt, masses: Floats, counts: Ints) -> Floats:
        """The same as of `TermCells`; NaN at rows that the expectation refuses."""
        values = np.zeros((*masses.shape, self._outputs))
        if self._shares:
            step = max(1, _DESIGNS // masses.shape[2])
            for start in range(0, len(cells), step):
                some = slice(start, start + step)
                self._fill(values[some], self._shared, cells[some])
        else:
            for i, into in enumerate(values):
                design = design_at(i)
                first = np.zeros((1, design.size), dtype=np.int64)
                self._fill(into[None], CellRows.of(design.coordinates), first)
        return _centred(values, masses, counts)

    def _fill(self, values: Floats, rows: CellRows, laws: Ints) -> None:
        try:
            effects = self._in_cells(rows, laws)
        except REFUSED:
            if len(laws) == 1:
                values[:] = np.nan
                return
            # one refused row refuses its block: try its halves
            half = len(laws) // 2
            for some in (slice(half), slice(half, None)):
                self._fill(values[some], rows, laws[some])
        else:
            values[:, :, : effects.shape[2]] = effects

    def _in_cells(self, rows: CellRows, laws: Ints) -> Floats:
        """E_w[f | cell] - E_w f under laws (n, d), (n, d, B, k)."""
        each = rows.at(laws)
        gamma = self._expectation.at(each).gamma
        inclusion = each.features.inclusion
        values = gamma.reshape(*inclusion.shape, -1) / inclusion[..., None]
        return np.asarray(values.reshape(len(laws), -1, *values.shape[1:]).swapaxes(1, 2))

    def pairs(self, design: ProductDesign, columns: Sequence[tuple[int, int]]) -> list[Floats] | None:
        """Effects of pairs of cells of these columns, (p_j, p_k, k) each; None where they are refused."""
        rows, laws = CellRows.of(design.coordinates), np.zeros(design.size, dtype=np.int64)
        if self._shares and design.cells is not None:
            rows, laws = self._shared, design.cells
        counts, masses = rows.counts, [column.probability for column in design.coordinates]
        try:
            alone, beside = self._in_cells(rows, laws[None])[0], {}
            for j in sorted({j for j, _ in columns}):
                inside = np.repeat(laws[None], counts[j], axis=0)
                inside[:, j] = -1 - np.arange(counts[j])
                beside[j] = self._in_cells(rows, inside) - alone
        except REFUSED:
            return None
        return [centred(beside[j][:, k, : counts[k]], masses[j], masses[k]) for j, k in columns]


CellEffects: TypeAlias = TermCells | ForestCells | LawCells


def cell_masses(family: ProductFamily, cells: Ints, design_at: DesignAt) -> tuple[Floats, Ints]:
    """P_w(cell) of every column at n rows, (n, d, B), 0 beyond its last cell; numbers of cells, (n, d).

    ``cells`` (n, d) are those of the rows.
    """
    if family.by_cell:
        counts = np.array([law.cells.count for law in family.marginals])
        return family.masses[np.arange(cells.shape[1]), cells], np.broadcast_to(counts, cells.shape)
    rows = [[column.probability for column in design_at(i).coordinates] for i in range(len(cells))]
    counts = np.array([[q.size for q in row] for row in rows])
    masses = np.zeros((*counts.shape, counts.max()))
    for into, row in zip(masses, rows, strict=True):
        for column, q in zip(into, row, strict=True):
            column[: q.size] = q
    return masses, counts


def _centred(means: Floats, masses: Floats, counts: Ints) -> Floats:
    """Means of cells (n or 1, d, >= B, k) less their mean, (n, d, B, k); 0 beyond the last cell."""
    means = means[:, :, : masses.shape[2]]
    exists = np.arange(masses.shape[2]) < counts[..., None]
    means = np.broadcast_to(means, (*masses.shape, means.shape[3]))
    away = means - np.einsum("ndb,ndbk->ndk", masses, means)[:, :, None]
    return np.where(exists[..., None], away, 0.0)


def _product(means: dict[int, Floats], without: set[int], size: int) -> Floats:
    """Products (m,) of the columns' means, except those of some columns."""
    total = np.ones(size)
    for j, mean in means.items():
        if j not in without:
            total = total * mean
    return total
