r"""Exact expectations of the softmax of three sums under a product design, by a double integral.

p_r is a sum of exponentials e^{z₁ a + z₂ b} of two differences of margins (``models/forms/_planes.py``),
whose expectations are products over columns, so that E_w p_r and its contrasts follow as for one frequency
(``linked.py``): tables of cells × nodes, made once, serve all rows. Errors are bounded by E e^{±oa},
E e^{±ob} and E e^{±o(a - b)}, which are products, too; each row takes the order o with the fewest nodes.

The class r that is likely at a row is computed as the complement of the two others, and these as
e^{m_c - m_r} p_r where that has the smaller bound: probabilities of 1e-12 keep their digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats, Ints, aligned
from limes._expectations.moments import Moments
from limes._expectations.tabulated import (
    TOLERANCE,
    AtGrid,
    ColumnTables,
    ColumnTerm,
    Grid,
    NodeGroup,
    NodeProducts,
    Numbers,
    PlaneWaves,
    TabulatedExpectation,
    in_parts,
    mixed_logs,
    product_rounding,
)
from limes._expectations.wide import WideColumns
from limes._threads import LRUCache
from limes.designs._column import SMALLEST_MASS, RangedColumn
from limes.designs._marginals import Atoms
from limes.designs._product import KeptRows
from limes.exceptions import ModelError
from limes.models.forms._linked import Softmax
from limes.models.forms._links import Complexes
from limes.models.forms._planes import (
    CLASSES,
    ORDERS,
    PlaneSum,
    copies_of,
    longest_period,
    nodes_at,
    plane_sum,
)

# Sums of exponentials whose tables a background keeps
_MOST_RULES = 128
# Periods of rows whose values may be kept are rounded up to this part of an octave
_STEPS = 4
# Probabilities below this are compared with it
_TINY = 1e-15
# -ln of what copies of a probability add up to
_DIGITS = 30.0
# Largest exponent o (a or b) of higher orders: no product of columns overflows
_STEEPEST = 500.0
# Bytes of all tables of nodes that a background keeps
_KEPT_BYTES = 512 << 20
# Nodes times columns of a class, some 8 ms a row; complex numbers of its tables, 128 MB
_MOST_WORK, _MOST_NUMBERS = 1_000_000, 8_000_000
# Complex numbers of a background's tables, 256 MB, and approximate number of nodes of a class
_LARGEST, _USUAL_NODES = 16_000_000, 10_000
# Means of columns, none below the least probability t, whose product is in float64's range
_WITHIN_RANGE = int(-300 / np.log10(SMALLEST_MASS))
# Complex numbers of a table of nodes and values
_BLOCK = 4_000_000


class SoftmaxExpectation(TabulatedExpectation["_Classes"]):
    """Moments of probabilities of three classes; refused where the error of a row is above 1e-9."""

    _form: Softmax
    _seconds_of_20 = 0.4

    def holds(self, laws: int) -> bool:
        return 2 * laws * CLASSES * _USUAL_NODES <= _LARGEST

    def _tabulate(self, columns: Sequence[RangedColumn]) -> _Classes:
        return _Classes(self._form, columns)

    def _kept(self, rows: KeptRows) -> _Classes:
        return _KeptClasses(self._drawn(rows), rows)

    def _at_kept(self, rows: KeptRows) -> Moments:
        # the bounds of errors follow from the same moments in tables of single rows: these are refused, too
        return self._moments(self._kept(rows), rows.index, rows.features.variance)

    def _moments(self, tables: _Classes, index: Ints, variance: Floats) -> Moments:
        coef = self._form.coef
        assert coef is not None  # noqa: S101 - set by __post_init__
        values = tables.expect(index)
        # the bases are added first: 1 less a probability of almost 1 is then exact
        base = self._form.intercept + values.base @ coef
        mean, contrast, bound = base + values.rest @ coef, values.contrast @ coef, values.bound @ np.abs(coef)
        size = np.abs(mean) + np.abs(contrast).max(axis=1, initial=0.0)
        allowed = TOLERANCE * np.maximum(size, _TINY)
        if not (bound <= allowed).all():
            raise _too_far()
        return Moments.exact(mean, contrast * aligned(variance, contrast), designs=(len(index),))


@dataclass(frozen=True, eq=False)
class _Values:
    """E p = base + rest of n rows, and the bound of its error, (n, 3) each; contrasts (n, d, 3)."""

    base: Floats
    rest: Floats
    contrast: Floats
    bound: Floats


# Exponents θ of E e^{θ·m}: differences of margins, and sums of two of these
_EDGES = np.array([row - other for row in np.eye(3) for other in np.eye(3) if (row != other).any()])
_TILTS = np.concatenate([np.zeros((1, 3)), _EDGES])
_EXPONENTS = np.unique(
    np.concatenate([_TILTS, *(_TILTS + order * edge for edge in _EDGES for order in ORDERS)]), axis=0
)


def _too_far() -> ModelError:
    return ModelError(
        "the margins of three classes range too far, or spread far on both sides, for nine digits of their "
        "probabilities"
    )


def _position(exponent: Floats) -> int:
    return int(np.flatnonzero((exponent == _EXPONENTS).all(axis=1))[0])


# Where e_c - e_r is among the exponents, (3, 3)
_DIFFERENCES = np.array([[_position(one - other) for other in np.eye(3)] for one in np.eye(3)])
_AT_EDGES = np.array([_position(edge) for edge in _EDGES])
_TILTED = np.unique(_DIFFERENCES)


class _Grids(NamedTuple):
    """The sum of exponentials of each class by each reference, (n, 3, 3)."""

    orders: Ints
    periods: Floats

    @classmethod
    def least(cls, wanted: Floats, longest: Floats, steepest: Floats) -> _Grids:
        """Choose among the orders by the periods that they need, (n, 3, 3, orders), and may have (orders,).

        ``steepest`` (n,) are the largest exponents of the first order.
        """
        orders = np.array(ORDERS)
        periods = np.minimum(wanted, longest)
        # where no order has nodes enough, the one whose copies are least
        cost = nodes_at(periods, orders) + 1e9 * orders * (wanted - periods)
        too_steep = (steepest[:, None] * orders > _STEEPEST) & (orders > 1)
        cost = np.where(too_steep[:, None, None], np.inf, cost)
        chosen = np.argmin(cost, axis=-1)
        return cls(orders[chosen], np.take_along_axis(periods, chosen[..., None], axis=-1)[..., 0])


class _Classes:
    """The form under the laws of every column."""

    def __init__(self, form: Softmax, laws: Sequence[RangedColumn]) -> None:
        self.margins = form.terms.intercept
        pairs = zip(form.terms.functions, form.terms.loadings, strict=True)
        addends = {
            j: (function, loading @ _EXPONENTS.T)
            for j, (function, loading) in enumerate(pairs)
            if function is not None and np.ptp(loading, axis=1).any()
        }
        self.columns = ColumnTerm.of_all(addends, laws)
        self._cached: LRUCache[tuple[int, int, int, float], _Rule] = LRUCache(_MOST_RULES, _KEPT_BYTES)
        self._lock = Lock()

    def expect(self, index: Ints) -> _Values:
        """E p and its contrasts for rows, given the law of each column, (n, d)."""
        levels = self._levels(index)
        n, d = index.shape
        rest, contrast, bound = np.zeros((n, CLASSES)), np.zeros((n, d, CLASSES)), np.zeros((n, CLASSES))
        # (n, class, reference): the logarithms of the factors of errors
        level = levels[:, _DIFFERENCES]
        others = np.where(np.eye(CLASSES, dtype=np.bool_), -np.inf, level).max(axis=1)
        grids = self._grids(levels)
        likely, reference = np.argmin(others, axis=1), self._references(levels, grids)
        for c, r in np.ndindex(CLASSES, CLASSES):
            chosen = np.flatnonzero((likely != c) & (reference[:, c] == r))
            each = np.stack([grids.orders[chosen, c, r], grids.periods[chosen, c, r]], axis=1)
            for grid in np.unique(each, axis=0):
                rows = chosen[(each == grid).all(axis=1)]
                rule = self.rule(c, r, int(grid[0]), float(grid[1]))
                rest[rows, c], contrast[rows, :, c] = self._expect(rule, index, rows)
                bound[rows, c] = rule.bound(levels[rows])
        rows = np.arange(n)
        base = np.zeros((n, CLASSES))
        base[rows, likely] = 1.0
        rest[rows, likely] = -rest.sum(axis=1)
        contrast[rows, :, likely] = -contrast.sum(axis=2)
        bound[rows, likely] = bound.sum(axis=1)
        return _Values(base, rest, contrast, bound)

    def rule(self, c: int, r: int, order: int, period: float) -> _Rule:
        key = c, r, order, period
        with self._lock:  # a rule is made once
            return self._cached.get(
                key,
                lambda: _Rule(self.columns, self.margins, (c, r), plane_sum(period, order)),
                lambda rule: rule.nbytes,
            )

    def _expect(self, rule: _Rule, index: Ints, rows: Ints) -> tuple[Floats, Floats]:
        return rule.expect(index[rows])

    def _references(self, levels: Floats, grids: _Grids) -> Ints:
        """The class whose sum gives each class approximately the least error, (n, class)."""
        errors = np.empty((len(levels), CLASSES, CLASSES))
        for c, r in np.ndindex(CLASSES, CLASSES):
            copies = np.empty(len(levels))
            for order in ORDERS:
                rows = np.flatnonzero(grids.orders[:, c, r] == order)
                reach = levels[np.ix_(rows, _copies(c, r, order))].max(axis=1)
                copies[rows] = reach - order * grids.periods[rows, c, r]
            errors[:, c, r] = np.logaddexp(levels[:, _DIFFERENCES[c, r]] - _DIGITS, copies)
        least = np.sort(errors.min(axis=2), axis=1)
        # two classes are computed as sums, none of which is larger than 1
        if not (least[:, -2] <= np.log(TOLERANCE)).all():
            raise _too_far()  # before tables are made
        return np.asarray(np.argmin(errors, axis=2))

    def _grids(self, levels: Floats) -> _Grids:
        """The nodes of each class by the sum of each."""
        shape, (orders, periods) = (len(levels), CLASSES, CLASSES), self._all_grids
        return _Grids(np.broadcast_to(orders, shape), np.broadcast_to(periods, shape))

    @cached_property
    def _all_grids(self) -> _Grids:
        """The sums whose copies are negligible at all rows, or with the most nodes."""
        wanted = np.empty((1, CLASSES, CLASSES, len(ORDERS)))
        for c, r, o in np.ndindex(wanted.shape[1:]):
            tilt, copies = _DIFFERENCES[c, r], _copies(c, r, ORDERS[o])
            reach = (_EXPONENTS[copies] - _EXPONENTS[tilt]) @ self.margins
            beyond = np.zeros(copies.size)
            for log, ratio in self.logs:
                reach = reach + (log[:, copies] - log[:, [tilt]]).max(axis=0)
                beyond = np.maximum(beyond, ratio[:, copies].max(axis=0))
            wanted[0, c, r, o] = _wanted((reach + beyond).max(), ORDERS[o])
        steepest = np.abs(_EDGES @ self.margins) + self.extents.sum(axis=0)
        return _Grids.least(wanted, self._longest, steepest.max()[None])

    @cached_property
    def extents(self) -> Floats:
        """The largest differences of margins of each column, (F, edges)."""
        ends = [np.maximum(column.upper, -column.lower)[_AT_EDGES] for column in self.columns]
        return np.maximum(np.reshape(ends, (-1, len(_EDGES))), 0.0)

    @property
    def _longest(self) -> Floats:
        """The longest P of each order has as many nodes as a row may cost."""
        laws = sum(column.column.size for column in self.columns)
        nodes = min(_MOST_WORK / max(1, len(self.columns)), 0.5 * _MOST_NUMBERS / max(1, laws))
        return np.array([longest_period(nodes, order) for order in ORDERS])

    def _levels(self, index: Ints) -> Floats:
        """Logarithms of E e^{θ·m}, of the largest part of it given that one column is in its cell or not."""
        level = _EXPONENTS @ self.margins + np.zeros((len(index), 1))
        beyond = np.zeros(level.shape)
        for column, (log, ratio) in zip(self.columns, self.logs, strict=True):
            level += log[index[:, column.place]]
            beyond = np.maximum(beyond, ratio[index[:, column.place]])
        return level + beyond

    @cached_property
    def logs(self) -> list[tuple[Floats, Floats]]:
        """The logarithms of mean(e^{θ·m_j}), and of 1 + |contrast| / mean, (V, exponents) of each column."""
        once = [NodeGroup(np.ones(1, dtype=np.complex128))] * len(_EXPONENTS)
        return [_logs_of(*column.functionals(once)) for column in self.columns]


class _KeptClasses(_Classes):
    """The form at rows whose values may be kept; ``drawn`` has the laws of the columns that are not."""

    def __init__(self, drawn: _Classes, rows: KeptRows) -> None:
        self._drawn, self.margins, self.columns = drawn, drawn.margins, drawn.columns
        places = [column.place for column in self.columns]
        self.laws, self.x = rows.kept(places)
        self.point, self.t = rows.point, rows.shares_of(places)
        shape = *self.x.shape, len(_EXPONENTS)
        pairs = zip(self.columns, self.x, strict=True)
        kept = np.reshape([(column.loading.T @ column.function(x)).T for column, x in pairs], shape)
        logs = zip(drawn.logs, self.laws, strict=True)
        extents = np.maximum(drawn.extents[:, None], np.abs(kept[..., _AT_EDGES]))
        steepest = np.abs(_EDGES @ self.margins) + extents.sum(axis=0)
        self._steepest = steepest.max(axis=1)  # (U,)
        drawn_logs = np.reshape([log[law] for (log, _), law in logs], shape)
        # logs of E e^{θ·m_j} for differences of margins, (F, n, differences)
        self.levels, _ = mixed_logs(kept[..., _TILTED], drawn_logs[..., _TILTED], self.t, self.point)
        sums, self._beyond = _sums_of_logs(kept, drawn_logs, self.t)
        self._mean = _EXPONENTS @ self.margins + sums  # logs of E e^{θ·m}, (n, exponents)

    def _levels(self, index: Ints) -> Floats:  # noqa: ARG002 - all rows
        return np.asarray(self._mean + self._beyond)

    def _grids(self, levels: Floats) -> _Grids:
        """The sums at each point, with P in steps, so that points share their nodes."""
        mean, points = self._mean, self.point[-1] + 1
        wanted = np.empty((points, CLASSES, CLASSES, len(ORDERS)))
        for c, r, o in np.ndindex(wanted.shape[1:]):
            reach = levels[:, _copies(c, r, ORDERS[o])].max(axis=1) - mean[:, _DIFFERENCES[c, r]]
            by_point = np.full(points, -np.inf)
            np.maximum.at(by_point, self.point, reach)
            periods = np.maximum(_wanted(by_point, ORDERS[o]), 1.0)
            wanted[:, c, r, o] = np.exp2(np.ceil(_STEPS * np.log2(periods)) / _STEPS)
        grids = _Grids.least(wanted, self._longest, self._steepest)
        return _Grids(grids.orders[self.point], grids.periods[self.point])

    def rule(self, c: int, r: int, order: int, period: float) -> _Rule:
        return self._drawn.rule(c, r, order, period)

    def _expect(self, rule: _Rule, index: Ints, rows: Ints) -> tuple[Floats, Floats]:
        mean, changes = rule.kept(self, rows)
        contrast = np.zeros((rows.size, index.shape[1]))
        contrast[:, [column.place for column in self.columns]] = changes
        return mean, contrast


def _sums_of_logs(kept: Floats, drawn: Floats, t: Floats) -> tuple[Floats, Floats]:
    """Sums over columns of the logs of `mixed_logs`, and logs of 1 + the largest change, (n, E) each."""
    (columns, points, exponents), n = kept.shape, t.shape[1]
    top = np.maximum(kept, drawn)
    each = n // points
    sums = np.repeat(top.sum(axis=0), each, axis=0)
    kept, drawn, t = np.exp(kept - top), np.exp(drawn - top), t.reshape(columns, points, each, 2)
    # one column after the other, in arrays that stay in a cache
    largest, product = np.zeros((points, each, exponents)), np.ones((points, each, exponents))
    for j in range(columns):
        mean = t[j, :, :, :1] * kept[j, :, None] + t[j, :, :, 1:] * drawn[j, :, None]
        np.maximum(largest, np.abs(kept[j] - drawn[j])[:, None] / mean, out=largest)
        product *= mean
        if j % _WITHIN_RANGE == _WITHIN_RANGE - 1 or j == columns - 1:
            sums += np.log(product).reshape(n, exponents)
            product[:] = 1.0
    return sums, np.log1p(largest).reshape(n, exponents)


def _logs_of(means: Complexes, contrasts: Complexes, offsets: Floats) -> tuple[Floats, Floats]:
    # a mean that underflows is no larger than this
    mean = np.maximum(means.real, np.finfo(np.float64).tiny)
    log = np.log(mean)
    return log + offsets, np.log(mean + np.abs(contrasts.real)) - log


def _others(r: int) -> list[int]:
    return [c for c in range(CLASSES) if c != r]


@cache
def _copies(c: int, r: int, order: int) -> Ints:
    """Positions of the exponents that bound the copies of e^{m_c - m_r} p_r."""
    tilt = _EXPONENTS[_DIFFERENCES[c, r]]
    edges = [_EXPONENTS[_DIFFERENCES[k, r]] for k in _others(r)]
    if order > 1:
        edges.append(edges[0] - edges[1])
    return np.array([_position(tilt + sign * order * edge) for edge in edges for sign in (1.0, -1.0)])


def _wanted(reach: Floats, order: int) -> Floats:
    """Return the P at which copies are negligible, given the logarithm of their largest exponential."""
    vertices = 2 * (CLASSES - 1 + (order > 1))
    return np.asarray((_DIGITS + np.log(vertices * copies_of(order)) + reach) / order)


class _Rule:
    """Tables of e^{m_c - m_r} p_r: means over that of e^{m_c - m_r}, contrasts over the same."""

    def __init__(
        self, columns: Sequence[ColumnTerm], margins: Floats, classes: tuple[int, int], nodes: PlaneSum
    ) -> None:
        c, r = classes
        self._tilt, self._copies = _DIFFERENCES[c, r], _copies(c, r, nodes.order)
        self._exponents = _DIFFERENCES[[c, *_others(r)], r]  # level, a and b
        z1, z2 = nodes.nodes
        level, a, b = _EXPONENTS[self._exponents] @ margins
        self._start = level
        self._columns, self._nodes = columns, nodes
        self._places = [column.place for column in columns]
        self._logs, tables = [], []
        for column in columns:
            log, numbers = self._tabulate(column, nodes)
            self._logs.append(log)
            tables.append(ColumnTables(column.place, np.zeros(z1.size), numbers))
        self.nbytes = sum(table.patterns.nbytes for table in tables)
        weights = nodes.weights * np.exp(z1 * a + z2 * b)
        self._products = NodeProducts([column.places for column in columns], tables, weights[None])
        # of products, and of the phases of waves
        turns = np.abs(z1 * a) + np.abs(z2 * b)
        for column in columns:
            reach = np.maximum(np.abs(column.lower), np.abs(column.upper))[self._exponents]
            turns = turns + np.abs(z1) * reach[1] + np.abs(z2) * reach[2]
        self._error = nodes.error + product_rounding(len(columns)) * (1.0 + float(nodes.sizes.sum()))
        self._error += float(np.finfo(np.float64).eps * (nodes.sizes @ turns))

    def _tabulate(self, column: ColumnTerm, nodes: PlaneSum) -> tuple[Floats, Numbers]:
        """The logarithms of e^{m_c - m_r}'s means, (V,), and the nodes' numbers relative to these."""
        means, contrasts, offset = self._by_moments(column, nodes) or self._by_points(column, nodes)
        scale = means[:, :1].real  # the origin
        scale = np.where(scale > 0, scale, 1.0)
        numbers = Numbers(in_parts(means / scale), in_parts(contrasts / scale)[:, None])
        return np.log(scale[:, 0]) + offset, numbers

    def _by_points(self, column: ColumnTerm, nodes: PlaneSum) -> tuple[Complexes, Complexes, float]:
        step = max(1, _BLOCK // max(1, _values(column.column)))
        starts = range(0, nodes.first.size, step)
        parts = [column.tabulate(self._waves(column, slice(start, start + step))) for start in starts]
        means, contrasts = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        return means, contrasts, float(column.upper[self._exponents[0]])

    def _by_moments(self, column: ColumnTerm, nodes: PlaneSum) -> tuple[Complexes, Complexes, float] | None:
        """The same of one function f, for which e^{level + z₁ a + z₂ b} is e^{zf}."""
        if len(column.loading) > 1:
            return None
        level, a, b = column.loading[0, self._exponents]
        z1, z2 = nodes.nodes
        z = level + z1 * a + z2 * b
        alone = ColumnTerm.of(column.place, column.function, np.ones((1, 1)), column.column)
        fastest = z[[np.argmin(z.imag), np.argmax(z.imag), np.argmin(z.real), np.argmax(z.real)]]
        columns = WideColumns.of([alone], fastest, most=0)
        if columns is None:
            return None

        def lines(value: Floats) -> Complexes:
            along = np.exp(np.multiply.outer(value, level + nodes.exponents[0] * a))
            across = np.exp(np.multiply.outer(value, nodes.exponents[1] * b))
            return np.asarray(np.take(along, nodes.first, axis=1) * np.take(across, nodes.second, axis=1))

        [table] = columns.tables([NodeGroup(z)], lambda means, contrasts, _: (means, contrasts[:, 0]), lines)
        # all relative to the origin
        scale = np.exp(table.offsets - table.offsets[0])
        means, contrasts = (numbers * scale for numbers in table.patterns)
        return means, contrasts, float(table.offsets[0])

    def expect(self, index: Ints) -> tuple[Floats, Floats]:
        """Return E p_c (n,) and its contrasts (n, d), given the law of each column."""
        level = self._start + np.zeros(len(index))
        for place, log in zip(self._places, self._logs, strict=True):
            level = level + log[index[:, place]]
        mean, contrast = self._products.expect(index)
        return mean[:, 0] * np.exp(level), contrast[:, :, 0] * np.exp(level)[:, None]

    def kept(self, classes: _KeptClasses, rows: Ints) -> tuple[Floats, Floats]:
        """The same of rows whose values may be kept, (n,) and (n, F)."""
        point = classes.point[rows]
        laws = np.reshape([law[point] for law in classes.laws], (len(self._logs), rows.size))
        means = classes.levels[:, rows, np.searchsorted(_TILTED, self._tilt)]
        scales = np.reshape([log[law] for log, law in zip(self._logs, laws, strict=True)], laws.shape)
        shares = classes.t[:, rows] * np.exp(scales - means)[:, :, None]

        def waves(some: Ints) -> AtGrid:
            columns = zip(self._columns, classes.x, classes.laws, self._logs, strict=True)
            each = [
                self._waves(column, slice(None), log[law[some]]).lines(x[some])
                for column, x, law, log in columns
            ]
            return AtGrid(*(in_parts(np.stack(lines)) for lines in zip(*each, strict=True)))

        grid = Grid(self._nodes.first, self._nodes.second)
        sums, changes = self._products.kept.expect(waves, laws, point, shares, grid)
        size = np.exp(self._start + means.sum(axis=0))
        return sums[:, 0] * size, changes[:, :, 0] * size[:, None]

    def _waves(self, column: ColumnTerm, some: slice, offset: float | Floats | None = None) -> PlaneWaves:
        nodes, loading = self._nodes, column.loading[:, self._exponents]
        offset = float(column.upper[self._exponents[0]]) if offset is None else offset
        return PlaneWaves(
            column.function, loading, nodes.exponents, nodes.first[some], nodes.second[some], offset
        )

    def bound(self, levels: Floats) -> Floats:
        """The error of rows (n,), from the logarithms of E e^{θ·m}."""
        nodes, level = self._nodes, levels[:, self._copies]
        copies = copies_of(nodes.order) * np.exp(level - nodes.order * nodes.period).sum(axis=1)
        return np.asarray(self._error * np.exp(levels[:, self._tilt]) + copies)


def _values(column: RangedColumn) -> int:
    """Values of a law that has no density."""
    return sum(each.value.size for each in column.marginal.measures if isinstance(each, Atoms))
