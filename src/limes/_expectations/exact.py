r"""Exact expectations of sums and of sums of products under a product design.

With mean_j(g) and contrast_j(g) the two functionals of column j (see ``designs/_column.py``):

    f = Σ_j f_j(x_j):          β_j = contrast_j(f_j)
    f = Σ_i a_i ∏_j g_ij(x_j): β_j = Σ_i a_i contrast_j(g_ij) ∏_{k≠j} mean_k(g_ik)

and E_w f is the same with means alone. Only the contrast itself loses digits by cancellation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats, Ints, aligned, times
from limes._expectations.moments import Moments, ProductExpectation
from limes._functions import Function
from limes._kernels import add_node_products
from limes.designs._column import Column, IndicatorColumn
from limes.designs._marginals import Marginal
from limes.designs._product import KeptRows, ProductFamily, Rows
from limes.exceptions import InputError, ModelError
from limes.models.forms._base import Reducible, Sum, SumOfProducts

# Patterns x terms multiplied at once: 32 MB of float64 for each of four arrays
_BLOCK = 4_000_000
# Means of columns x nodes x terms that pairs are computed from at once: they stay in the cache
_PAIRS_BLOCK = 1 << 16
# Terms that the kernel adds up at once
_KERNEL_BLOCK = 256


class ExactExpectation(ProductExpectation):
    """Moments of one form under many designs; ModelError where it has no finite value."""

    def __init__(self, form: Reducible) -> None:
        self._form = form
        self._reduced = form.reduce()
        self.functions = self._reduced.functions
        # column and its functionals, replaced together: a thread reads an entry once
        self._tables: dict[int, tuple[Column, Floats, Floats]] = {}
        # likewise a column's law, and what is the same at any bandwidth: E[g | z = 1], E[g | z = 0], contrast
        self._sides: dict[int, tuple[Marginal, Floats, Floats, Floats]] = {}

    def account_seconds(self, family: ProductFamily) -> float:
        if isinstance(self._reduced, Sum):
            return super().account_seconds(family)
        # measured: terms, columns, and nodes of t, half as many as columns
        columns = len(family.marginals)
        return super().account_seconds(family) + 5e-8 * len(self._reduced.coef) * columns * (columns / 2 + 2)

    def at(self, rows: Rows) -> Moments:
        if len(rows.columns) != self._form.size:
            raise InputError(
                f"the design has {len(rows.columns)} columns, the form ({type(self._form).__name__}) "
                f"has {self._form.size}"
            )
        columns = {}
        for j, function in enumerate(self._reduced.functions):
            if function is not None:
                columns[j] = _Patterns(*self._functionals(j, function, rows), rows.index[:, j])
        variance = rows.features.variance
        # infinite values are refused by `check_finite` of the surrogate, which names the features
        with np.errstate(over="ignore", invalid="ignore"):
            mean, contrast = _COMBINE[type(self._reduced)](self._reduced, columns, len(rows))
            return Moments.exact(mean, contrast * aligned(variance, contrast), designs=(len(rows),))

    def pairs(self, rows: KeptRows, weights: Floats) -> Floats:
        """Σ_t weights[t] ∂_i∂_j E f of sums of products, (n, d, d, k): symmetric, 0 on the diagonal.

        Rows are n · T designs, those of a row side by side.
        """
        form = self._reduced
        assert isinstance(form, SumOfProducts)  # noqa: S101 - columns of a sum do not interact
        read = [j for j, function in enumerate(form.functions) if function is not None]
        coef = form.coef.reshape(len(form.coef), -1)
        n, d, count = len(rows) // weights.size, len(rows.columns), weights.size
        pairs = np.zeros((n, d, d, coef.shape[1]))
        each = [self._functionals(j, function, rows) for j, function in enumerate(form.functions) if function]
        # rows one after the other, whatever their number
        step = max(1, _PAIRS_BLOCK // (count * max(1, len(read))))
        for row in range(n):
            laws = rows.index[row * count : (row + 1) * count]
            for start in range(0, len(coef), step):
                some = slice(start, start + step)
                means, contrasts = (
                    np.stack(
                        [numbers[which][laws[:, j], some] for j, numbers in zip(read, each, strict=True)]
                    )
                    for which in (0, 1)
                )
                for i, j, products in products_of_pairs(means, contrasts):
                    pairs[row, read[i], read[j]] += (weights @ products) @ coef[some]
        return np.asarray(pairs + pairs.swapaxes(1, 2))

    def _functionals(self, j: int, function: Function, rows: Rows) -> tuple[Floats, Floats]:
        column = rows.columns[j]
        entry = self._tables.get(j)
        if entry is None or entry[0] is not column:
            entry = (column, *self._mixed(j, function, column))
            if rows.lasting:
                self._tables[j] = entry
        return entry[1:]

    def _mixed(self, j: int, function: Function, column: Column) -> tuple[Floats, Floats]:
        if not isinstance(column, IndicatorColumn) or (law := column.law_of_all_cells) is None:
            return column.mixed(_finite(column.basis(function), j))
        entry = self._sides.get(j)
        if entry is None or entry[0] is not law:
            basis = _finite(column.basis(function), j)
            each = (basis[:, :, 0].T, basis[:, :, 1].T, column.mixed(basis)[1])
            inside, outside, contrast = map(np.ascontiguousarray, each)
            entry = self._sides[j] = law, inside, outside, contrast
        _, inside, outside, contrast = entry
        return column.inclusion[:, None] * inside + column.exclusion[:, None] * outside, contrast


def products_of_pairs(means: Floats, changes: Floats) -> Iterator[tuple[int, int, Floats]]:
    """For factors (F, ...) the pairs i < j, and both changes times the means of all other factors."""
    count = len(means)
    after = np.ones_like(means)
    np.cumprod(means[:0:-1], axis=0, out=after[-2::-1])
    before = np.ones_like(means[0])
    for i in range(count):
        # no division: a mean may be 0
        between = before * changes[i]
        for j in range(i + 1, count):
            yield i, j, between * changes[j] * after[j]
            between = between * means[j]
        before = before * means[i]


def _finite(values: Floats, j: int) -> Floats:
    """Return the integrals of column j's functions; raise ModelError where the model has no finite value."""
    if not np.isfinite(values).all():
        raise ModelError(
            f"the model has no finite value everywhere in column {j}: it cannot take a missing or an "
            "extreme value that the background holds there; impute it in a Pipeline"
        )
    return values


class _Patterns(NamedTuple):
    """A column's m functions."""

    mean: Floats  # (V, m)
    contrast: Floats
    pattern: Ints  # (n,) the law of each row


def _sum(form: Sum, columns: Mapping[int, _Patterns], rows: int) -> tuple[Floats, Floats]:
    outputs = form.intercept.shape
    mean = np.broadcast_to(form.intercept.astype(np.float64), (rows, *outputs))
    contrast = np.zeros((rows, len(form.functions), *outputs))
    for j, column in columns.items():
        mean = mean + times(column.mean, form.loadings[j])[column.pattern]
        contrast[:, j] = times(column.contrast, form.loadings[j])[column.pattern]
    return mean, contrast


def _sum_of_products(
    form: SumOfProducts, columns: Mapping[int, _Patterns], rows: int
) -> tuple[Floats, Floats]:
    outputs = form.intercept.shape
    coef = form.coef.reshape(len(form.coef), prod(outputs))
    total, changes = np.zeros((rows, coef.shape[1])), np.zeros((rows, len(columns), coef.shape[1]))
    patterns = np.array([column.pattern for column in columns.values()], dtype=np.int64).reshape(-1, rows)
    sizes = sum(len(column.mean) for column in columns.values())
    # whole blocks of the kernel: numbers are added in one order however many terms are passed at once
    step = _KERNEL_BLOCK * max(1, _BLOCK // (_KERNEL_BLOCK * max(1, sizes)))
    for start in range(0, len(coef), step):
        block = slice(start, start + step)
        add_node_products(
            [_real(column.mean[:, block]) for column in columns.values()],
            [_real(column.contrast[:, None, block]) for column in columns.values()],
            patterns,
            _real(coef[block].T),
            total,
            changes,
        )
    contrast = np.zeros((rows, len(form.functions), coef.shape[1]))
    contrast[:, list(columns)] = changes
    return form.intercept + total.reshape(rows, *outputs), contrast.reshape(*contrast.shape[:2], *outputs)


def _real(numbers: Floats) -> Floats:
    """Real numbers followed by imaginary parts of 0, the kernel's layout of complex numbers."""
    parts = np.zeros((*numbers.shape[:-1], 2 * numbers.shape[-1]))
    parts[..., : numbers.shape[-1]] = numbers
    return parts


_COMBINE: Mapping[type, Callable[..., tuple[Floats, Floats]]] = {
    Sum: _sum,
    SumOfProducts: _sum_of_products,
}
