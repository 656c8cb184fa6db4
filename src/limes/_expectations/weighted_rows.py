r"""Var_w f from rows of w on which the read form is evaluated: no call of the model.

With g = E_w f + Σ_j b_j (h_j - α_j), b any coefficients, and Γ exact,

    Var_w f = 2 b·Γ - b·Σb + E_w (f - g)²,

so that only the mean square of what the surrogate leaves is estimated: R² = 1 where nothing is left, however
the rows scatter. Under weights that count changed cells one `FormPool` of rows serves all designs of a
background: a row counts exp(-#changed / (2ν²)). Where few of its rows count, or weights depend on distances,
rows are drawn from w itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints, fingerprint, streams
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._weights import BinWeights

# Rows of a pool, rows of a single design's law, and the effective number of a pool's rows that is enough
POOL_ROWS, OWN_ROWS, _ENOUGH = 4096, 4096, 1024.0
# Fingerprint of a pool's stream, which belongs to no row
_POOL_KEY = 0


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows of w.

    Attributes
    ----------
    h
        Features (d, m).
    f
        Answers (m, k).
    weights
        (m,), with sum 1.
    groups
        (m,) number of the group of rows that depend on each other; None if every row is one.
    cells
        Cells (d, m) of the columns; None for words and superpixels.
    """

    h: Floats
    f: Floats
    weights: Floats
    groups: Ints | None = None
    cells: Ints | None = None

    @classmethod
    def drawn(cls, h: Floats, f: Floats, cells: Ints) -> WeightedRows:
        """Of features h (m, d), answers (m, k) and cells (m, d) of rows that were drawn from w, all alike."""
        return cls(np.ascontiguousarray(h.T), f, np.full(len(h), 1.0 / len(h)), cells=cells.T)

    def mean(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the weighted means of values (m, k), and their standard errors, (k,) each."""
        mean = self.weights @ values
        influence = values - mean
        influence *= self.weights[:, None]
        return mean, self.error(influence)

    def error(self, influence: Floats) -> Floats:
        """Return the standard errors (k,) of sums of influences (m, k), independent from group to group."""
        if self.groups is None:
            return np.asarray(np.sqrt(np.einsum("mk,mk->k", influence, influence)))
        sums = np.stack([np.bincount(self.groups, column) for column in influence.T], axis=1)
        return np.asarray(np.sqrt((sums**2).sum(axis=0)))

    def residuals(self, mean: Floats, inclusion: Floats, coef: Floats) -> Floats:
        """Return f - mean - Σ_j coef_j (h_j - α_j), (m, k), for means (k,) and coefficients (d, k)."""
        return np.asarray(self.f - (mean - inclusion @ coef) - self.h.T @ coef)


class FormPool:
    """Rows of a background's law without weights, and their answers, for all designs of a family.

    The rows are a function of the family and the seed alone.
    """

    def __init__(self, family: ProductFamily, predict: Callable[[Floats], Floats], seed: int) -> None:
        law = replace(family, weights=BinWeights(np.inf))
        design = law.at(_first_row(family))
        x, _, _ = design.sampler(streams(seed, _POOL_KEY, 1)).draw(POOL_ROWS)
        cells = family.cells(x).T
        # bytes where they are enough: each row of a table compares all of them
        self._cells = np.ascontiguousarray(cells, dtype=np.min_scalar_type(int(cells.max())))
        self._f = predict(x)
        with np.errstate(over="ignore"):
            self._log_factor = -0.5 / np.float64(family.weights.bandwidth) ** 2

    def at(self, cells: Ints) -> WeightedRows | None:
        """Return the rows with their weights around a row with these cells (d,); None if too few count."""
        same = self._cells == cells.astype(self._cells.dtype)[:, None]
        shared = np.add.reduce(same.view(np.uint8), axis=0, dtype=np.uint16)
        most = int(shared.max())
        weights = np.exp(self._log_factor * np.arange(most, -1.0, -1.0))[shared]
        weights /= weights.sum()
        if 1.0 / (weights @ weights) < _ENOUGH:
            return None
        return WeightedRows(same.astype(np.float64), self._f, weights, cells=self._cells)


def rows_of_law(
    design: ProductDesign, row: Floats, predict: Callable[[Floats], Floats], seed: int, family: ProductFamily
) -> WeightedRows:
    """Draw rows of w at one row, by a stream of the seed and the row alone."""
    x, h, _ = design.sampler(streams(seed, fingerprint(row), 1)).draw(OWN_ROWS)
    return WeightedRows.drawn(h, predict(x), family.cells(x))


def explained_variance(features: Any, coef: Floats, gamma: Floats) -> Floats:
    """2 b·Γ - b·Σb of one design: what of Var_w f a surrogate explains, (k,), for b and Γ (d, k)."""
    return np.asarray((coef * (2.0 * gamma - features.gamma(coef))).sum(axis=0))


def r_squared(explained: Floats, rest: Floats, rest_error: Floats, size: Floats) -> tuple[Floats, Floats]:
    """R² = explained / (explained + rest) and its standard error, (k,) each.

    1 where f does not vary, to the rounding of answers of this size (k,).
    """
    total = explained + rest
    varies = total > (_ROUNDING * size) ** 2
    safe = np.where(varies, total, 1.0)
    return (
        np.where(varies, np.minimum(explained / safe, 1.0), 1.0),
        np.where(varies, np.abs(explained) * rest_error / safe**2, 0.0),
    )


# Standard deviations below this share of the answers' size are rounding
_ROUNDING = 1e-14


def _first_row(family: ProductFamily) -> Floats:
    """Return any row: without weights all designs are the same law."""
    return np.array(
        [law.quantile(np.zeros(1, dtype=np.int64), np.full(1, 0.5))[0] for law in family.marginals]
    )
