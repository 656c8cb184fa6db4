r"""Var_w f of links of sums: the square of a link is a link, too (``models/forms/_links.py``).

    Var link(S) = E link²(S) - (E link(S))²,    Var Σ_h v_h cos S_h by cosines of sums and differences.

The variance of a probability near 1 is computed as that of its complement, whose moments keep their digits.
Where the difference cancels all the same, or a bound is not met, it is nan, and estimated on rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.linked import LinkedExpectation
from limes._expectations.linked_norms import LinkedNormExpectation
from limes._expectations.linked_words import LinkedWordsExpectation
from limes._expectations.moments import ExactMoments, explain_rows
from limes._expectations.summed import SummedExpectation
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._product import ProductDesign, ProductFamily, Rows
from limes.exceptions import InputError, ModelError
from limes.models.forms._base import Combination, Reduced, Sum, outputs_of
from limes.models.forms._linked import Linked, Ridges
from limes.models.forms._links import SQUARES
from limes.models.forms._presence import NormalizedLinear

Design: TypeAlias = ProductDesign | ExchangeableDesign

# A variance below this share of a mean square has lost digits: moments are known to 1e-13
_CANCELS = 2e-4
# Moments have nine digits down to the first number, or are refused; those of words down to the second
_SMALLEST, _SMALLEST_OF_WORDS = 1e-280, 1e-12
# Largest number of cosines whose pairs are used
_MOST_COSINES = 128
# Links with f(-s) = 1 - f(s)
_SYMMETRIC = ("logistic", "probit")


class LinkVariance:
    """Var_w (f / unit) as a difference of moments, about the value that leaves most digits.

    ``sides`` are pairs of expectations of g and g², where g is f plus or minus a constant.
    """

    def __init__(
        self, sides: Sequence[tuple[ExactMoments, ExactMoments]], unit: Floats, smallest: float
    ) -> None:
        self._sides, self._unit, self._smallest = sides, unit, smallest

    def variance(self, design: Design) -> Floats:
        """Return the variance for one design, (k,); nan where it has no digits."""

        def mean(expectation: Any) -> Floats:
            try:
                return np.asarray(expectation.moments(design).mean.reshape(-1), dtype=np.float64)
            except (InputError, ModelError):
                return np.full(self._unit.size, np.nan)

        return self._variance(mean)

    def at_rows(self, family: ProductFamily, rows: Floats, cells: Ints) -> Floats:
        """Return the variance at rows (n, d) with these cells (n, d), (n, k); nan where it has no digits."""

        def means(expectation: Any) -> Floats:
            return _means(expectation, family, rows, cells, self._unit.size)

        return self._variance(means)

    def _variance(self, mean_of: Callable[[ExactMoments], Floats]) -> Floats:
        pairs = [(mean_of(first), mean_of(second)) for first, second in self._sides]
        best, smallest = np.full(pairs[0][0].shape, np.nan), np.full(pairs[0][0].shape, np.inf)
        for mean, square in pairs:
            variance = square - mean**2
            better = (square < smallest) & (square > self._smallest) & (variance > _CANCELS * square)
            best = np.where(better, variance, best)
            smallest = np.where(better, square, smallest)
        return np.asarray(best / self._unit**2)


def _means(expectation: Any, family: ProductFamily, rows: Floats, cells: Ints, outputs: int) -> Floats:
    """E_w at rows, (n, k); nan at rows that are refused."""
    try:
        _, moments = explain_rows(expectation, Rows(family, rows, cells))
        return np.asarray(moments.mean.reshape(len(rows), outputs), dtype=np.float64)
    except (InputError, ModelError):
        if len(rows) == 1:
            return np.full((1, outputs), np.nan)
    # one refused row refuses its block: try its halves
    half = len(rows) // 2
    parts = [(rows[:half], cells[:half]), (rows[half:], cells[half:])]
    return np.concatenate([_means(expectation, family, *part, outputs) for part in parts])


def link_variance(form: Linked | Ridges, unit: Floats, kind: type = ProductDesign) -> LinkVariance | None:
    """The closed form of Var_w (f / unit); None if the square of f is no link of sums."""
    linked = form.expanded if isinstance(form, Ridges) else form
    if not isinstance(linked, Linked):
        return None
    if linked.link == "cos" and len(_loads(linked)) <= _MOST_COSINES:
        sides = [(_without_intercept(linked), _squared_cosines(linked))]
    elif linked.link == "exp" and not linked.adds_up:
        sides = [_powers(linked, "exp", 2.0)]
    elif f"{linked.link} squared" in SQUARES and not linked.adds_up:
        sides = [_powers(linked, f"{linked.link} squared")]
        if linked.link in _SYMMETRIC and not isinstance(linked.margin, NormalizedLinear):
            sides.append(_powers(_complement(linked), f"{linked.link} squared"))
    else:
        return None
    smallest = _SMALLEST if kind is ProductDesign else _SMALLEST_OF_WORDS
    return LinkVariance([(_expectation(f, kind), _expectation(g, kind)) for f, g in sides], unit, smallest)


def _expectation(form: Linked, kind: type) -> Any:
    if kind is ProductDesign:
        return SummedExpectation(form) if form.adds_up else LinkedExpectation(form, _SMALLEST)
    return (LinkedNormExpectation if isinstance(form.margin, NormalizedLinear) else LinkedWordsExpectation)(
        form
    )


def _loads(form: Linked) -> Floats:
    """Coefficients (K, k)."""
    assert form.coef is not None  # noqa: S101 - set by __post_init__
    return form.coef.reshape(len(form.coef), -1)


def _without_intercept(form: Linked) -> Linked:
    return Linked(form.margin, form.link, _loads(form), np.zeros(_loads(form).shape[1]))


def _powers(form: Linked, square: str, scale: float = 1.0) -> tuple[Linked, Linked]:
    """Σ coef link and its square: an output has one link."""
    first = _without_intercept(form)
    margin = form.margin if scale == 1.0 else _scaled(form, scale)
    return first, Linked(margin, square, _loads(form) ** 2, first.intercept)


def _complement(form: Linked) -> Linked:
    return Linked(_scaled(form, -1.0), form.link, _loads(form), np.zeros(_loads(form).shape[1]))


def _scaled(form: Linked, scale: float) -> Combination:
    """The margins times a number."""
    return Combination((form.margin,), np.array([scale]), np.zeros(outputs_of(form.margin)))


def _squared_cosines(form: Linked) -> Linked:
    """(Σ_h v_h cos S_h)² = Σ_h v_h²/2 + Σ_{h≤k} (...) [cos(S_h + S_k) + cos(S_h - S_k)]."""
    coef, terms = _loads(form), form.terms
    left, right = np.triu_indices(len(coef))
    half = np.where(left == right, 0.5, 1.0)[:, None] * coef[left] * coef[right]

    def pairs(values: Floats) -> Floats:
        return np.concatenate(
            [values[..., left] + values[..., right], values[..., left] - values[..., right]], -1
        )

    loadings = tuple(pairs(loading) for loading in terms.loadings)
    margin = Reduced(Sum(terms.functions, loadings, pairs(terms.intercept)))
    return Linked(margin, "cos", np.concatenate([half, half]), np.zeros(coef.shape[1]))
