r"""Exact expectations of sums of many links under a product design: networks with one hidden layer.

f(x) = c + Σ_h v_h link(S_h(x)), each S_h a sum over columns. Every link is a sum of exponentials on the range
of S_h (``models/forms/_links.py``), E e^{zS_h} a product over columns, and all nodes of
all h go through the products together:

    E_w f = Σ_n W_n ∏_j mean_j(e^{z_n f_jh(n)}),    β_j = Σ_n W_n contrast_j(...) ∏_{k≠j} mean_k(...).

Where several links add up nothing is gained by the relative accuracy of each: the contour is Re z = 0, errors
add up to Σ_h |v_h| ε_h, and a row where that is above 1e-9 of the row's numbers is refused. Kinks of columns
that take few values, whose series would not end, are summed over their combinations (``kinks.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.decays import Envelope, envelope, joint_decay, slope_of
from limes._expectations.groups import Group, factors_of
from limes._expectations.kinks import Halves
from limes._expectations.moments import Moments
from limes._expectations.tabulated import (
    TOLERANCE,
    Column,
    NodeGroup,
    NodeProducts,
    Numbers,
    TabulatedExpectation,
    product_rounding,
)
from limes.designs._coordinates import Coordinate
from limes.designs._product import ProductFamily
from limes.exceptions import InputError, ModelError
from limes.models.forms._linked import Linked
from limes.models.forms._links import Complexes, ExponentialSum, Link, Rectifier

# Complex numbers of a background's tables: 256 MB
_LARGEST = 16_000_000


class SummedExpectation(TabulatedExpectation["_Network | Halves"]):
    """Moments of sums of links under many designs.

    Raises
    ------
    InputError
        If design and form have different numbers of columns, or a margin's range is too wide; if a
        kink's series takes too many terms, as too few columns have densities.
    ModelError
        If a margin has no finite value somewhere, or the error of a row is above 1e-9.
    """

    _form: Linked

    @property
    def needs_densities(self) -> bool:
        """Whether laws of many combinations of values have no exact expectation: kinks."""
        return isinstance(self._form.curve, Rectifier)

    def serves(self, family: ProductFamily) -> bool:
        """Return whether `of_cells` can be used: cells decide the designs, and are few."""
        if not family.by_cell:
            return False
        cells = sum(law.cells.count for law in family.marginals)
        margins = self._form.margins.terms.intercept.size
        return 2 * cells * margins * _USUAL_NODES <= _LARGEST

    def _tabulate(self, variants: Sequence[Sequence[Coordinate]]) -> _Network | Halves:
        halves = Halves.of(self._form, variants) if self.needs_densities else None
        return _Network.of(self._form, variants) if halves is None else halves

    def _moments(self, tables: _Network | Halves, cells: Ints, variance: Floats) -> Moments:
        form = self._form
        mean, contrast = tables.moments(cells)
        size = np.abs(mean) + np.abs(contrast).max(axis=1, initial=0.0)
        wrong = ~(tables.error <= TOLERANCE * size)
        if wrong.any():
            row, output = np.argwhere(wrong)[0]
            raise ModelError(
                f"a sum of links of about {size[row, output]:.3g} is known to "
                f"{tables.error[output]:.1g} only, as its terms cancel"
            )
        gamma = contrast * variance[..., None]
        outputs = form.intercept.shape
        return Moments.exact(
            mean.reshape(len(cells), *outputs),
            gamma.reshape(*cells.shape, *outputs),
            designs=variance.shape[:-1],
        )


# Nodes of an activation, about: what tables may cost is decided before they are made
_USUAL_NODES = 128


@dataclass(frozen=True, eq=False)
class _Network:
    """Tables of one form under the variants of every column's law.

    Attributes
    ----------
    products
        Products over all margins' nodes.
    lines
        Column, mean and contrast of the linear part, (V, k) each.
    constant, error
        (k,).
    """

    products: NodeProducts
    lines: Sequence[tuple[int, Floats, Floats]]
    constant: Floats
    error: Floats

    @classmethod
    def of(cls, form: Linked, variants: Sequence[Sequence[Coordinate]]) -> _Network:
        """Choose the nodes of every margin, and tabulate them."""
        assert form.coef is not None  # noqa: S101 - set by __post_init__
        coef = form.coef.reshape(len(form.coef), -1)
        factors = factors_of(form.margins, variants, slice(None))
        constants = form.margins.terms.intercept
        rules = _rules(form.curve, factors, constants)
        groups = [NodeGroup(rule.nodes, rule.contour) for rule in rules]
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
            errors @ np.abs(coef),
        )

    def moments(self, cells: Ints) -> tuple[Floats, Floats]:
        """E f (n, k) and contrasts (n, d, k) of rows, given the variant of each column, (n, d)."""
        mean, contrast = self.products.moments(cells)
        mean += self.constant
        for place, of_mean, of_contrast in self.lines:
            mean += of_mean[cells[:, place]]
            contrast[:, place] += of_contrast[cells[:, place]]
        return mean, contrast


def _rules(link: Link, factors: Sequence[Column | Group], constants: Floats) -> list[ExponentialSum]:
    """The exponentials of every margin on its range, as many as its law requires."""
    lower = constants + sum(factor.lower for factor in factors)
    upper = constants + sum(factor.upper for factor in factors)
    # kinks of groups are refused, and others need no decay
    columns = [factor for factor in factors if isinstance(factor, Column)]
    envelopes: list[Envelope] = [envelope(column.variants) for column in columns]
    slopes = np.array([slope_of(column.function, column.loading) for column in columns])
    slopes = slopes.reshape(len(columns), constants.size)
    return [
        link.sum(float(low), float(high), 0.0, joint_decay(envelopes, slopes[:, k]))
        for k, (low, high) in enumerate(zip(lower, upper, strict=True))
    ]


def _line(factor: Column | Group, slopes: Floats) -> tuple[int, Floats, Floats]:
    """Column, mean and contrast of Σ_h slopes[h] f_h under every variant, (V, k) each."""
    if not isinstance(factor, Column):
        raise InputError("a kink of columns that interact has no exact expectation")
    loading = factor.loading @ slopes
    mean, contrast = (values.real for values in factor.tabulate(factor.function))
    return factor.place, mean @ loading, contrast @ loading
