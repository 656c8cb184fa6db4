r"""Answers of a model that all rows of a table share, under any weights.

Rows x are drawn in equal numbers from the laws w_c of some of the explained rows. Around row i they have the
weights

    w_i(x)  divided by  Σ_c share_c w_c(x),      w_i = π_i / E[π_i] relative to the background's law,

so that rows near each other use nearly all of them, and a row far from all others its own ones, at least
(the balance heuristic of Veach & Guibas 1995). Weighted least squares on m of them with features
u = (1, h - E_w h) and influence A = (Uᵀ W U)⁻¹ Uᵀ W leave residuals r, and coefficients c with the covariance
C = A diag(r² / (1 - leverage)) Aᵀ. A control g that follows f and was fitted to other answers makes r small:
fitted is f - g, and g's own coefficients, which are exact, are added. On other rows the surrogate misses the
model by more than the best one does, by

    E_w (u · (c - E c))² = tr(C E_w[u uᵀ]),

which is subtracted, as nothing that the design can help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Floats, is_constant, power_of_two, r_squared, sobol_points
from limes._diagnostics.context import kernel
from limes._sampling.controls.control import FittedControl, ZeroControl
from limes._sampling.least_squares import ControlMoments
from limes._sampling.pool_fit import ExplainedRows
from limes.designs._product import ProductDesign, ProductFamily

# Rows whose laws are drawn from: each has at least this many of the draws
_FEWEST = 8


@dataclass(frozen=True, eq=False)
class SharedDraws:
    """Rows x (m, d) that serve all explained rows, which weigh them by ``weights`` (n, m) with sum 1."""

    family: ProductFamily
    rows: Floats  # the explained ones, (n, d)
    designs: Sequence[ProductDesign]  # at these
    x: Floats
    weights: Floats

    @classmethod
    def of(
        cls,
        family: ProductFamily,
        rows: Floats,
        designs: Sequence[ProductDesign],
        count: int,
        stream: np.random.SeedSequence,
    ) -> SharedDraws:
        """Draw ``count`` rows for the family's ``designs`` at ``rows`` (n, d)."""
        n = len(rows)
        sources = np.linspace(0, n - 1, min(n, max(1, count // _FEWEST))).astype(np.int64)
        levels = sobol_points(rows.shape[1], [stream]).random(count)
        # consecutive points of a Sobol' sequence fill the cube evenly, every s-th of them does not
        parts = np.array_split(levels, sources.size)
        drawn = zip(sources.tolist(), parts, strict=True)
        x = np.concatenate([designs[i].draw(part)[0] for i, part in drawn])
        logs = np.stack(
            [
                _log_density(family, row, x) - float(design.log_weight)
                for row, design in zip(rows, designs, strict=True)
            ]
        )
        shares = np.log([len(part) / count for part in parts])
        mixture = np.logaddexp.reduce(logs[sources] + shares[:, None], axis=0)
        weights = np.exp(logs - mixture)
        return cls(family, rows, designs, x, weights / weights.sum(axis=1, keepdims=True))

    @cached_property
    def sizes(self) -> Floats:
        """Effective number of draws around each row, (n,)."""
        return np.asarray(1.0 / (self.weights**2).sum(axis=1))

    def answered(self, f: Floats, control: FittedControl | None = None) -> SharedAnswers:
        """The draws with answers f (m, k), and a control that knows others."""
        fitted = control or ZeroControl(f.shape[1])
        g = fitted.predict(self.x)
        cells = self.family.cells(self.rows)
        if self.family.by_cell:
            return SharedAnswers(self, f, g, fitted.around(ExplainedRows(self.family, cells)))
        each = [fitted.expectation(design) for design in self.designs]
        moments = ControlMoments(*(np.stack(numbers) for numbers in zip(*each, strict=True)))
        return SharedAnswers(self, f, g, moments)


def _log_density(family: ProductFamily, row: Floats, x: Floats) -> Floats:
    """Log π of rows x around a row, (m,); minus infinity where a column that is held has another value."""
    logs = kernel(family.squared_distances(row, x), family.weights.bandwidth)
    if family.held is None:
        return logs
    kept, value = x[:, family.held], row[family.held]
    same = (kept == value) | (np.isnan(kept) & np.isnan(value))
    return np.where(same.all(axis=1), logs, -np.inf)


@dataclass(frozen=True, eq=False)
class SharedAnswers:
    draws: SharedDraws
    f: Floats  # (m, k)
    g: Floats  # a control's values, (m, k)
    control: ControlMoments  # its moments around the explained rows

    def mean(self, i: int) -> Floats:
        """E_w f around row i, (k,)."""
        return np.asarray(self.draws.weights[i] @ self.f)

    def fit(self, i: int) -> SharedFit:
        """The surrogate at row i, with or without the control, whichever leaves less."""
        draws, w = self.draws, self.draws.weights[i]
        design = draws.designs[i]
        h, center, variance = design.feature(draws.x), design.inclusion, design.variance
        used = np.flatnonzero((variance > 0) & (w @ (h - w @ h) ** 2 > 0))
        unit = power_of_two(np.sqrt(variance[used]))

        def regressors(x: Floats) -> Floats:
            return np.column_stack([np.ones(len(x)), (design.feature(x)[:, used] - center[used]) / unit])

        u = regressors(draws.x)
        weighted = u * w[:, None]
        influence = np.linalg.pinv(weighted.T @ u, hermitian=True) @ weighted.T
        leverage = np.clip((u * influence.T).sum(axis=1), 0.0, 0.9)[:, None]
        of_control = np.concatenate([self.control.mean[i][None], self.control.coef[i][used] * unit[:, None]])
        fits = []
        for g, of_g in ((0.0, 0.0), (self.g, of_control)):
            of_rest = influence @ (self.f - g)
            squares = (self.f - g - u @ of_rest) ** 2 / (1.0 - leverage)
            fits.append((w @ squares.sum(axis=1), squares, of_rest + of_g))
        alone, controlled = fits
        # what is left may be rounding
        pays = controlled[0] < alone[0] and not is_constant(alone[0], np.abs(self.f).max())
        _, squares, solution = controlled if pays else alone
        total, size = w @ (self.f - self.mean(i)) ** 2, np.abs(self.f).max(axis=0)
        # residuals of the rows that were fitted are smaller than others by their leverage
        rest = w @ ((self.f - u @ solution) ** 2 + leverage * squares)
        rest = np.where(is_constant(total, size), 0.0, rest)
        coef = np.zeros((h.shape[1], self.f.shape[1]))
        coef[used] = solution[1:] / unit[:, None]
        at_row = np.append(1.0, (design.at_instance[used] - center[used]) / unit)
        return SharedFit(
            coef=coef,
            own_fidelity=r_squared(total - rest, total, size)[0],
            rest=rest,
            surrogate=at_row @ solution,
            noise=float(((influence.T @ at_row) ** 2 @ squares).sum()),
            solution=solution,
            influence=influence,
            squares=squares,
            regressors=regressors,
        )


@dataclass(frozen=True, eq=False)
class SharedFit:
    coef: Floats  # (d, k)
    own_fidelity: Floats  # R² under the design's own law, (k,)
    rest: Floats  # what is left of Var_w f there, (k,)
    surrogate: Floats  # at the row, (k,)
    noise: float  # variance of that by the draws, of all outputs together
    solution: Floats  # c, of p features that vary, (p, k)
    influence: Floats  # A, (p, m)
    squares: Floats  # r² / (1 - leverage), (m, k)
    regressors: Callable[[Floats], Floats]  # u of rows x, (m, d) -> (m, p)

    def around(self, answers: SharedAnswers, i: int) -> tuple[float, float]:
        """R² of all outputs together by other draws around row i, and its standard error."""
        w, f, u = answers.draws.weights[i], answers.f, self.regressors(answers.draws.x)
        total, gap = ((f - w @ f) ** 2).sum(axis=1), f - u @ self.solution
        variance, rest = float(w @ total), (gap**2).sum(axis=1)
        if is_constant(variance, np.abs(f).max()):
            return 1.0, 0.0
        weighted = u * w[:, None]
        # what the errors of the coefficients add on average, and how it varies
        added = float(((self.influence * (weighted.T @ u @ self.influence)).sum(axis=0) @ self.squares).sum())
        slope = 2.0 * (self.influence.T @ (weighted.T @ gap))
        of_fit = np.hypot(np.sqrt((slope**2 * self.squares).sum()), added)
        ratio = float(w @ rest) / variance
        of_draws = np.sqrt(w**2 @ (rest - ratio * total) ** 2)
        return 1.0 - ratio + added / variance, float(np.hypot(of_fit, of_draws) / variance)
