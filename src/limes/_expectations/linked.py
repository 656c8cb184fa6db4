r"""Exact expectations of links of sums under a product design, by quadrature whose error is known beforehand.

A link is a sum of exponentials on the range of the margin S = c + Σ_j f_j(x_j) (``models/forms/_links.py``),
and E e^{zS} = e^{zc} ∏_j mean_j(e^{z f_j}), with the two functionals of column j of ``exact.py``:

    E_w f = Re Σ_n W_n ∏_j mean_j(e^{z_n f_j})
    β_j   = Re Σ_n W_n contrast_j(e^{z_n f_j}) ∏_{k≠j} mean_k(e^{z_n f_k})

Both functionals depend on the row only through the law of its column: under bin weights all rows share one
table of cells × nodes, and a row costs the products before and after each column. Columns that
interact are one factor together (``groups.py``). Where every row has its own laws a column's table has one
line, and one range of f_j, for each row. The points that represent the laws of a column are then chosen once,
fine enough for the fastest exponentials of the link, and are used for its ranges, all contours and nodes.

Among the contours Re z = θ a row uses the one with the least E e^{θS}, which multiplies the errors: its
probability keeps its digits whether it is 1/2, 1e-12, or 1 - 1e-12. Where the bound is still above 1e-9, the
row is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from limes._arrays import Floats, Ints, aligned, times
from limes._expectations.groups import Group, GroupTables, factors_of
from limes._expectations.moments import Moments
from limes._expectations.tabulated import (
    TOLERANCE,
    AtGrid,
    ColumnTables,
    ColumnTerm,
    Grid,
    KeptProducts,
    NodeGroup,
    Numbers,
    TabulatedExpectation,
    in_parts,
    mixed_logs,
    product_rounding,
)
from limes._expectations.wide import ROUNDINGS, WideColumns
from limes._functions import Function
from limes._kernels import add_exponentials, add_node_products
from limes._threads import LRUCache
from limes.designs._column import Column, RangedColumn
from limes.designs._product import KeptRows, Rows
from limes.exceptions import InputError, ModelError
from limes.models.forms._linked import Linked
from limes.models.forms._links import Complexes, Contour, Exponential, ExponentialSum, Link

T = TypeVar("T")


# Probabilities below this are compared with it
_TINY = 1e-15
# Exponents of the waves that decide how fine points are are clipped to this: no float64 overflows
_STEEPEST = 600.0
# Contrasts of one block of rows, half a MB
_BLOCK = 65_536
# A contour whose error is up to e^this times the least is as good: rows share the first such, 0 before others
_AS_GOOD = 3.0
# Nodes of a contour that are one line of a grid
_ACROSS = 16
# Integrals of columns that are kept for other bandwidths, and their bytes together
_MOST_INTEGRALS, _INTEGRAL_BYTES = 4096, 32 << 20
# Tables of exponentials of a margin that are kept for later rows, and their bytes together
_MOST_RULES, _RULE_BYTES = 256, 512 << 20


class LinkedExpectation(TabulatedExpectation["list[_Margin]"]):
    """Moments of links of sums; errors are relative to expectations, but to ``smallest`` below it."""

    _form: Linked

    def __init__(self, form: Linked, smallest: float = _TINY) -> None:
        super().__init__(form)
        self.smallest = smallest
        terms, interactions = form.margins
        self.functions = None if interactions else terms.functions
        self._seconds_of_20 = None if interactions else 0.0005
        self._integrals: LRUCache[Any, tuple[Any, Floats]] = LRUCache(_MOST_INTEGRALS, _INTEGRAL_BYTES)

    def relative_to(self, smallest: float) -> LinkedExpectation:
        """The same, with errors that are relative to this number below it; both share their tables."""
        other = copy(self)
        other.smallest = max(smallest, self.smallest)
        return other

    def _tabulate(self, columns: Sequence[RangedColumn]) -> list[_Margin]:
        form = self._form
        assert isinstance(form.curve, Contour | Exponential)  # noqa: S101 - other links add up
        fastest, margins = form.curve.fastest, list[_Margin]()
        for k, c in enumerate(form.margins.terms.intercept):
            factors = factors_of(form.margins, columns, slice(k, k + 1))
            wide = WideColumns.of(factors, fastest)
            if wide is None:
                factors = [
                    replace(factor, integrals=self._integrals) if isinstance(factor, ColumnTerm) else factor
                    for factor in factors
                ]
            margins.append(_Margin(form.curve, float(c), factors if wide is None else wide, self.smallest))
        return margins

    def _kept(self, rows: KeptRows) -> list[_Margin]:
        drawn = self._drawn(rows) if self.functions is not None else []
        return [_KeptMargin(margin, rows, self.smallest) for margin in drawn] or super()._kept(rows)

    def _apart(self, rows: Rows) -> Moments:
        form = self._form
        if self.functions is None:
            return super()._apart(rows)
        assert isinstance(form.curve, Contour | Exponential)  # noqa: S101 - other links add up
        margins = [
            _MarginAtRows(
                form.curve, float(c), _terms_at_rows(form, k, form.curve.fastest, rows), self.smallest
            )
            for k, c in enumerate(form.margins.terms.intercept)
        ]
        return self._moments(margins, rows.index, rows.features.variance)

    def _moments(self, tables: Sequence[_Margin], index: Ints, variance: Floats) -> Moments:
        form = self._form
        assert form.coef is not None  # noqa: S101 - set by __post_init__
        ones = (1,) * form.intercept.ndim
        base: Floats = np.broadcast_to(form.intercept, (len(index), *form.intercept.shape)).copy()
        rest, contrast = np.zeros(base.shape), np.zeros((*index.shape, *form.intercept.shape))
        for margin, coef in zip(tables, form.coef, strict=True):
            linked = margin.expect(index)
            # the bases are added first: 1 less a probability of almost 1 is then exact
            base += linked.base.reshape(-1, *ones) * coef
            rest += linked.rest.reshape(-1, *ones) * coef
            contrast += linked.contrast.reshape(*index.shape, *ones) * coef
        return Moments.exact(base + rest, contrast * aligned(variance, contrast), designs=variance.shape[:-1])


@dataclass(frozen=True, eq=False)
class _TermAtRows:
    """The addend of one column in one margin, under V laws."""

    place: int
    value: Floats  # (K,), f at the points; those of a law are side by side
    weight: Floats  # (2, K), weights of the points in both functionals
    start: Ints  # (V + 1,), the first point of each law, and K
    mixing: Floats  # (V, 2, 2), turn functionals into mean and contrast
    lower: Floats  # (V,), the least f, and a little less
    upper: Floats

    @classmethod
    def of(
        cls, place: int, column: Column, function: Function, loading: Floats, fastest: Complexes
    ) -> _TermAtRows:
        """Choose the points of f = loading · functions; ModelError where f is not finite."""

        def margin(x: Floats) -> Floats:
            return times(function(x).T, loading)

        def waves(x: Floats) -> Floats:
            exponents = np.multiply.outer(fastest, margin(x))
            waves = np.exp(np.clip(exponents.real, -_STEEPEST, _STEEPEST) + 1j * exponents.imag)
            return np.concatenate([waves.real, waves.imag])

        points = column.points(function, waves)
        value = margin(points.x)
        if not np.isfinite(value).all():
            raise ModelError(f"the margin has no finite value somewhere in column {place}")
        start = np.searchsorted(points.law, np.arange(column.size + 1))
        lower, upper = (pick.reduceat(value, start[:-1]) for pick in (np.minimum, np.maximum))
        # a curve may rise higher between two points
        slack = 0.01 * (upper - lower)
        weight = np.ascontiguousarray(points.weight)
        return cls(place, value, weight, start, column.mixing, lower - slack, upper + slack)

    @property
    def places(self) -> Ints:
        return np.array([self.place])

    def select(self, laws: Ints) -> _TermAtRows:
        """Return some of the laws; one may repeat."""
        count = np.diff(self.start)[laws]
        start = np.concatenate([[0], np.cumsum(count)])
        points = np.repeat(self.start[laws] - start[:-1], count) + np.arange(start[-1])
        weight, numbers = np.take(self.weight, points, axis=1), (self.mixing, self.lower, self.upper)
        return _TermAtRows(self.place, self.value[points], weight, start, *(each[laws] for each in numbers))

    def tables(
        self, groups: Sequence[NodeGroup], derive: Callable[[Complexes, Complexes, Floats], T]
    ) -> ColumnTables[T]:
        """Return lookups of means (n, N), contrasts (n, 1, N) and offsets (n, N), converted to a T."""
        [group] = groups
        growth = group.nodes.real
        offsets = np.maximum(np.multiply.outer(self.lower, growth), np.multiply.outer(self.upper, growth))
        sums = self._sums(group, offsets)
        mean, contrast = np.einsum("nab,nbk->ank", self.mixing, sums)
        return ColumnTables(self.place, offsets, derive(mean, contrast[:, None], offsets))

    def _sums(self, group: NodeGroup, offsets: Floats) -> Complexes:
        """Both functionals of e^{zf - offset}, (n, 2, N)."""
        sums = np.zeros((len(offsets), 2, 2, group.nodes.size))
        nodes = group.nodes.view(np.float64).reshape(-1, 2)
        add_exponentials(self.value, self.weight, self.start, nodes, group.equidistant, offsets, sums)
        return np.asarray(sums[:, :, 0] + 1j * sums[:, :, 1])


def _terms_at_rows(form: Linked, margin: int, fastest: Complexes, rows: Rows) -> list[_TermAtRows]:
    """Return what the columns add to one margin."""
    pairs = enumerate(zip(form.margins.terms.functions, form.margins.terms.loadings, strict=True))
    return [
        _TermAtRows.of(place, rows.columns[place], function, loading[:, margin], fastest)
        for place, (function, loading) in pairs
        if function is not None and loading[:, margin].any()
    ]


Factor: TypeAlias = ColumnTerm | Group | _TermAtRows


def _tables_of(
    factors: Sequence[Factor], group: NodeGroup, derive: Callable[[Complexes, Complexes, Floats], T]
) -> list[ColumnTables[T] | GroupTables[T]]:
    if isinstance(factors, WideColumns):
        return [*factors.tables([group], derive)]
    return [factor.tables([group], derive) for factor in factors]


@dataclass(frozen=True, eq=False)
class _Values:
    """E link(S) = base + rest of n rows, (n,) each, and its contrasts, (n, d)."""

    base: Floats
    rest: Floats
    contrast: Floats


class _Means(NamedTuple):
    """Means of e^{zf - offset} under each law of a column, one column after the other."""

    means: Complexes  # (laws of all columns, N)
    start: Ints  # (F,), the first law of each
    offsets: Floats  # (F, N)

    @classmethod
    def of(cls, factors: Sequence[ColumnTerm], group: NodeGroup) -> _Means:
        if isinstance(factors, WideColumns):
            return cls(*factors.means(group))
        each = [factor.functionals([group]) for factor in factors]
        start = np.cumsum([0, *(len(means) for means, *_ in each)], dtype=np.int64)[:-1]
        none = np.zeros((0, group.nodes.size))
        means = np.concatenate([none.astype(np.complex128), *(means for means, *_ in each)])
        offsets = np.reshape([its for *_, its in each], (len(each), group.nodes.size))
        return cls(means, start, offsets)

    @property
    def logs(self) -> _LogMeans:
        """The logarithms of e^{θf} for nodes that are real."""
        sizes = np.diff(self.start, append=len(self.means))
        with np.errstate(divide="ignore"):
            return _LogMeans(np.log(self.means.real) + np.repeat(self.offsets, sizes, axis=0), self.start)


class _LogMeans(NamedTuple):
    """Logarithms of the means of e^{θf} under each law of a column, one column after the other."""

    logs: Floats  # (laws of all columns, exponents)
    start: Ints  # (F,), the first law of each

    @classmethod
    def of(cls, tables: Sequence[Any], exponents: int) -> _LogMeans:
        each = [table.patterns[0] for table in tables if isinstance(table, ColumnTables)]
        sizes = [len(logs) for logs in each]
        start = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
        return cls(np.concatenate([np.zeros((0, exponents)), *each]), start)


class _Nodes(Protocol):
    """One contour's nodes."""

    @property
    def sum(self) -> ExponentialSum: ...
    @property
    def error(self) -> float: ...
    def expect(self, index: Ints) -> tuple[Floats, Floats]:
        """Re Σ W ∏ mean (n,) and its contrasts (n, d), given the law of each column."""
        ...


class _Margin:
    """One margin of the form under the laws of every column."""

    def __init__(self, link: Link, constant: float, factors: Sequence[Factor], smallest: float) -> None:
        self.link, self.smallest = link, smallest
        self.constant, self.factors = constant, factors
        # the link where the moments E e^{±qS} decide the nodes in place of the range of S
        self.by_moments: Contour | None = None
        self.exponents = np.array(link.tilts)
        if isinstance(factors, WideColumns) and isinstance(link, Contour) and link.order is not None:
            self.by_moments = link
            self.exponents = np.array([*link.tilts, link.order, -link.order])
        self._cached: dict[int, _Rule] = {}
        self.kept_rules: LRUCache[int, _KeptRule] = LRUCache(_MOST_RULES, _RULE_BYTES)

    @np.errstate(over="ignore", invalid="ignore")  # overflows are refused later
    def expect(self, index: Ints) -> _Values:
        """E link(S) and its contrasts for rows, given the law of each column, (n, d)."""
        level, largest = self._levels(index)
        base, rest, contrast = np.zeros(len(index)), np.zeros(len(index)), np.zeros(index.shape)
        # of means and of contrasts: the number that an error is relative to, and its bound
        size, bound = np.zeros((2, len(index))), np.zeros((2, len(index)))
        open_ = np.ones(len(index), dtype=np.bool_)
        for as_good in self._slacks:
            # where a column hardly leaves its cell, the mean outside the cell may be far larger than the mean
            for_mean, for_contrast = (
                np.where(open_, _first_good(its, as_good), -1) for its in (level, largest)
            )
            for tilt, rule, rows, patterns in self._chosen_rules(for_mean, for_contrast, index):
                total, differences = rule.expect(patterns)
                value = np.abs(rule.sum.base + rule.sum.rest + total)
                mean, differs = for_mean[rows] == tilt, for_contrast[rows] == tilt
                base[rows[mean]], rest[rows[mean]] = rule.sum.base, rule.sum.rest + total[mean]
                contrast[rows[differs]] = differences[differs]
                largest_change = np.abs(differences[differs]).max(axis=1, initial=0.0)
                size[0, rows[mean]], size[1, rows[differs]] = value[mean], value[differs] + largest_change
                bound[0, rows[mean]] = rule.error * np.exp(level[rows[mean], tilt])
                bound[1, rows[differs]] = rule.error * np.exp(largest[rows[differs], tilt])
            open_ = np.any(~np.isfinite(size) | ~(bound <= self._allowed(size)), axis=0)
            if not open_.any():
                break
        self._check(size.ravel(), bound.ravel())
        return _Values(base, rest, contrast)

    def _chosen_rules(
        self, for_mean: Ints, for_contrast: Ints, index: Ints
    ) -> Iterator[tuple[int, _Nodes, Ints, Ints]]:
        """Rules of each contour that rows use, for means or contrasts (n,), or for neither (-1)."""
        for tilt in sorted({*for_mean.tolist(), *for_contrast.tolist()} - {-1}):
            chosen = np.flatnonzero((for_mean == tilt) | (for_contrast == tilt))
            for rule, rows, patterns in self._rules(tilt, chosen, index):
                yield tilt, rule, rows, patterns

    def _rules(self, tilt: int, rows: Ints, index: Ints) -> Iterator[tuple[_Nodes, Ints, Ints]]:
        """Rules that the rows use on one contour; their rows, and the laws of their columns."""
        if tilt not in self._cached:
            theta = self.link.tilts[tilt]
            self._cached[tilt] = self._rule(self.factors, self.sum_on(tilt), theta)
        yield self._cached[tilt], rows, index[rows]

    def sum_on(self, tilt: int) -> ExponentialSum:
        """The exponentials on one contour, for all laws."""
        theta = self.link.tilts[tilt]
        if self.by_moments is not None:
            return self.by_moments.sum_by_moments(float(self.periods[tilt]), theta)
        lower = self.constant + sum(float(factor.lower[0]) for factor in self.factors)
        upper = self.constant + sum(float(factor.upper[0]) for factor in self.factors)
        return self.link.sum(lower, upper, theta)

    @cached_property
    def periods(self) -> Floats:
        """Periods on each contour for all laws, by the moments."""
        logs = [table.patterns for table in self.tilted if isinstance(table, ColumnTables)]
        rise = self.exponents[-2:, None] - self.exponents[:-2]
        reach = rise * self.constant
        for log, _ in logs:
            reach = reach + (log[:, -2:, None] - log[:, None, :-2]).max(axis=0)
        reach += np.max([ratio[:, -2:].max(axis=0) for _, ratio in logs], axis=0)[:, None]
        return self._periods(*reach)

    def _periods(self, above: Floats, below: Floats) -> Floats:
        """Periods on each contour (..., tilts) for logarithms of E e^{±qS} / E e^{θS}."""
        link = self.by_moments
        assert link is not None  # noqa: S101 - the callers check
        each = zip(np.moveaxis(above, -1, 0), np.moveaxis(below, -1, 0), link.tilts, strict=True)
        return np.stack([link.period_by_moments(*ends) for ends in each], axis=-1)

    def _rule(self, factors: Sequence[Factor], exponentials: ExponentialSum, theta: float) -> _Rule:
        return _Rule(factors, exponentials, self.constant, self.link.size(theta))

    def _by_nodes(
        self, lower: Floats, upper: Floats, theta: float, rows: Ints
    ) -> list[tuple[ExponentialSum, Ints]]:
        """The exponentials on one contour for ranges (n,) of the margin, and the rows that they are for."""
        return _grouped(rows, lambda row: self.link.sum(float(lower[row]), float(upper[row]), theta))

    @property
    def _level(self) -> Floats:
        """Logs of what the constant adds to errors, (tilts,)."""
        tilts = self.exponents
        return np.asarray(tilts * self.constant + np.log([self.link.size(tilt) for tilt in tilts]))

    def _levels(self, index: Ints) -> tuple[Floats, Floats]:
        """Logs of E e^{θS} and of its largest part with a column in its cell or not, (n, tilts)."""
        level, count = self._level, len(self.link.tilts)
        level, beyond = level + np.zeros((len(index), 1)), np.zeros((len(index), level.size))
        for table in self.tilted:
            pattern, (log, ratio) = table.at(index)
            level += log[pattern]
            beyond = np.maximum(beyond, ratio[pattern])
        return level[:, :count], (level + beyond)[:, :count]

    @cached_property
    def tilted(self) -> list[ColumnTables[tuple[Floats, Floats]] | GroupTables[tuple[Floats, Floats]]]:
        """The logarithms of mean(e^{θF}), and of 1 + |contrast| / mean, (P, exponents) of each factor."""
        return _tables_of(self.factors, NodeGroup(self.exponents.astype(np.complex128)), _levels_of)

    @cached_property
    def log_means(self) -> _LogMeans:
        """The logarithms of the means alone, where each factor is a column."""
        return _LogMeans.of(self.tilted, self.exponents.size)

    @property
    def _slacks(self) -> tuple[float, ...]:
        """How much worse than the best a row's contour may be, first and where that is not exact enough."""
        # other contours of wide sums need more nodes, in tables that are large
        return (_AS_GOOD, 0.0) if self.by_moments is None else (0.0,)

    def _allowed(self, value: Floats) -> Floats:
        return np.asarray(TOLERANCE * np.maximum(value, self.smallest))

    def _check(self, value: Floats, bound: Floats) -> None:
        if not np.isfinite(value).all():
            raise ModelError(
                "an expectation overflows float64, or a column hardly varies under the row's law"
            )
        allowed = self._allowed(value)
        if not (bound <= allowed).all():
            worst = int(np.argmax(bound / allowed))
            raise ModelError(
                f"an expectation of about {value[worst]:.3g} is known to {bound[worst]:.1g} only, as the "
                "margin spreads far on both sides"
            )


class _MarginAtRows(_Margin):
    """One margin at many rows, each of which has its own laws: each has a range, hence nodes."""

    factors: Sequence[_TermAtRows]

    def _rules(self, tilt: int, rows: Ints, index: Ints) -> Iterator[tuple[_Nodes, Ints, Ints]]:
        """A rule for the rows that have the same nodes."""
        theta = self.link.tilts[tilt]
        lower, upper = np.full((2, len(index)), self.constant)
        for factor in self.factors:
            lower, upper = (
                lower + factor.lower[index[:, factor.place]],
                upper + factor.upper[index[:, factor.place]],
            )
        for exponentials, chosen in self._by_nodes(lower, upper, theta, rows):
            factors = [factor.select(index[chosen, factor.place]) for factor in self.factors]
            # the rule's laws are its rows, numbered from 0
            numbers = np.repeat(np.arange(chosen.size)[:, None], index.shape[1], axis=1)
            yield self._rule(factors, exponentials, theta), chosen, numbers


class _KeptMargin(_Margin):
    """One margin at rows whose values may be kept; ``drawn`` has the laws of the columns that are not."""

    factors: Sequence[ColumnTerm]

    def __init__(self, drawn: _Margin, rows: KeptRows, smallest: float) -> None:
        super().__init__(drawn.link, drawn.constant, drawn.factors, smallest)
        self._drawn, self.size = drawn, len(rows.alone)
        places = [factor.place for factor in self.factors]
        self.laws, x = rows.kept(places)
        # what each column adds at each row, (F, U)
        if isinstance(self.factors, WideColumns):
            self.values = self.factors.values(self.laws, x)
        else:
            pairs = zip(self.factors, x, strict=True)
            self.values = np.reshape([f.loading[:, 0] @ f.function(its) for f, its in pairs], x.shape)
        self.point, self.t = rows.point, rows.shares_of(places)
        if not np.isfinite(self.values).all():
            raise ModelError("the margin has no finite value at a row")

    def at_exponents(self, exponents: Floats, log_means: _LogMeans, pairs: Ints) -> tuple[Floats, Floats]:
        """Logs of E e^{θf} of every column, and (g - m) / E e^{θf}, (F, n, exponents) each."""
        kept = np.multiply.outer(self.values, exponents)
        drawn = log_means.logs[log_means.start[:, None] + self.laws]
        return mixed_logs(kept, drawn, self.t[:, pairs], self.point[pairs])

    @cached_property
    def logs(self) -> tuple[Floats, Floats]:
        """Return what `at_exponents` gives on the contours."""
        return self.at_exponents(self.exponents, self._drawn.log_means, np.arange(self.point.size))

    @cached_property
    def _all_levels(self) -> tuple[Floats, Floats]:
        log, change = self.logs
        level = self._level + log.sum(axis=0)
        return level, level + np.log1p(np.abs(change)).max(axis=0, initial=0.0)

    def _levels(self, index: Ints) -> tuple[Floats, Floats]:  # noqa: ARG002 - all pairs
        level, largest = self._all_levels
        return level[:, : len(self.link.tilts)], largest[:, : len(self.link.tilts)]

    @cached_property
    def _periods_of_rows(self) -> Floats:
        """Periods on each contour (rows, tilts), by the moments; not below those of all laws."""
        level, largest = self._all_levels
        reach = largest[:, -2:, None] - level[:, None, :-2]
        periods = np.tile(self._drawn.periods, (len(self.values[0]), 1))
        np.maximum.at(periods, self.point, self._periods(reach[:, 0], reach[:, 1]))
        return periods

    def _rules(self, tilt: int, rows: Ints, index: Ints) -> Iterator[tuple[_Nodes, Ints, Ints]]:  # noqa: ARG002
        """Rules for the pairs that have the same nodes."""
        if self.by_moments is not None and not self._drawn.kept_rules:
            # with the first row the tables that most rows need: a later one would wait for its contour
            for each in range(len(self.link.tilts)):
                with suppress(InputError):  # too many nodes: rows that need this contour are refused
                    self._kept_rule(self._drawn.sum_on(each), each)
        point = self.point[rows]
        # pairs are in the order of their rows
        groups = self._by_contour(tilt, point[np.diff(point, prepend=-1) > 0])
        for exponentials, points in groups:
            chosen = rows if len(groups) == 1 else rows[np.isin(point, points)]
            yield _KeptPairs(self._kept_rule(exponentials, tilt), self, tilt), chosen, chosen

    def _kept_rule(self, exponentials: ExponentialSum, tilt: int) -> _KeptRule:
        """The tables of a contour's exponentials, which all rows share."""
        size = self.link.size(self.link.tilts[tilt])
        # a rule keeps its exponentials alive, so that no others have their number
        return self._drawn.kept_rules.get(
            id(exponentials),
            lambda: _KeptRule(self.factors, exponentials, self.constant, size),
            lambda rule: rule.products.means.nbytes,
        )

    def _by_contour(self, tilt: int, points: Ints) -> list[tuple[ExponentialSum, Ints]]:
        """The exponentials on one contour, and the rows that they are for."""
        theta = self.link.tilts[tilt]
        link = self.by_moments
        if link is not None:
            periods: list[float] = self._periods_of_rows[:, tilt].tolist()
            return _grouped(points, lambda row: link.sum_by_moments(periods[row], theta))
        ends = np.reshape([[factor.lower[0], factor.upper[0]] for factor in self.factors], (-1, 2, 1))
        lower = self.constant + np.minimum(ends[:, 0], self.values).sum(axis=0)
        upper = self.constant + np.maximum(ends[:, 1], self.values).sum(axis=0)
        return self._by_nodes(lower, upper, theta, points)


def _first_good(level: Floats, as_good: float) -> Ints:
    """The first contour that is ``as_good`` as any, by logs of their errors (n, tilts)."""
    return np.asarray(np.argmax(level <= level.min(axis=1, keepdims=True) + as_good, axis=1))


def _grouped(rows: Ints, sum_of: Callable[[int], ExponentialSum]) -> list[tuple[ExponentialSum, Ints]]:
    """The exponentials of rows, and the rows that share them."""
    groups: dict[int, tuple[ExponentialSum, list[int]]] = {}
    for row in rows.tolist():
        exponentials = sum_of(row)
        groups.setdefault(id(exponentials), (exponentials, []))[1].append(row)
    return [(exponentials, np.array(members)) for exponentials, members in groups.values()]


def _levels_of(means: Complexes, contrasts: Complexes, offsets: Floats) -> tuple[Floats, Floats]:
    mean, largest = means.real, np.abs(contrasts.real).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(mean)
        ratio = np.log(mean + largest) - log
    return log + offsets, np.where(mean > 0, ratio, np.inf)


class _Scaled(NamedTuple):
    """One factor: means over their sizes, contrasts over the same, and logarithms of these."""

    numbers: Numbers
    logs: Floats  # (P, sizes)


def _error_of(exponentials: ExponentialSum, factors: Sequence[Factor], size: float) -> float:
    """Error of an expectation of products, relative to E e^{θS} and the link's size."""
    weights = np.abs(exponentials.weights[: exponentials.contour]).sum()
    columns = sum(factor.places.size for factor in factors)
    columns *= ROUNDINGS if isinstance(factors, WideColumns) else 1
    return exponentials.error + product_rounding(columns) * (1.0 + float(weights) / size)


class _Rule:
    """Tables of one contour, and the computation of rows from them."""

    def __init__(
        self, factors: Sequence[Factor], exponentials: ExponentialSum, constant: float, size: float
    ) -> None:
        self.sum = exponentials
        self.error = _error_of(exponentials, factors, size)
        nodes = exponentials.nodes
        # the first node of each group of one size
        self._first = np.concatenate([[0], np.arange(exponentials.contour, nodes.size)])
        self._group = np.maximum(np.arange(nodes.size) - exponentials.contour + 1, 0)
        weights = exponentials.weights * np.exp(1j * nodes.imag * constant)
        # a group's nodes are one output of the products: each has a separate size at every row
        self._weights = in_parts(np.where(self._group == np.arange(self._first.size)[:, None], weights, 0.0))
        self._start = nodes.real[self._first] * constant + exponentials.log_weights[self._first]
        self._places = np.concatenate([factor.places for factor in factors] or [np.zeros(0, np.int64)])
        self._tables = _tables_of(factors, NodeGroup(nodes, exponentials.equidistant), self._scaled)

    def _scaled(self, means: Complexes, contrasts: Complexes, offsets: Floats) -> _Scaled:
        # by the first node's size, which all nodes on the contour have, or their own at real poles: products
        # neither over- nor underflow
        length = np.abs(means[:, self._first])
        length = np.where(length > 0, length, 1.0)
        scale = np.take(length, self._group, axis=1)
        numbers = Numbers(in_parts(means / scale), in_parts(contrasts / scale[:, None]))
        return _Scaled(numbers, np.log(length) + offsets[..., self._first])

    def expect(self, index: Ints) -> tuple[Floats, Floats]:
        """Re Σ W ∏ mean (n,) and its contrasts (n, d), given the law of each column."""
        n = len(index)
        total, contrast = np.zeros(n), np.zeros(index.shape)
        step = max(1, _BLOCK // (self._first.size * max(1, self._places.size)))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            total[rows] = self._block(index[rows], contrast[rows])
        return total, contrast

    def _block(self, index: Ints, contrast: Floats) -> Floats:
        n, groups = len(index), self._first.size
        logs = self._start + np.zeros((n, groups))
        if not self._tables:
            return np.asarray(np.exp(logs) @ self._weights[:, : self._group.size].sum(axis=1))
        patterns, parts = zip(*(table.at(index) for table in self._tables), strict=True)
        for pattern, part in zip(patterns, parts, strict=True):
            logs = logs + part.logs[pattern]
        sums, changes = np.zeros((n, groups)), np.zeros((n, self._places.size, groups))
        add_node_products(
            [part.numbers.means for part in parts],
            [part.numbers.contrasts for part in parts],
            np.stack(patterns),
            self._weights,
            sums,
            changes,
        )
        sizes = np.exp(logs)
        # one after the other, in one order for any number of rows
        total = np.zeros(n)
        for g in range(groups):
            total += sizes[:, g] * sums[:, g]
            contrast[:, self._places] += sizes[:, [g]] * changes[:, :, g]
        return total


class _KeptRule:
    """Tables of one contour for rows whose values may be kept."""

    def __init__(
        self, factors: Sequence[ColumnTerm], exponentials: ExponentialSum, constant: float, size: float
    ) -> None:
        self.sum, self.error = exponentials, _error_of(exponentials, factors, size)
        nodes, contour = exponentials.nodes, exponentials.contour
        weights = exponentials.weights * np.exp(1j * nodes.imag * constant)
        means = _Means.of(factors, NodeGroup(nodes[:contour], exponentials.equidistant))
        self.places, self.offsets = [factor.place for factor in factors], means.offsets[:, :1]
        self.products = KeptProducts(in_parts(means.means), means.start, in_parts(weights[None, :contour]))
        self.grid = Grid(*np.divmod(np.arange(contour), _ACROSS))
        self.poles, self.residues = nodes.real[contour:], weights.real[contour:]
        self.at_poles = self.poles * constant + exponentials.log_weights[contour:]
        self.log_means = _Means.of(factors, NodeGroup(nodes[contour:])).logs

    def waves(self, values: Floats) -> AtGrid:
        """e^{zf - offset} at values (F, U) of the columns: a node in _ACROSS, and the nodes from there on."""
        nodes = self.sum.nodes[: self.sum.contour]
        heights, steps = nodes.imag[::_ACROSS], nodes.imag[:_ACROSS] - nodes.imag[0]
        size = np.exp(self.sum.tilt * values - self.offsets)[..., None]
        turns, rest = np.multiply.outer(values, heights), np.multiply.outer(values, steps)
        along = np.concatenate([size * np.cos(turns), size * np.sin(turns)], axis=-1)
        return AtGrid(along, np.concatenate([np.cos(rest), np.sin(rest)], axis=-1))


class _KeptPairs(NamedTuple):
    """The pairs of rows and t that use a rule."""

    rule: _KeptRule
    margin: _KeptMargin
    tilt: int

    @property
    def sum(self) -> ExponentialSum:
        return self.rule.sum

    @property
    def error(self) -> float:
        return self.rule.error

    def expect(self, pairs: Ints) -> tuple[Floats, Floats]:
        """Re Σ W ∏ mean (n,) and its contrasts (n, d) of these pairs."""
        rule, margin = self.rule, self.margin
        point = margin.point[pairs]
        log = margin.logs[0][:, pairs, self.tilt]
        shares = margin.t[:, pairs] * np.exp(rule.offsets - log)[:, :, None]
        total, contrast = rule.products.expect(
            lambda some: rule.waves(np.ascontiguousarray(margin.values[:, some])),
            margin.laws[:, point],
            point,
            shares,
            rule.grid,
        )
        level = np.exp(self.sum.tilt * margin.constant + log.sum(axis=0))
        total, contrast = total[:, 0] * level, contrast[:, :, 0] * level[:, None]
        if rule.poles.size:
            log, change = margin.at_exponents(rule.poles, rule.log_means, pairs)
            terms = rule.residues * np.exp(rule.at_poles + log.sum(axis=0))
            total += terms.sum(axis=1)
            contrast += np.einsum("nk,fnk->nf", terms, change)
        changes = np.zeros((pairs.size, margin.size))
        changes[:, rule.places] = contrast
        return total, changes
