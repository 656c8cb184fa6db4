r"""Exact expectations of links of sums under a product design, by quadrature whose error is known beforehand.

A link is a sum of exponentials on the range of the margin S = c + Σ_j f_j(x_j) (``models/forms/_links.py``),
and E e^{zS} = e^{zc} ∏_j mean_j(e^{z f_j}), with the two functionals of column j of ``exact.py``:

    E_w f = Re Σ_n W_n ∏_j mean_j(e^{z_n f_j})
    β_j   = Re Σ_n W_n contrast_j(e^{z_n f_j}) ∏_{k≠j} mean_k(e^{z_n f_k})

Both functionals depend on the row only through the law of its column: under bin weights all rows share one
table of cells × nodes, and a row costs the products before and after each column. Columns that
interact are one factor together (``groups.py``).

Among the contours Re z = θ a row uses the one with the least E e^{θS}, which multiplies the errors: its
probability keeps its digits whether it is 1/2, 1e-12, or 1 - 1e-12. Where the bound is still above 1e-9, the
row is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.groups import Group, GroupTables, factors_of
from limes._expectations.linked_rows import ColumnAtRows, columns_at_rows
from limes._expectations.moments import Moments
from limes._expectations.tabulated import (
    TOLERANCE,
    Column,
    ColumnTables,
    NodeGroup,
    TabulatedExpectation,
    product_rounding,
)
from limes._functions import Function
from limes.designs._coordinates import Coordinate
from limes.designs._tilted_columns import TiltedColumn
from limes.exceptions import ModelError
from limes.models.forms._linked import Linked
from limes.models.forms._links import Complexes, Contour, Exponential, ExponentialSum, Link

Factor: TypeAlias = Column | Group | ColumnAtRows

# Probabilities below this are compared with it
_TINY = 1e-15
# Complex numbers of all columns of one block of rows, 1 MB: twice as fast as 2 MB, which leave a core's cache
_BLOCK = 65_536


class LinkedExpectation(TabulatedExpectation["list[_Margin]"]):
    """Moments of links of sums under many designs.

    Errors are relative to the expectations, or to ``smallest`` where an expectation is smaller.

    Raises
    ------
    InputError
        If design and form have different numbers of columns, or the margin's range is too wide.
    ModelError
        If the margin has no finite value somewhere, or the error of a row cannot be bounded.
    """

    _form: Linked

    def __init__(self, form: Linked, smallest: float = _TINY) -> None:
        super().__init__(form)
        self._smallest = smallest

    def _tabulate(self, variants: Sequence[Sequence[Coordinate]]) -> list[_Margin]:
        form = self._form
        return [
            _Margin(
                form.curve,
                float(constant),
                factors_of(form.margins, variants, slice(k, k + 1)),
                self._smallest,
            )
            for k, constant in enumerate(form.margins.terms.intercept)
        ]

    @property
    def functions(self) -> Sequence[Function | None] | None:
        """Functions that the margins are made of; None if columns interact."""
        terms, interactions = self._form.margins
        return None if interactions else terms.functions

    def of_columns(self, columns: Sequence[TiltedColumn]) -> Moments:
        """Moments at n rows, given each column's laws there."""
        form = self._form
        assert isinstance(form.curve, Contour | Exponential)  # noqa: S101 - other links add up
        margins = [
            _MarginAtRows(
                form.curve,
                float(constant),
                columns_at_rows(form, k, form.curve.fastest, columns),
                self._smallest,
            )
            for k, constant in enumerate(form.margins.terms.intercept)
        ]
        variance = np.stack([column.variance for column in columns], axis=1)
        rows = np.arange(len(variance))[:, None]
        return self._moments(margins, np.broadcast_to(rows, variance.shape), variance)

    def _moments(self, tables: Sequence[_Margin], cells: Ints, variance: Floats) -> Moments:
        form = self._form
        assert form.coef is not None  # noqa: S101 - set by __post_init__
        ones = (1,) * form.intercept.ndim
        base: Floats = np.broadcast_to(form.intercept, (len(cells), *form.intercept.shape)).copy()
        rest, contrast = np.zeros(base.shape), np.zeros((*cells.shape, *form.intercept.shape))
        for margin, coef in zip(tables, form.coef, strict=True):
            linked = margin.moments(cells)
            # the bases are added first: 1 less a probability of almost 1 is then exact
            base += linked.base.reshape(-1, *ones) * coef
            rest += linked.rest.reshape(-1, *ones) * coef
            contrast += linked.contrast.reshape(*cells.shape, *ones) * coef
        gamma = contrast * variance.reshape(*variance.shape, *ones)
        return Moments.exact(base + rest, gamma, designs=variance.shape[:-1])


@dataclass(frozen=True, eq=False)
class _Values:
    """E link(S) = base + rest of n rows, (n,) each, and its contrasts, (n, d)."""

    base: Floats
    rest: Floats
    contrast: Floats


class _Margin:
    """One margin of the form under the variants of every column's law."""

    def __init__(self, link: Link, constant: float, factors: Sequence[Factor], smallest: float) -> None:
        self._link, self._smallest = link, smallest
        self._constant, self._factors = constant, factors
        self._cached: dict[int, _Rule] = {}

    @np.errstate(over="ignore", invalid="ignore")  # overflows are refused later
    def moments(self, cells: Ints) -> _Values:
        """E link(S) and its contrasts for rows, given the variant of each column, (n, d)."""
        level, largest = self._levels(cells)
        base, rest, contrast = np.zeros(len(cells)), np.zeros(len(cells)), np.zeros(cells.shape)
        # where a column hardly leaves its cell, the mean outside the cell may be far larger than the mean
        for_mean, for_contrast = np.argmin(level, axis=1), np.argmin(largest, axis=1)
        for tilt in np.union1d(for_mean, for_contrast).tolist():
            chosen = np.flatnonzero((for_mean == tilt) | (for_contrast == tilt))
            for rule, rows, patterns in self._rules(tilt, chosen, cells):
                total, differences = rule.moments(patterns)
                value = np.abs(rule.sum.base + rule.sum.rest + total)
                mean, differs = for_mean[rows] == tilt, for_contrast[rows] == tilt
                base[rows[mean]], rest[rows[mean]] = rule.sum.base, rule.sum.rest + total[mean]
                contrast[rows[differs]] = differences[differs]
                self._check(value[mean], rule.error * np.exp(level[rows[mean], tilt]))
                size = value[differs] + np.abs(differences[differs]).max(axis=1, initial=0.0)
                self._check(size, rule.error * np.exp(largest[rows[differs], tilt]))
        return _Values(base, rest, contrast)

    def _rules(self, tilt: int, rows: Ints, cells: Ints) -> Iterator[tuple[_Rule, Ints, Ints]]:
        """Rules that the rows use on one contour; their rows, and the variants of their columns."""
        if tilt not in self._cached:
            lower = self._constant + sum(float(factor.lower[0]) for factor in self._factors)
            upper = self._constant + sum(float(factor.upper[0]) for factor in self._factors)
            theta = self._link.tilts[tilt]
            self._cached[tilt] = self._rule(self._factors, self._link.sum(lower, upper, theta), theta)
        yield self._cached[tilt], rows, cells[rows]

    def _rule(self, factors: Sequence[Factor], exponentials: ExponentialSum, theta: float) -> _Rule:
        return _Rule(factors, exponentials, self._constant, self._link.size(theta))

    def _levels(self, cells: Ints) -> tuple[Floats, Floats]:
        """Factors of the errors on each contour, (n, tilts): those of the mean and those of contrasts.

        The logarithms of E e^{θS}, and of the largest part of it given that one column is in its cell or not.
        """
        tilts = np.array(self._link.tilts)
        level = tilts * self._constant + np.log([self._link.size(tilt) for tilt in self._link.tilts])
        level, beyond = level + np.zeros((len(cells), 1)), np.zeros((len(cells), tilts.size))
        for table in self._logs:
            pattern, (log, ratio) = table.at(cells)
            level += log[pattern]
            beyond = np.maximum(beyond, ratio[pattern])
        return level, level + beyond

    @cached_property
    def _logs(self) -> list[ColumnTables[tuple[Floats, Floats]] | GroupTables[tuple[Floats, Floats]]]:
        """The logarithms of mean(e^{θF}), and of 1 + |contrast| / mean, (P, tilts) of each factor."""
        tilts = NodeGroup(np.array(self._link.tilts, dtype=np.complex128))
        return [factor.tables([tilts], _levels_of) for factor in self._factors]

    def _check(self, value: Floats, bound: Floats) -> None:
        if not np.isfinite(value).all():
            raise ModelError(
                "an expectation overflows float64, or a column hardly varies under the row's law"
            )
        allowed = TOLERANCE * np.maximum(value, self._smallest)
        if not (bound <= allowed).all():
            worst = int(np.argmax(bound / allowed))
            raise ModelError(
                f"an expectation of about {value[worst]:.3g} is known to {bound[worst]:.1g} only, as the "
                "margin spreads far on both sides"
            )


class _MarginAtRows(_Margin):
    """One margin at many rows, each of which has its own laws: each has a range, hence nodes."""

    _factors: Sequence[ColumnAtRows]

    def _rules(self, tilt: int, rows: Ints, cells: Ints) -> Iterator[tuple[_Rule, Ints, Ints]]:
        """A rule for the rows that have the same nodes."""
        theta, start = self._link.tilts[tilt], np.full(len(cells), self._constant)
        lower = sum([factor.lower for factor in self._factors], start)
        upper = sum([factor.upper for factor in self._factors], start)
        groups: dict[int, tuple[ExponentialSum, list[int]]] = {}
        for row in rows.tolist():
            exponentials = self._link.sum(float(lower[row]), float(upper[row]), theta)
            groups.setdefault(id(exponentials), (exponentials, []))[1].append(row)
        for exponentials, members in groups.values():
            chosen = np.array(members)
            factors = [factor.select(chosen) for factor in self._factors]
            # the rule's variants are its rows, numbered from 0: every column of ``cells`` lists 0, 1, 2, ...
            yield self._rule(factors, exponentials, theta), chosen, cells[: chosen.size]


def _levels_of(means: Complexes, contrasts: Complexes, offsets: Floats) -> tuple[Floats, Floats]:
    mean, largest = means.real, np.abs(contrasts.real).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(mean)
        ratio = np.log(mean + largest) - log
    return log + offsets, np.where(mean > 0, ratio, np.inf)


class _Scaled(NamedTuple):
    """One factor: means (P, N) over their sizes, contrasts (P, g, 2N) over the same, and logarithms of these.

    Contrasts are conjugates: the real part of a product is then a sum of products of parts.
    """

    means: Complexes
    contrasts: Floats
    logs: Floats


class _Rule:
    """Tables of one contour, and the computation of rows from them.

    Means are divided by the size of the first node's, of all nodes on the contour, or by their own at real
    poles, so that products neither over- nor underflow.
    """

    def __init__(
        self, factors: Sequence[Factor], exponentials: ExponentialSum, constant: float, size: float
    ) -> None:
        self.sum = exponentials
        columns = sum(factor.places.size for factor in factors)
        self.error = exponentials.error + product_rounding(columns) * (
            1.0 + float(np.abs(exponentials.weights[: exponentials.contour]).sum()) / size
        )
        nodes = exponentials.nodes
        # the first node of each group of one size
        self._first = np.concatenate([[0], np.arange(exponentials.contour, nodes.size)])
        self._group = np.maximum(np.arange(nodes.size) - exponentials.contour + 1, 0)
        self._weights = exponentials.weights * np.exp(1j * nodes.imag * constant)
        self._start = nodes.real[self._first] * constant + exponentials.log_weights[self._first]
        self._columns = columns
        self._places = [factor.places for factor in factors]
        group = [NodeGroup(nodes, exponentials.contour)]
        self._tables = [factor.tables(group, self._scaled) for factor in factors]

    def _scaled(self, means: Complexes, contrasts: Complexes, offsets: Floats) -> _Scaled:
        length = np.abs(means[:, self._first])
        length = np.where(length > 0, length, 1.0)
        scale = np.take(length, self._group, axis=1)
        parts = np.conj(contrasts / scale[:, None]).view(np.float64)
        return _Scaled(means / scale, parts, np.log(length) + offsets[..., self._first])

    def moments(self, cells: Ints) -> tuple[Floats, Floats]:
        """Re Σ W ∏ mean (n,) and its contrasts (n, d), given the variant of each column."""
        n = len(cells)
        total, contrast = np.zeros(n), np.zeros(cells.shape)
        step = max(1, _BLOCK // (self._group.size * max(1, self._columns)))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            total[rows] = self._block(cells[rows], contrast[rows])
        return total, contrast

    def _block(self, cells: Ints, contrast: Floats) -> Floats:
        """Return the totals of some rows, and set their contrasts."""
        parts = [table.at(cells) for table in self._tables]
        logs = self._start + np.zeros((len(cells), 1))
        for pattern, part in parts:
            logs = logs + part.logs[pattern]
        before = [self._weights * np.take(np.exp(logs), self._group, axis=1)]
        means = [part.means[pattern] for pattern, part in parts]
        for mean in means:
            before.append(before[-1] * mean)
        total = before.pop().real.sum(axis=1)
        after: Complexes | None = None
        for f in range(len(means) - 1, -1, -1):
            others = before[f] if after is None else before[f] * after
            pattern, part = parts[f]
            for i, place in enumerate(self._places[f]):
                change = part.contrasts[:, i][pattern]
                contrast[:, place] = np.einsum("nk,nk->n", others.view(np.float64), change)
            after = means[f] if after is None else after * means[f]
        return np.asarray(total)
