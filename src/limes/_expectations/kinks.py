r"""Kinks where columns take few values: E_w max(S, 0) by a sum over combinations, met in the middle.

The columns are split into two halves, whose sums A and B take n_A and n_B values. With the values of B sorted

    E max(A + B, 0) = Σ_a P(A = a) G(a),    G(a) = Σ_{b > -a} P(B = b) (a + b) = a P(B > -a) + E[B; B > -a],

two cumulative sums, so that n_A + n_B numbers suffice for n_A n_B combinations. The contrast of a column of A
has other weights of a and the same G; columns of B have contrasts with the halves exchanged. Orders are made
once a background, weights once a row, and all units of a network share them (Horowitz & Sahni 1974).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.tabulated import Column, product_rounding
from limes.designs._coordinates import Coordinate
from limes.designs._marginals import Atoms
from limes.models.forms._linked import Linked

# Largest number of values of a half, and of the halves of all units together: up to 50 ms a row
_MOST_VALUES, _MOST_NUMBERS = 4096, 1_000_000


@dataclass(frozen=True, eq=False)
class _Half:
    """Some columns, and their contributions to K margins.

    Attributes
    ----------
    places
        The columns.
    means, contrasts
        The two functionals of 1[x = value], (V, n_j) for each column.
    sums
        (K, n), the last column's values change first.
    """

    places: Sequence[int]
    means: Sequence[Floats]
    contrasts: Sequence[Floats]
    sums: Floats

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
    """Sums of kinks under the variants of columns that take few values, as ``_Network`` in ``summed.py``.

    Attributes
    ----------
    error
        Rounding errors, (k,).
    """

    def __init__(self, form: Linked, halves: tuple[_Half, _Half]) -> None:
        assert form.coef is not None  # noqa: S101 - set by __post_init__
        self._halves = halves
        self._coef = form.coef.reshape(len(form.coef), -1)
        self._constant = form.intercept.reshape(-1)
        first, second = halves
        self._orders = _Order(second.sums, first.sums), _Order(first.sums, second.sums)
        reach = np.abs(first.sums).max(axis=1) + np.abs(second.sums).max(axis=1)
        values = first.sums.shape[1] + second.sums.shape[1]
        self.error = product_rounding(values) * (reach @ np.abs(self._coef))

    @classmethod
    def of(cls, form: Linked, variants: Sequence[Sequence[Coordinate]]) -> Halves | None:
        """Return the sums; None where a column has a density, or there are too many combinations."""
        if not all(
            isinstance(measure, Atoms)
            for column in variants
            for law in {id(each.marginal): each.marginal for each in column}.values()
            for measure in law.measures
        ):
            return None
        terms = form.terms
        columns = [
            Column.of(j, function, loading, variants[j])
            for j, (function, loading) in enumerate(zip(terms.functions, terms.loadings, strict=True))
            if function is not None and loading.any()
        ]
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

    def moments(self, cells: Ints) -> tuple[Floats, Floats]:
        """E f (n, k) and contrasts (n, d, k) of rows, given the variant of each column, (n, d)."""
        patterns, which = np.unique(cells, axis=0, return_inverse=True)
        mean = np.empty((len(patterns), self._constant.size))
        contrast = np.zeros((len(patterns), cells.shape[1], self._constant.size))
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


def _values(column: Column) -> Floats:
    measures = [m for each in column.variants for m in each.marginal.measures if isinstance(m, Atoms)]
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


def _half(columns: Sequence[Column], values: Sequence[Floats], start: Floats) -> _Half:
    sums, means, contrasts = start, [], []
    for column, points in zip(columns, values, strict=True):
        mean, contrast = column.tabulate(_Values(points))
        means.append(np.asarray(mean.real))
        contrasts.append(np.asarray(contrast.real))
        added = column.loading.T @ column.function(points)
        sums = (sums[:, :, None] + added[:, None, :]).reshape(len(start), -1)
    return _Half([column.place for column in columns], means, contrasts, sums)
