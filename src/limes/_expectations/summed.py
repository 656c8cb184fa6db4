r"""Exact expectations of sums of many links under a product design: networks with one hidden layer.

f(x) = c + Σ_h v_h link(S_h(x)), each S_h a sum over columns. Every link is a sum of exponentials on the range
of S_h (``models/forms/_links.py``, ``_activations.py``), E e^{zS_h} a product over columns, and all nodes of
all h go through the products together:

    E_w f = Σ_n W_n ∏_j mean_j(e^{z_n f_jh(n)}),    β_j = Σ_n W_n contrast_j(...) ∏_{k≠j} mean_k(...).

Where several links add up nothing is gained by the relative accuracy of each: the contour is Re z = 0, errors
add up to Σ_h |v_h| ε_h, and a row where that is above 1e-9 of the row's numbers is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.decays import Envelope, envelope, joint_decay, slope_of
from limes._expectations.moments import Moments
from limes._expectations.tabulated import TOLERANCE, Column, NodeGroup, TabulatedExpectation, product_rounding
from limes.designs._coordinates import Coordinate
from limes.designs._product import ProductFamily
from limes.exceptions import ModelError
from limes.models.forms._activations import Rectifier
from limes.models.forms._linked import Linked
from limes.models.forms._links import Complexes, ExponentialSum, Link

# Nodes of one block, and complex numbers of all columns of a block of rows: 2 MB
_NODES, _BLOCK = 2048, 131_072
# Complex numbers of a background's tables: 256 MB
_LARGEST = 16_000_000


class SummedExpectation(TabulatedExpectation["_Network"]):
    """Moments of sums of links under many designs.

    Raises
    ------
    InputError
        If design and form have different numbers of columns, or a margin's range is too wide; if a
        kink's series takes too many terms, as too few columns have densities.
    ModelError
        If a margin has no finite value somewhere, or the error of a row is above 1e-9.
    """

    @property
    def needs_densities(self) -> bool:
        """Whether laws of a few values have no exact expectation: kinks."""
        return isinstance(self._form.curve, Rectifier)

    def serves(self, family: ProductFamily) -> bool:
        """Whether `many` can be used: cells decide the designs, and are few."""
        if not family.by_cell:
            return False
        cells = sum(law.cells.count for law in family.marginals)
        margins = self._form.terms.intercept.size
        return 2 * cells * margins * _USUAL_NODES <= _LARGEST

    def _tabulate(self, variants: Sequence[Sequence[Coordinate]]) -> _Network:
        return _Network.of(self._form, variants)

    def _moments(self, tables: _Network, cells: Ints, variance: Floats) -> Moments:
        form = self._form
        mean, contrast = tables.moments(cells)
        size = np.abs(mean) + np.abs(contrast).max(axis=1, initial=0.0)
        wrong = ~(tables.error <= TOLERANCE * size)
        if wrong.any():
            row, output = np.argwhere(wrong)[0]
            raise ModelError(
                f"a sum of links of about {size[row, output]:.3g} is known to "
                f"{tables.error[output]:.1g} only, as its terms cancel: use method='sampled'"
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
    places
        Positions of the columns that are read.
    means, contrasts
        (V, N) of each of these columns.
    weights
        (k, 2 N): of real and imaginary parts of products, one after the other, for each output.
    lines
        Mean and contrast of the linear part, (2, V, k) of each column.
    constant, error
        (k,).
    """

    places: Sequence[int]
    means: Sequence[Complexes]
    contrasts: Sequence[Complexes]
    weights: Floats
    lines: Sequence[Floats]
    constant: Floats
    error: Floats

    @classmethod
    def of(cls, form: Linked, variants: Sequence[Sequence[Coordinate]]) -> _Network:
        """Choose the nodes of every margin, and tabulate them."""
        assert form.coef is not None  # noqa: S101 - set by __post_init__
        coef = form.coef.reshape(len(form.coef), -1)
        columns = [
            Column.of(j, function, loading, variants[j])
            for j, (function, loading) in enumerate(
                zip(form.terms.functions, form.terms.loadings, strict=True)
            )
            if function is not None and loading.any()
        ]
        constants = form.terms.intercept
        rules = _rules(form.curve, columns, constants)
        groups = [NodeGroup(rule.nodes, rule.contour) for rule in rules]
        slopes = coef * np.array([rule.slope for rule in rules])[:, None]
        means, contrasts, sizes = [], [], np.zeros(sum(rule.nodes.size for rule in rules))
        for column in columns:
            mean, contrast, offsets = column.functionals(groups)
            means.append(mean)
            contrasts.append(contrast)
            sizes = sizes + offsets
        owner = np.repeat(np.arange(len(rules)), [rule.nodes.size for rule in rules])
        weights = np.concatenate([rule.weights for rule in rules]) * np.exp(
            np.concatenate([r.nodes * c + r.log_weights for r, c in zip(rules, constants, strict=True)])
            + sizes
        )
        rounding = product_rounding(len(columns))
        errors = np.array([rule.error for rule in rules]) + rounding * (
            1.0 + np.bincount(owner, np.abs(weights), minlength=len(rules))
        )
        loaded = (weights[:, None] * coef[owner]).T
        return cls(
            [column.place for column in columns],
            means,
            contrasts,
            np.stack([loaded.real, -loaded.imag], axis=2).reshape(len(loaded), -1),
            [np.stack(_line(column, slopes)) for column in columns],
            form.intercept.reshape(-1)
            + np.array([rule.base + rule.rest for rule in rules]) @ coef
            + constants @ slopes,
            errors @ np.abs(coef),
        )

    def moments(self, cells: Ints) -> tuple[Floats, Floats]:
        """E f (n, k) and contrasts (n, d, k) of rows, given the variant of each column, (n, d)."""
        n, outputs = len(cells), self.constant.size
        places = cells[:, self.places]
        mean: Floats = np.broadcast_to(self.constant, (n, outputs)).copy()
        contrast = np.zeros((n, cells.shape[1], outputs))
        for place, line, variant in zip(self.places, self.lines, places.T, strict=True):
            mean += line[0][variant]
            contrast[:, place] = line[1][variant]
        step = max(1, _BLOCK // (_NODES * max(1, len(self.places))))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            for first in range(0, self.weights.shape[1] // 2, _NODES):
                self._add(places[rows], slice(first, first + _NODES), mean[rows], contrast[rows])
        return mean, contrast

    def _add(self, places: Ints, nodes: slice, mean: Floats, contrast: Floats) -> None:
        """Add what some nodes contribute to rows."""
        weights = self.weights[:, 2 * nodes.start : 2 * nodes.stop]
        means = [table[:, nodes][variant] for table, variant in zip(self.means, places.T, strict=True)]
        before = [np.ones((len(places), weights.shape[1] // 2), dtype=np.complex128)]
        for factor in means:
            before.append(before[-1] * factor)
        mean += _weighted(before.pop(), weights)
        after: Complexes | None = None
        for j in range(len(means) - 1, -1, -1):
            others = before[j] if after is None else before[j] * after
            # a factor with a name: numpy multiplies large temporaries in place, and in the other order
            change = self.contrasts[j][:, nodes][places[:, j]]
            contrast[:, self.places[j]] += _weighted(others * change, weights)
            after = means[j] if after is None else after * means[j]


def _weighted(products: Complexes, weights: Floats) -> Floats:
    """Re Σ_n W_n product_n, (n, N) -> (n, k), in one order for few rows and for many."""
    parts = products.view(np.float64)
    return np.stack([(parts * weight).sum(axis=1) for weight in weights], axis=1)


def _rules(link: Link, columns: Sequence[Column], constants: Floats) -> list[ExponentialSum]:
    """The exponentials of every margin on its range, as many as its law asks for."""
    lower = constants + sum(column.lower for column in columns)
    upper = constants + sum(column.upper for column in columns)
    envelopes: list[Envelope] = [envelope(column.variants) for column in columns]
    slopes = np.array([slope_of(column.function, column.loading) for column in columns])
    return [
        link.sum(float(low), float(high), 0.0, joint_decay(envelopes, slopes[:, k]))
        for k, (low, high) in enumerate(zip(lower, upper, strict=True))
    ]


def _line(column: Column, slopes: Floats) -> tuple[Floats, Floats]:
    """Mean and contrast of Σ_h slopes[h] f_h under every variant, (V, k) each."""
    if not slopes.any():
        nothing = np.zeros((len(column.variants), slopes.shape[1]))
        return nothing, nothing
    loading = column.loading @ slopes
    mean, contrast = (values.real for values in column.tabulate(column.function))
    return mean @ loading, contrast @ loading
