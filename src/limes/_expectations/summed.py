r"""Exact expectations of sums of many links under a product design: networks with one hidden layer.

f(x) = c + Σ_h v_h link(S_h(x)), each S_h a sum over columns. Every link is a sum of exponentials on the range
of S_h (``models/forms/_links.py``), E e^{zS_h} a product over columns, and all nodes of
all h go through the products together:

    E_w f = Σ_n W_n ∏_j mean_j(e^{z_n f_jh(n)}),    β_j = Σ_n W_n contrast_j(...) ∏_{k≠j} mean_k(...).

Where several links add up nothing is gained by the relative accuracy of each: the contour is Re z = 0, errors
add up to Σ_h |v_h| ε_h, and a row where that is above 1e-9 of the row's numbers is refused.

The decay of the columns' characteristic functions decides how many terms the series of a kink needs. For a
density p with total variation V(p), jumps that add up to J, and derivative p' between them,

    |∫ p e^{iτx} dx| <= min(∫ p, V(p) / τ, J / τ + V(p') / τ²).

A column's law is a mixture of truncated normals, whose jumps partly cancel where two cells meet, and of
atoms, which do not decay: their mass A is added. A normal column without bins has e^{-τ²σ²/2}.

Kinks of columns that take few values, whose series would not end, are summed over their combinations, met in
the middle: the columns are split into two halves, whose sums A and B take n_A and n_B values. With the values
of B sorted

    E max(A + B, 0) = Σ_a P(A = a) G(a),    G(a) = Σ_{b > -a} P(B = b) (a + b) = a P(B > -a) + E[B; B > -a],

two cumulative sums, so that n_A + n_B numbers suffice for n_A n_B combinations. The contrast of a column of A
has other weights of a and the same G; columns of B have contrasts with the halves exchanged. Orders are made
once for a background, weights once for a row, and all units of a network share them (Horowitz & Sahni 1974).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod

import numpy as np

from limes._arrays import Floats, Ints, aligned
from limes._expectations.groups import Group, factors_of
from limes._expectations.moments import Moments
from limes._expectations.tabulated import (
    TOLERANCE,
    ColumnTerm,
    NodeGroup,
    NodeProducts,
    Numbers,
    TabulatedExpectation,
    WaveBundle,
    product_rounding,
)
from limes._functions import Function, line_of
from limes.designs._column import IndicatorColumn, KeptColumn, RangedColumn, SlopeColumn
from limes.designs._gaussian import GaussianPieces
from limes.designs._marginals import Atoms, Marginal
from limes.designs._product import KeptRows
from limes.exceptions import InputError, ModelError
from limes.models.forms._linked import Linked
from limes.models.forms._links import Complexes, ExponentialSum, Link, Relu

Bound = Callable[[Floats], Floats]

# Nodes of an activation, about: what tables may cost is decided before they are made
_USUAL_NODES = 128
# Largest number of values of a half, and of the halves of all units together: up to 50 ms a row
_MOST_VALUES, _MOST_NUMBERS = 4096, 1_000_000
# Complex numbers of a background's tables: 256 MB
_LARGEST = 16_000_000
# Exponents are clipped to this: no float64 overflows
_STEEPEST = 600.0


class SummedExpectation(TabulatedExpectation["_Network | Halves"]):
    """Moments of sums of links; refused where a range is too wide or the error of a row is above 1e-9."""

    _form: Linked

    def __init__(self, form: Linked) -> None:
        super().__init__(form)
        # kinks of columns of many combinations of values have no exact expectation
        self.needs_densities = isinstance(form.curve, Relu)
        # a column whose value may be kept has no density, and a group's values are not of one column
        if not self.needs_densities and not form.margins.interactions:
            self._seconds_of_20 = 0.0005 * len(form.margins.terms.intercept)

    def holds(self, laws: int) -> bool:
        return 2 * laws * self._form.margins.terms.intercept.size * _USUAL_NODES <= _LARGEST

    def _tabulate(self, columns: Sequence[RangedColumn]) -> _Network | Halves:
        halves = Halves.of(self._form, columns) if self.needs_densities else None
        return _Network.of(self._form, columns) if halves is None else halves

    def _kept(self, rows: KeptRows) -> _Network | Halves:
        drawn = None if self._seconds_of_20 is None else self._drawn(rows)
        return _KeptNetwork.of_rows(drawn, rows) if isinstance(drawn, _Network) else super()._kept(rows)

    def _moments(self, tables: _Network | Halves, index: Ints, variance: Floats) -> Moments:
        mean, contrast = tables.expect(index)
        size = np.abs(mean) + np.abs(contrast).max(axis=1, initial=0.0)
        wrong = ~(tables.error <= TOLERANCE * size)
        if wrong.any():
            row, output = np.argwhere(wrong)[0]
            error = np.broadcast_to(tables.error, size.shape)[row, output]
            raise ModelError(
                f"a sum of links of about {size[row, output]:.3g} is known to "
                f"{error:.1g} only, as its terms cancel"
            )
        outputs = self._form.intercept.shape
        contrast = contrast.reshape(*index.shape, *outputs)
        gamma = contrast * aligned(variance, contrast)
        return Moments.exact(mean.reshape(len(index), *outputs), gamma, designs=(len(index),))


@dataclass(frozen=True, eq=False)
class _Network:
    """Tables of one form under the laws of every column."""

    products: NodeProducts  # over all margins' nodes
    lines: Sequence[tuple[int, Floats, Floats]]  # column, mean and contrast of the linear part, (V, k) each
    constant: Floats  # (k,)
    errors: Floats  # of what each margin adds, (K, k)
    factors: Sequence[ColumnTerm | Group]
    groups: Sequence[NodeGroup]  # of the margins
    slopes: Floats  # of the margins in the linear part, (K, k)
    rate: float | None  # of the link

    @classmethod
    def of(cls, form: Linked, columns: Sequence[RangedColumn]) -> _Network:
        """Choose the nodes of every margin, and tabulate them."""
        assert form.coef is not None  # noqa: S101 - set by __post_init__
        coef = form.coef.reshape(len(form.coef), -1)
        factors = factors_of(form.margins, columns, slice(None))
        constants = form.margins.terms.intercept
        rules = _rules(form.curve, factors, constants)
        groups = [NodeGroup(rule.nodes, rule.equidistant) for rule in rules]
        slopes = coef * np.array([rule.slope for rule in rules])[:, None]
        tables = [factor.tables(groups, Numbers.of) for factor in factors]
        sizes = sum([table.offsets for table in tables], np.zeros(sum(rule.nodes.size for rule in rules)))
        owner = np.repeat(np.arange(len(rules)), [rule.nodes.size for rule in rules])
        weights: Complexes = np.concatenate([rule.weights for rule in rules]) * np.exp(
            np.concatenate([r.nodes * c + r.log_weights for r, c in zip(rules, constants, strict=True)])
            + sizes
        )
        rounding = product_rounding(sum(factor.places.size for factor in factors))
        errors = np.array([rule.error for rule in rules]) + rounding * (
            1.0 + np.bincount(owner, np.abs(weights), minlength=len(rules))
        )
        return cls(
            NodeProducts([factor.places for factor in factors], tables, (weights[:, None] * coef[owner]).T),
            [_line(factor, slopes) for factor in factors] if slopes.any() else [],
            form.intercept.reshape(-1)
            + np.array([rule.base + rule.rest for rule in rules]) @ coef
            + constants @ slopes,
            errors[:, None] * np.abs(coef),
            factors,
            groups,
            slopes,
            form.curve.rate,
        )

    @cached_property
    def error(self) -> Floats:
        """Errors of all expectations (k,), or of each row (n, k)."""
        return np.asarray(self.errors.sum(axis=0))

    @property
    def terms(self) -> list[ColumnTerm]:
        """The factors of single columns."""
        return [factor for factor in self.factors if isinstance(factor, ColumnTerm)]

    @cached_property
    def waves(self) -> list[WaveBundle]:
        """e^{zf} of the nodes of all margins, for each column."""
        return [factor.waves(self.groups) for factor in self.terms]

    def expect(self, index: Ints) -> tuple[Floats, Floats]:
        """E f (n, k) and contrasts (n, d, k) of rows, given the law of each column, (n, d)."""
        mean, contrast = self.products.expect(index)
        mean += self.constant
        for place, of_mean, of_contrast in self.lines:
            mean += of_mean[index[:, place]]
            contrast[:, place] += of_contrast[index[:, place]]
        return mean, contrast


@dataclass(frozen=True, eq=False)
class _KeptNetwork(_Network):
    """The same at rows whose values may be kept."""

    drawn: _Network
    rows: KeptRows
    beyond: Floats  # how far each margin leaves its range, (K, rows)

    @classmethod
    def of_rows(cls, drawn: _Network, rows: KeptRows) -> _KeptNetwork:
        """ModelError where a row is outside the ranges that the nodes are for, and errors are not known."""
        beyond = np.zeros((2, drawn.slopes.shape[0], rows.alone[0].x.size))
        for factor in drawn.terms:
            values = factor.loading.T @ factor.function(rows.alone[factor.place].x)
            sides = factor.lower[:, None] - values, values - factor.upper[:, None]
            beyond += np.maximum(sides, 0.0)
        if not np.isfinite(beyond).all() or (drawn.rate is None and beyond.any()):
            raise ModelError("a row's value is outside the range of the background's law")
        same = {each.name: getattr(drawn, each.name) for each in fields(drawn)}
        return cls(**same, drawn=drawn, rows=rows, beyond=beyond.max(axis=0))

    @cached_property
    def error(self) -> Floats:
        """Errors are larger where a margin leaves the range that its nodes are for."""
        if not self.beyond.any():
            return self.drawn.error
        growth = np.exp(np.minimum((self.rate or 0.0) * self.beyond, _STEEPEST)).T
        # row by row, whatever the rows beside it
        return np.stack([(row[:, None] * self.errors).sum(axis=0) for row in growth])[self.rows.point]

    def expect(self, index: Ints) -> tuple[Floats, Floats]:
        rows, factors = self.rows, self.terms
        columns = [rows.alone[factor.place] for factor in factors]
        shape = len(factors), len(rows)
        laws = np.reshape([column.law[rows.point] for column in columns], shape)
        waves = [(wave, column.x) for wave, column in zip(self.drawn.waves, columns, strict=True)]
        shares = rows.shares_of([factor.place for factor in factors])
        mean, changes = self.products.kept.expect(
            lambda some: [wave(x[some]).T for wave, x in waves], laws, rows.point, shares
        )
        contrast = np.zeros((*index.shape, mean.shape[1]))
        contrast[:, [factor.place for factor in factors]] = changes
        mean += self.constant
        its = zip(self.lines, factors, columns, laws, shares[..., None], strict=False)
        for (place, of_mean, _), factor, column, law, t in its:
            kept = (factor.function(column.x).T @ (factor.loading @ self.slopes))[rows.point]
            mean += t[:, 0] * kept + t[:, 1] * of_mean[law]
            contrast[:, place] += kept - of_mean[law]
        return mean, contrast


def _rules(link: Link, factors: Sequence[ColumnTerm | Group], constants: Floats) -> list[ExponentialSum]:
    """The exponentials of every margin on its range, as many as its law requires."""
    lower = constants + sum(factor.lower for factor in factors)
    upper = constants + sum(factor.upper for factor in factors)
    # kinks of groups are refused, and others need no decay
    columns = [factor for factor in factors if isinstance(factor, ColumnTerm)]
    envelopes: list[Envelope] = [envelope(column.column) for column in columns]
    slopes = np.array([slope_of(column.function, column.loading) for column in columns])
    slopes = slopes.reshape(len(columns), constants.size)
    return [
        link.sum(float(low), float(high), 0.0, joint_decay(envelopes, slopes[:, k]))
        for k, (low, high) in enumerate(zip(lower, upper, strict=True))
    ]


def _line(factor: ColumnTerm | Group, slopes: Floats) -> tuple[int, Floats, Floats]:
    """Column, mean and contrast of Σ_h slopes[h] f_h under every law, (V, k) each."""
    if not isinstance(factor, ColumnTerm):
        raise InputError("a kink of columns that interact has no exact expectation")
    loading = factor.loading @ slopes
    mean, contrast = (values.real for values in factor.tabulate(factor.function))
    return factor.place, mean @ loading, contrast @ loading


# -- decay ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Envelope:
    """Bounds of |mean(e^{iτx})| and of |contrast(e^{iτx})| that do not rise with τ > 0."""

    mean: Bound
    contrast: Bound
    steepest: float  # bounds the contrast of any function that lies in [-1, 1]


def envelope(column: RangedColumn) -> Envelope:
    """Bounds that hold for all laws of a column."""
    if isinstance(column, SlopeColumn):
        return _of_slope(column)
    if isinstance(column, KeptColumn):  # a value that may be kept has no density
        return Envelope(np.ones_like, lambda tau: np.full(tau.shape, 2.0), 2.0)
    assert isinstance(column, IndicatorColumn)  # noqa: S101 - there is no other kind
    law, inside = column.marginal, np.eye(column.elsewhere.shape[1])[column.cell]
    kept, changed = ([_mixture(law, q) for q in each] for each in (inside, column.elsewhere))

    def contrast(tau: Floats) -> Floats:
        return np.asarray(np.max([k(tau) + c(tau) for k, c in zip(kept, changed, strict=True)], axis=0))

    means = [_mixture(law, probability) for probability in column.masses]
    return Envelope(lambda tau: np.max([mean(tau) for mean in means], axis=0), contrast, 2.0)


def joint_decay(envelopes: Sequence[Envelope], slopes: Floats) -> Bound:
    """Bound of |E e^{itS}| and its contrasts, for S = Σ_j slopes[j] x_j + any function where a slope is 0."""
    steepest = max([1.0, *(e.steepest for e in envelopes)])
    read = [(e, abs(float(s))) for e, s in zip(envelopes, slopes, strict=True) if s]

    def bound(t: Floats) -> Floats:
        means = [e.mean(slope * t) for e, slope in read]
        after = [np.ones(t.shape)]
        for mean in reversed(means[1:]):
            after.append(after[-1] * mean)
        before, worst = np.ones(t.shape), steepest * np.prod([np.ones(t.shape), *means], axis=0)
        for (e, slope), mean, rest in zip(read, means, reversed(after), strict=False):
            worst = np.maximum(worst, before * rest * e.contrast(slope * t))
            before = before * mean
        return np.asarray(worst)

    return bound


def slope_of(function: Function, loading: Floats) -> Floats:
    """Slopes (K,) of loading (m, K) times functions that are lines; 0 where they are not lines: no decay."""
    line = line_of(function, loading)
    return np.zeros(loading.shape[1]) if line is None else line.slope


def _of_slope(column: SlopeColumn) -> Envelope:
    """Bounds for a slope with one law; its contrasts are those of the feature in units."""
    (scatter,) = column.scatter
    steepest = float(1.0 / np.sqrt(scatter)) if scatter > 0 else 0.0
    whole, (measure, *others) = _mixture(column.marginal, column.probability), column.numbers.measures
    # truncated, or of several pieces
    if (
        others
        or not isinstance(measure, GaussianPieces)
        or measure.weight.size > 1
        or np.isfinite([measure.lower, measure.upper]).any()
    ):
        return Envelope(whole, lambda tau: np.full(tau.shape, steepest), steepest)
    deviation = float(np.sqrt(scatter) * column.numbers.unit[0])

    def mean(tau: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * (deviation * tau) ** 2))

    def contrast(tau: Floats) -> Floats:
        # Cov(x, e^{iτx}) = iτσ² e^{-τ²σ²/2}, which is largest at τ = 1/σ
        turns = np.maximum(deviation * tau, 1.0)
        return np.asarray(steepest * turns * np.exp(-0.5 * turns**2))

    return Envelope(whole if column.has_missing else mean, contrast, steepest)


def _mixture(law: Marginal, probability: Floats) -> Bound:
    """The bound of the law whose cells have these probabilities."""
    atoms, first = 0.0, 0
    variation, jumps, bends = 0.0, 0.0, 0.0
    for measure in law.measures:
        weight = measure.weight * probability[law.owners[first : first + measure.weight.size]]
        first += measure.weight.size
        if isinstance(measure, GaussianPieces):
            of_density, of_jumps = _variation(measure, weight, _density(measure))
            of_slope, of_bends = _variation(measure, weight, _steepness(measure))
            variation += of_density + of_jumps
            jumps, bends = jumps + of_jumps, bends + of_slope + of_bends
        else:
            atoms += float(weight.sum())
    whole = float(probability.sum())

    def bound(tau: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            once, twice = variation / tau, (jumps + bends / tau) / tau
        return np.minimum(atoms + np.fmin(once, twice), whole)

    return bound


def _density(pieces: GaussianPieces) -> Floats:
    """The density at the lower end, where it turns, and at the upper end, (3, P)."""
    ends = pieces.steps(pieces.lower), pieces.steps(pieces.upper)
    values = [_height(pieces, t)[0] for t in (ends[0], np.zeros_like(ends[0]), ends[1])]
    return np.stack(values) / (pieces.area * pieces.scale)


def _steepness(pieces: GaussianPieces) -> Floats:
    """The derivative at the same places, turns being one deviation from the untruncated peak, (4, P)."""
    ends = pieces.steps(pieces.lower), pieces.steps(pieces.upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = [(side * np.sqrt(pieces.precision) - pieces.slope) / pieces.precision for side in (-1.0, 1.0)]
    inside = [np.clip(np.where(pieces.precision > 0, t, ends[0]), *ends) for t in turns]
    values = [np.multiply(*_height(pieces, t)) for t in (ends[0], *inside, ends[1])]
    return np.stack(values) / (pieces.area * pieces.scale) / pieces.scale


def _height(pieces: GaussianPieces, t: Floats) -> tuple[Floats, Floats]:
    """exp(-slope t - precision t²/2) and its logarithmic derivative at steps t; 0 at infinity."""
    at = np.where(np.isfinite(t), t, 0.0)
    height = np.exp(-at * (pieces.slope + 0.5 * pieces.precision * at))
    return np.where(np.isfinite(t), height, 0.0), -(pieces.slope + pieces.precision * at)


def _variation(pieces: GaussianPieces, weight: Floats, turns: Floats) -> tuple[float, float]:
    """Variation inside the pieces, and net jumps at their ends, of the sum with these weights."""
    values = weight * turns
    ends, place = np.unique(np.concatenate([pieces.lower, pieces.upper]), return_inverse=True)
    jumps = np.bincount(place, np.concatenate([values[0], -values[-1]]), minlength=ends.size)
    return float(np.abs(np.diff(values, axis=0)).sum()), float(np.abs(jumps).sum())


# -- few values ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Half:
    """Some columns, and their contributions to K margins."""

    places: Sequence[int]  # the columns
    means: Sequence[Floats]  # the two functionals of 1[x = value], (V, n_j) for each column
    contrasts: Sequence[Floats]
    sums: Floats  # (K, n), the last column's values change first

    def weights(self, cells: Sequence[int]) -> Floats:
        """Weights (1 + columns, n) of the sums, for the mean and for each column's contrast."""
        rows = []
        for changed in (None, *self.places):
            row = np.ones(1)
            for place, mean, contrast in zip(self.places, self.means, self.contrasts, strict=True):
                factor = (contrast if place == changed else mean)[cells[place]]
                row = np.multiply.outer(row, factor).ravel()
            rows.append(row)
        return np.stack(rows)


class _Order:
    """The sums of one half, sorted, and where those of the other meet them; (K, n) each."""

    def __init__(self, half: Floats, other: Floats) -> None:
        self._order = np.argsort(half, axis=1, kind="stable")
        self._sorted = np.take_along_axis(half, self._order, axis=1)
        self._other = other
        pairs = zip(self._sorted, other, strict=True)
        self._first = np.stack([np.searchsorted(b, -a, side="right") for b, a in pairs])

    def above(self, weights: Floats) -> Floats:
        """Return G of each sum of the other half, (K, n of the other half), for weights (n,) of this one."""
        share = weights[self._order]
        tails = [_tails(share), _tails(share * self._sorted)]
        mass, first = (np.take_along_axis(tail, self._first, axis=1) for tail in tails)
        return np.asarray(self._other * mass + first)


def _tails(values: Floats) -> Floats:
    """Sums from each position to the end, followed by 0: (K, n) -> (K, n + 1)."""
    tails = np.zeros((len(values), values.shape[1] + 1))
    tails[:, :-1] = np.cumsum(values[:, ::-1], axis=1)[:, ::-1]
    return tails


class Halves:
    """Sums of kinks under the laws of columns that take few values, as `_Network`."""

    def __init__(self, form: Linked, halves: tuple[_Half, _Half]) -> None:
        assert form.coef is not None  # noqa: S101 - set by __post_init__
        self._halves = halves
        self._coef = form.coef.reshape(len(form.coef), -1)
        self._constant = form.intercept.reshape(-1)
        first, second = halves
        self._orders = _Order(second.sums, first.sums), _Order(first.sums, second.sums)
        reach = np.abs(first.sums).max(axis=1) + np.abs(second.sums).max(axis=1)
        values = first.sums.shape[1] + second.sums.shape[1]
        # rounding errors, (k,)
        self.error = product_rounding(values) * (reach @ np.abs(self._coef))

    @classmethod
    def of(cls, form: Linked, laws: Sequence[RangedColumn]) -> Halves | None:
        """Return the sums; None where a column has a density, or there are too many combinations."""
        if not all(isinstance(measure, Atoms) for each in laws for measure in each.marginal.measures):
            return None
        terms = form.terms
        addends = {
            j: (function, loading)
            for j, (function, loading) in enumerate(zip(terms.functions, terms.loadings, strict=True))
            if function is not None and loading.any()
        }
        columns = ColumnTerm.of_all(addends, laws)
        values = [_values(column) for column in columns]
        first, second = _split([each.size for each in values])
        sizes = [prod(values[i].size for i in half) for half in (first, second)]
        if max(sizes) > _MOST_VALUES or sum(sizes) * len(terms.intercept) > _MOST_NUMBERS:
            return None
        start = terms.intercept[:, None]
        return cls(
            form,
            (
                _half([columns[i] for i in first], [values[i] for i in first], start),
                _half([columns[i] for i in second], [values[i] for i in second], 0.0 * start),
            ),
        )

    def expect(self, index: Ints) -> tuple[Floats, Floats]:
        """E f (n, k) and contrasts (n, d, k) of rows, given the law of each column, (n, d)."""
        patterns, which = np.unique(index, axis=0, return_inverse=True)
        mean = np.empty((len(patterns), self._constant.size))
        contrast = np.zeros((len(patterns), index.shape[1], self._constant.size))
        for row, pattern in enumerate(patterns.tolist()):
            both = [half.weights(pattern) for half in self._halves]
            for half, order, weights, other in zip(
                self._halves, self._orders, both, reversed(both), strict=True
            ):
                expected = weights @ order.above(other[0]).T @ self._coef
                mean[row] = self._constant + expected[0]
                contrast[row, list(half.places)] = expected[1:]
        return mean[which.ravel()], contrast[which.ravel()]


class _Values:
    """1[x = value], of all values that a column takes; NaN comes last."""

    def __init__(self, values: Floats) -> None:
        self._values = values

    def __call__(self, x: Floats) -> Floats:
        same = self._values[:, None] == x
        return np.asarray(same | (np.isnan(self._values)[:, None] & np.isnan(x)), dtype=np.float64)

    def integrate(self, density: object) -> Floats:
        raise NotImplementedError  # no column has a density


def _values(column: ColumnTerm) -> Floats:
    measures = [m for m in column.column.marginal.measures if isinstance(m, Atoms)]
    return np.unique(np.concatenate([measure.value[measure.weight > 0] for measure in measures]))


def _split(sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Positions of two halves with about equal products of sizes, in their order."""
    halves: tuple[list[int], list[int]] = ([], [])
    products = [1, 1]
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        smaller = int(products[1] < products[0])
        halves[smaller].append(i)
        products[smaller] *= sizes[i]
    return sorted(halves[0]), sorted(halves[1])


def _half(columns: Sequence[ColumnTerm], values: Sequence[Floats], start: Floats) -> _Half:
    sums, means, contrasts = start, [], []
    for column, points in zip(columns, values, strict=True):
        mean, contrast = column.tabulate(_Values(points))
        means.append(np.asarray(mean.real))
        contrasts.append(np.asarray(contrast.real))
        added = column.loading.T @ column.function(points)
        sums = (sums[:, :, None] + added[:, None, :]).reshape(len(start), -1)
    return _Half([column.place for column in columns], means, contrasts, sums)
