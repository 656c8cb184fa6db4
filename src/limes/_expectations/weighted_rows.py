r"""Var_w f from rows of w on which the read form is evaluated: no call of the model.

With g = E_w f + Σ_j b_j (h_j - α_j), b any coefficients, and Γ exact,

    Var_w f = 2 b·Γ - b·Σb + E_w (f - g)²,

so that only the mean square of the surrogate's residuals is estimated: R² = 1 where they are 0, whatever the
rows are. Under weights that count changed cells all designs of a background share one `FormPool`, in which
a row has the weight exp(-#changed / (2ν²)). Compiled loops evaluate it for many designs at once
(``kernels/pool_squares.h``). Where few of its rows count, or weights depend on distances, rows are drawn from
w itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from limes import _kernels
from limes._arrays import ROUNDING, Bools, Floats, Ints, fingerprint, padded, streams
from limes._threads import in_threads
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._weights import BinWeights

# Rows of a pool, rows of a single design's law, and the effective number of a pool's rows that is enough
POOL_ROWS, OWN_ROWS, _ENOUGH = 4096, 4096, 1024.0
# Number of the pool's first rows, which are used alone where enough of them count
_FIRST_ROWS = 2048
# Designs of one call of the kernel: few enough that all threads have work
_BLOCK = 64
# Fingerprint of a pool's stream, which belongs to no row
_POOL_KEY = 0


# An exact number may differ from a mean over n draws by this number of standard errors, and by about this
# number of extreme values, divided by n, which the draws may have missed
ERRORS, UNSEEN_ROWS = 6.0, 3.0


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
        (m,) number of the group of rows that depend on each other; None if every row is a group.
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
        """Return equally weighted rows of w with features h (m, d), answers (m, k) and cells (d, m)."""
        return cls(np.ascontiguousarray(h.T), f, np.full(len(h), 1.0 / len(h)), cells=cells)

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

    def miss(self, gamma: Floats, inclusion: Floats) -> Bools:
        """Return for which outputs, (k,), the rows cannot be what the exact Γ (d, k) was made of.

        Their own Γ differs from it by more than its error and what rows that they may have missed can add:
        rare rows decide the variance then, and none of them was drawn.
        """
        centred, f = (self.h.T - inclusion) * self.weights[:, None], self.f - self.weights @ self.f
        errors = np.sqrt((centred**2).T @ f**2)
        unseen = UNSEEN_ROWS * (self.weights @ self.weights) * np.ptp(self.f, axis=0)
        largest = np.abs(self.h.T - inclusion).max(axis=0, initial=0.0)[:, None]
        allowed = ERRORS * errors + largest * (unseen + ROUNDING * np.abs(self.f).max(axis=0))
        return np.asarray((np.abs(gamma - centred.T @ f) > allowed).any(axis=0))

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
        self._cells = np.ascontiguousarray(family.cells(x), dtype=np.uint32)
        self._f = predict(x)
        self._answers = np.ascontiguousarray(self._f.T)
        self._width = padded(max(marginal.cells.count for marginal in family.marginals))
        with np.errstate(over="ignore"):
            self._ratio = float(np.exp(-0.5 / np.float64(family.weights.bandwidth) ** 2))

    def at(self, cells: Ints) -> WeightedRows | None:
        """Return the rows with their weights around a row with these cells (d,); None if too few count."""
        same = self._cells == cells
        weights = self._ratio ** np.count_nonzero(~same, axis=1)
        if not _enough(weights.sum(), weights @ weights):
            return None
        h = np.ascontiguousarray(same.T, dtype=np.float64)
        return WeightedRows(h, self._f, weights / weights.sum(), cells=self._cells.T.astype(np.int64))

    def squares(self, cells: Ints, curves: Floats, bases: Floats) -> tuple[Floats, Floats, Bools]:
        """Mean squares of f - base - Σ_j curve_j(cell of x_j) around rows with cells (n, d).

        Curves are (n, d, B, k) and bases (n, k). Returns them and their errors, (n, k) each, and where enough
        rows count, (n,). Where half of the pool is enough the other half is skipped.
        """
        mean, error, enough = self._squares(cells, curves, bases, _FIRST_ROWS)
        few = ~enough
        if few.any():
            mean[few], error[few], enough[few] = self._squares(cells[few], curves[few], bases[few], POOL_ROWS)
        return mean, error, enough

    def _squares(self, cells: Ints, curves: Floats, bases: Floats, size: int) -> tuple[Floats, Floats, Bools]:
        n, d, widest, k = curves.shape
        weights, squares = np.zeros((n, 2)), np.zeros((n, k, 3))
        factors = np.full((n, d, self._width), self._ratio)
        np.put_along_axis(factors, cells[:, :, None], 1.0, axis=2)
        tables = np.zeros((n, d, k, self._width))
        tables[..., :widest] = curves.swapaxes(2, 3)
        answers = np.ascontiguousarray(self._answers[:, :size])
        add = partial(_kernels.squares_of_pool, self._cells[:size], answers)

        def block(start: int) -> None:
            rows = slice(start, start + _BLOCK)
            add(factors[rows], tables[rows], bases[rows], weights[rows], squares[rows], "")

        in_threads(block, range(0, n, _BLOCK))
        total, square = weights.T
        enough = _enough(total, square)
        total, square = (np.where(enough, numbers, 1.0)[:, None] for numbers in (total, square))
        first, second, fourth = np.moveaxis(squares, 2, 0)
        mean = first / total
        # Σ w² (r² - mean)²
        spread = np.maximum(fourth - 2.0 * mean * second + mean**2 * square, 0.0)
        return mean, np.sqrt(spread) / total, enough


def _enough(total: Floats, squares: Floats) -> Any:
    """Return whether the effective number of rows is enough, given sums of weights and of their squares."""
    return total**2 >= _ENOUGH * np.maximum(squares, np.finfo(np.float64).tiny)


def rows_of_law(
    design: ProductDesign,
    row: Floats,
    predict: Callable[[Floats], Floats],
    seed: int,
    cells: Callable[[Floats], Ints],
) -> WeightedRows:
    """Draw rows of w at one row, by a stream of the seed and the row; ``cells`` locates them, (d, m)."""
    x, h, _ = design.sampler(streams(seed, fingerprint(row), 1)).draw(OWN_ROWS)
    return WeightedRows.drawn(h, predict(x), cells(x))


def explained_variance(features: Any, coef: Floats, gamma: Floats) -> Floats:
    """2 b·Γ - b·Σb of one design: the part of Var_w f that a surrogate explains, (k,), for b and Γ (d, k)."""
    return np.asarray((coef * (2.0 * gamma - features.gamma(coef))).sum(axis=0))


def _first_row(family: ProductFamily) -> Floats:
    """Return any row: without weights all designs are the same law."""
    return np.array(
        [law.quantile(np.zeros(1, dtype=np.int64), np.full(1, 0.5))[0] for law in family.marginals]
    )
