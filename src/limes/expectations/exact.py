r"""Exact expectations of sums and of sums of products under a product design.

With mean_j(g) and contrast_j(g) the two functionals of column j (see ``designs/coordinates.py``):

    f = Σ_j f_j(x_j):          β_j = contrast_j(f_j)
    f = Σ_i a_i ∏_j g_ij(x_j): β_j = Σ_i a_i contrast_j(g_ij) ∏_{k≠j} mean_k(g_ik)

and E_w f is the same with means alone. Nothing large is subtracted beyond the contrast itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from limes._arrays import Floats
from limes.designs.coordinates import CellMeans, Coordinate, functionals
from limes.designs.marginals import Marginal
from limes.designs.product import ProductDesign
from limes.exceptions import InputError, ModelError
from limes.expectations.moments import Moments
from limes.functions import Function
from limes.models.forms.base import Reducible, Sum, SumOfProducts

# columns x terms multiplied at once: 32 MB of float64 for each of three arrays
_BLOCK = 4_000_000


class ExactExpectation:
    """Moments of one form under many designs.

    A column's table is cached as long as designs share its law, as they do for all rows of one background
    under bin weights.

    Raises
    ------
    InputError
        If design and form have different numbers of columns.
    ModelError
        If the form has no finite value somewhere the design goes (a linear model at a missing value).
    """

    method: Literal["exact"] = "exact"

    def __init__(self, form: Reducible) -> None:
        self._form = form
        self._reduced = form.reduce()
        # law and table of a column, replaced together: a thread reads an entry once
        self._tables: dict[int, tuple[Marginal, CellMeans]] = {}

    def moments(self, design: ProductDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(h, f), exactly."""
        if design.size != self._form.size:
            raise InputError(
                f"the design has {design.size} columns, the form ({type(self._form).__name__}) "
                f"has {self._form.size}"
            )
        columns: dict[int, tuple[Floats, Floats]] = {}
        for j, function in enumerate(self._reduced.functions):
            if function is not None:
                coordinate = design.coordinates[j]
                columns[j] = functionals(coordinate, self._table(j, coordinate, function))
        # infinite values are refused by `check_finite` of the surrogate, which names the features
        with np.errstate(over="ignore", invalid="ignore"):
            mean, contrast = _COMBINE[type(self._reduced)](self._reduced, columns)
            variance = design.variance.reshape(-1, *(1,) * mean.ndim)
            return Moments.exact(mean, contrast * variance)

    def _table(self, j: int, coordinate: Coordinate, function: Function) -> CellMeans:
        entry = self._tables.get(j)
        if entry is None or entry[0] is not coordinate.marginal:
            table = coordinate.tabulate(function)
            if not np.isfinite(table.values).all():
                raise ModelError(
                    f"the model has no finite value everywhere in column {j}: it cannot take a missing or an "
                    "extreme value that the background holds there; impute it in a Pipeline"
                )
            entry = self._tables[j] = (coordinate.marginal, table)
        return entry[1]


# mean and contrast of each column's functions
_Functionals = Mapping[int, tuple[Floats, Floats]]


def _sum(form: Sum, columns: _Functionals) -> tuple[Floats, Floats]:
    mean = form.intercept.astype(np.float64)
    contrast = np.zeros((len(form.functions), *form.intercept.shape))
    for j, (average, difference) in columns.items():
        mean = mean + np.tensordot(average, form.loadings[j], axes=1)
        contrast[j] = np.tensordot(difference, form.loadings[j], axes=1)
    return mean, contrast


def _sum_of_products(form: SumOfProducts, columns: _Functionals) -> tuple[Floats, Floats]:
    mean = form.intercept.astype(np.float64)
    contrast = np.zeros((len(form.functions), *form.intercept.shape))
    step = max(1, _BLOCK // max(1, len(columns)))
    for start in range(0, len(form.coef), step):
        block = slice(start, start + step)
        coef = form.coef[block]
        others, whole = _products_without_one([average[block] for average, _ in columns.values()], len(coef))
        mean = mean + np.tensordot(whole, coef, axes=1)
        for j, rest in zip(columns, others, strict=True):
            contrast[j] += np.tensordot(columns[j][1][block] * rest, coef, axes=1)
    return mean, contrast


def _products_without_one(factors: list[Floats], m: int) -> tuple[list[Floats], Floats]:
    """For each factor the product of all others (no division: factors may be 0), and the whole product."""
    after = [np.ones(m)]
    for factor in reversed(factors[1:]):
        after.append(after[-1] * factor)
    after.reverse()
    before, others = np.ones(m), []
    for factor, rest in zip(factors, after, strict=False):
        others.append(before * rest)
        before = before * factor
    return others, before


_COMBINE: Mapping[type, Callable[..., tuple[Floats, Floats]]] = {
    Sum: _sum,
    SumOfProducts: _sum_of_products,
}
