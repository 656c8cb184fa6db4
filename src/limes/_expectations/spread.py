r"""Var_w f of a form under a product design, where it has a closed form.

Columns are independent under w, so that

    f = Σ_j f_j(x_j):             Var_w f = Σ_j Var_w f_j
    f = c + Σ_i a_i ∏_j g_ij(x_j):   E_w (f - c)² = Σ_il a_i a_l ∏_j E_w[g_ij g_lj]    for few terms i
    f = a single tree:            E_w (f - c)² = Σ_leaves (value - c)² P_w(leaf)
    f = link(S):                  link² is a link of S (``link_variance.py``)

Each needs integrals of products of one-dimensional functions only (`Products`). Everything is divided by a
unit, one an output, so that squares of large answers stay finite. Other forms have no cheap closed form:
their variance is estimated on rows of w (``weighted_rows.py``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.forest import ForestExpectation
from limes._expectations.link_variance import link_variance
from limes._functions import Density, Filled, Function, Identity, Interval, Stacked, Step
from limes.designs._column import ColumnOfLaws
from limes.designs._marginals import Marginal
from limes.designs._product import ProductDesign
from limes.models.forms._base import Form, Reducible, Sum, SumOfProducts
from limes.models.forms._linked import Linked, Ridges
from limes.models.forms._trees import Forest

# Terms of a sum of products, of which all pairs are integrated
_MOST_TERMS = 96
# A variance below this share of a mean square has lost digits
_CANCELS = 1e-6


class ExactVariance(Protocol):
    """Var_w (f / unit) of one form under any product design, (k,); nan where it has no digits."""

    def variance(self, design: ProductDesign) -> Floats:
        """Return the variance for one design."""
        ...


def exact_variance(form: Form, unit: Floats) -> ExactVariance | None:
    """Choose the closed form of Var_w (f / unit), for units (k,); None where it is not cheap."""
    if isinstance(form, Forest):
        return TreeVariance(form, unit) if len(form.roots) == 1 else None
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
    """Products h_l · h_r of pairs (l, r) of h = transform @ g - center, g being m functions of a column.

    Attributes
    ----------
    functions
        g.
    transform
        (q, m).
    center
        (q,).
    left, right
        The pairs, positions among the q functions h.
    """

    functions: Function
    transform: Floats
    center: Floats
    left: Ints
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
    """Return the points between which the functions are constant; None where they are not."""
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
    """Return the points where the functions may jump or bend."""
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


class _Tables:
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
        self._means, self._squares = _Tables(), _Tables()

    def variance(self, design: ProductDesign) -> Floats:
        """Return the variance for one design."""
        total = np.zeros(self._pairs.size)
        for j, function in enumerate(self._functions):
            if function is not None:
                total += self._of_column(j, function, design.coordinates[j])
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
    """Σ_il a_i a_l (E_w[g_i g_l] - E_w g_i E_w g_l), g_i being the products."""

    def __init__(self, form: SumOfProducts, unit: Floats) -> None:
        self._form = form
        self._coef = form.coef.reshape(-1, unit.size) / unit
        self._left, self._right = np.triu_indices(len(form.coef))
        self._means, self._squares = _Tables(), _Tables()

    def variance(self, design: ProductDesign) -> Floats:
        """Return the variance for one design."""
        m, left, right = len(self._coef), self._left, self._right
        mean, square = np.ones(m), np.ones(left.size)
        for j, function in enumerate(self._form.functions):
            if function is None:
                continue
            law, q = design.coordinates[j].marginal, design.coordinates[j].probability
            mean = mean * (self._means.get(j, law, function) @ q)
            products = Products(function, np.eye(m), np.zeros(m), left, right)
            square = square * (self._squares.get(j, law, products) @ q)
        # each pair of different products counts twice
        covariance = np.where(left == right, 1.0, 2.0) * (square - mean[left] * mean[right])
        return np.maximum(covariance @ (self._coef[left] * self._coef[right]), 0.0)


class TreeVariance:
    """E_w (f - c)² - (E_w f - c)² of a single tree, whose leaves exclude each other, for one c."""

    def __init__(self, form: Forest, unit: Floats) -> None:
        self._values = form.value.reshape(form.feature.size, -1) / unit
        self._form = replace(form, value=self._values, intercept=np.zeros(unit.size))
        self._center = self._values[form.feature < 0].mean(axis=0)
        self._shared = self._powers(self._center)

    def variance(self, design: ProductDesign) -> Floats:
        """Return the variance for one design."""
        mean, square = np.split(self._shared.moments(design).mean, 2)
        variance = square - mean**2
        if (variance > _CANCELS * square).all():
            return np.asarray(variance)
        # nearly all weight is on one leaf: squares about its value
        _, square = np.split(self._powers(mean + self._center).moments(design).mean, 2)
        return np.asarray(square)

    def _powers(self, center: Floats) -> ForestExpectation:
        """Return the expectation of f - c and (f - c)²."""
        away = self._values - center
        value = np.concatenate([away, away**2], axis=1)
        return ForestExpectation(replace(self._form, value=value, intercept=np.zeros(value.shape[1])))
