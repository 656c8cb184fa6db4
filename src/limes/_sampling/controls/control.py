"""Control variates: their interface, no control, one used only where it pays, and how controls are fitted.

Ridge regression fits columns, with a penalty for each output by generalised cross-validation; columns without
each sequence of rows in turn; and kernels, with leave-one-out errors of many penalties and few centres.

Some controls are fitted on the log odds of probabilities p. Rows then have weights p (1 - p), the inverse
variance of log odds whose p has binomial errors: where p is near 0 or 1, log odds say little about p.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints, Reals
from limes._sampling.least_squares import ControlMoments
from limes._sampling.pool_fit import ExplainedRows
from limes.designs._product import ProductFamily

# Largest number of floats in the normal equations of one control, 2 GB: they grow with the square of the
# columns, and would end the process
_MOST_NUMBERS = 1 << 28
# Every fourth row is held out from the control and from the linear fit that it is compared with
_HELD_OUT = 4
# Largest number of rows on which both are compared
_MOST_COMPARED = 1024
# Largest residual variance of a control that is used, as a share of the linear fit's
_WORTH = 0.9
# A more laborious control is preferred if its residual variance is below this multiple of the cheaper one's
_NEARLY_AS_GOOD = 0.95
# A linear fit to a linear function leaves about this share of its variance, because of its penalty
_LINEAR = 1e-6


class TooLargeError(Exception):
    """The normal equations of a control would have more than `_MOST_NUMBERS`."""


def check_numbers(coefs: int, copies: int) -> None:
    if copies * coefs**2 > _MOST_NUMBERS:
        raise TooLargeError


class FittedControl(ABC):
    """A readable model g of k outputs."""

    @abstractmethod
    def predict(self, x: Floats) -> Floats:
        """Values (n, k) at rows (n, d)."""

    @abstractmethod
    def expectation(self, design: Any) -> ControlMoments:
        """E_w g and its coefficients β under the design."""

    def contributions(self, family: ProductFamily, x: Floats, cells: Ints) -> Floats | None:
        """Contributions to g at rows x in these cells (n, d), (n, d, k); None without a closed form."""
        del family, x, cells
        return None

    def around(self, rows: ExplainedRows) -> ControlMoments:
        """E_w g (n, k), β (n, d, k) and errors (n, 1 + d, k) around n rows."""
        each = [self.expectation(design) for design in rows.designs()]
        return ControlMoments(*(np.stack(arrays) for arrays in zip(*each, strict=True)))


# (design, rows x (n, d), answers f (n, k)) -> a model of f. Controls of columns use a ProductDesign, those
# of switches an ExchangeableDesign, and `no_control` accepts either.
Control: TypeAlias = Callable[[Any, Floats, Floats], FittedControl]


@dataclass(frozen=True)
class ZeroControl(FittedControl):
    """g = 0."""

    outputs: int

    def predict(self, x: Floats) -> Floats:
        return np.zeros((len(x), self.outputs))

    def expectation(self, design: Any) -> ControlMoments:
        return ControlMoments.exact(np.zeros(self.outputs), np.zeros((design.size, self.outputs)))

    def around(self, rows: ExplainedRows) -> ControlMoments:
        n, d = rows.cells.shape
        return ControlMoments.exact(np.zeros((n, self.outputs)), np.zeros((n, d, self.outputs)))


def no_control(design: Any, x: Floats, f: Floats) -> FittedControl:  # noqa: ARG001 - g is constant
    return ZeroControl(f.shape[1])


def if_better_than_linear(control: Control) -> Control:
    """Use a control only where it predicts held-out rows better than a linear fit does.

    Least squares of the residual removes the linear part of f in any case: a control that predicts hardly
    better only adds its noise. The result is the control of one explanation, not to be shared between calls.
    """
    used: dict[int, bool] = {}

    def is_better(design: Any, x: Floats, f: Floats) -> bool:
        out = np.arange(len(x)) % _HELD_OUT == 0
        intercept, coef = ridge_path(x[~out], f[~out])
        linear = (f[out] - intercept - x[out] @ coef).var(axis=0).sum()
        residual = (f[out] - control(design, x[~out], f[~out]).predict(x[out])).var(axis=0).sum()
        return bool(residual < _WORTH * linear and linear > _LINEAR * f.var(axis=0).sum())

    def fit(design: Any, x: Floats, f: Floats) -> FittedControl:
        # the first fit to n rows decides for all fits to n rows: with a control on some folds only, their
        # residuals would not have the same slopes
        if len(x) not in used:
            some = evenly_spread(len(x), _MOST_COMPARED)
            used[len(x)] = is_better(design, x[some], f[some])
        return control(design, x, f) if used[len(x)] else ZeroControl(f.shape[1])

    return fit


# -- ridge regression ----------------------------------------------------------------------------------------

# Penalties: for columns of variance 1 in units of the number of rows; for kernels whose diagonal is 1
PENALTIES = np.logspace(-5, 1, 13)
# A constant has only this penalty, which keeps its equation regular
_SMALLEST_PENALTY = 1e-9


# Eigenvalues below this share of the largest are rounding
_NO_SIZE = 1e-12


def ridge_path(columns: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Fit values (n, k) by columns (n, p): intercepts (k,) and coefficients (p, k).

    GCV(λ) = Σ residuals² / (1 - (1 + trace of the smoother)/n)², least over a grid.
    """
    n = len(columns)
    center, scale = columns.mean(axis=0), columns.std(axis=0)
    live = scale > 1e-9 * (np.abs(center) + scale)
    standard = (columns[:, live] - center[live]) / scale[live]
    mean = values.mean(axis=0)
    sizes, target, to_columns = _principal(standard, values - mean)
    total = ((values - mean) ** 2).mean(axis=0)
    # with a_λ = target / (sizes + λ), the residuals' mean square is total - Σ a_λ (2 target - sizes a_λ)
    coefs = target / (sizes[:, None] + PENALTIES[:, None, None])
    squares = np.maximum(total - (coefs * (2 * target - sizes[:, None] * coefs)).sum(axis=1), 0.0)
    freedom = 1.0 + (sizes / (sizes + PENALTIES[:, None])).sum(axis=1)
    score = squares / np.maximum(1.0 - freedom / n, 0.05)[:, None] ** 2
    best = coefs[score.argmin(axis=0), :, np.arange(values.shape[1])].T
    coef = np.zeros((columns.shape[1], values.shape[1]))
    coef[live] = to_columns(best) / scale[live, None]
    return mean - center @ coef, coef


def _principal(x: Floats, y: Floats) -> tuple[Floats, Floats, Callable[[Floats], Floats]]:
    """Eigenvalues (q,) of xᵀx / n, xᵀy / n along its axes (q, k), and what takes such numbers to columns.

    Of more columns than rows, by the rows: x xᵀ has the same eigenvalues, but for zeros.
    """
    n, p = x.shape
    if p <= n:
        sizes, axes = np.linalg.eigh(x.T @ x / n)
        return np.maximum(sizes, 0.0), axes.T @ (x.T @ y / n), lambda numbers: axes @ numbers
    sizes, rows = np.linalg.eigh(x @ x.T / n)
    live = sizes > _NO_SIZE * sizes[-1]
    roots, rows = np.sqrt(sizes[live])[:, None], rows[:, live]
    root_n = np.sqrt(n)
    return (
        sizes[live],
        roots * (rows.T @ y) / root_n,
        lambda numbers: np.asarray(x.T @ (rows @ (numbers / roots)) / root_n),
    )


@dataclass(frozen=True, eq=False)
class SequenceRidge:
    """Ridge regression on features (n, p), the first of them 1, without each sequence of rows in turn."""

    grams: Floats  # of each sequence, (sequences, p, p)
    products: Floats  # (sequences, p, k)
    rows: int  # of a sequence

    @classmethod
    def of(cls, features: Reals, targets: Floats, sequences: int) -> SequenceRidge:
        """Set up the normal equations for targets (n, k); equal sequences follow one another."""
        size, rows = features.shape[1], len(features) // sequences
        grams, products = np.empty((sequences, size, size)), np.empty((sequences, size, targets.shape[1]))
        pairs = zip(np.split(features, sequences), np.split(targets, sequences), strict=True)
        for k, (values, target) in enumerate(pairs):
            part = values.astype(np.float64, copy=False)
            # the product of a matrix and its transpose takes half the time of any other product
            grams[k], products[k] = part.T @ part, part.T @ target
        return cls(grams, products, rows)

    @cached_property
    def _totals(self) -> tuple[Floats, Floats]:
        return self.grams.sum(axis=0), self.products.sum(axis=0)

    def of_all(self, penalty: float) -> Floats:
        """Coefficients (p, k) of the fit to all sequences; the penalty is in units of their rows."""
        return _penalised(*self._totals, penalty * self.rows * len(self.grams))

    def without(self, sequence: int, penalty: float) -> Floats:
        """Coefficients (p, k) of the fit to all other sequences."""
        # normal equations are those of all rows, less the sequence's own
        gram, product = self._totals
        rows = self.rows * (len(self.grams) - 1)
        return _penalised(gram - self.grams[sequence], product - self.products[sequence], penalty * rows)

    def without_each(self, penalty: float) -> Floats:
        return np.stack([self.without(sequence, penalty) for sequence in range(len(self.grams))])


def _penalised(gram: Floats, product: Floats, penalty: float) -> Floats:
    """Solve (gram + penalty · I) coef = product, but for the first coefficient, the constant."""
    from scipy.linalg.lapack import dposv

    ridge = np.full(len(gram), penalty)
    ridge[0] *= _SMALLEST_PENALTY
    normal = gram.copy()
    normal[np.diag_indices_from(normal)] += ridge
    # LAPACK takes the transpose of a symmetric matrix as it is; scipy's checks take as long as small fits
    _, coef, failed = dposv(normal.T, product, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError(f"normal equations of {len(gram)} columns are singular")
    return np.asarray(coef)


def out_of_sequence(features: Reals, coef: Floats) -> Reals:
    """Values (n, k) of fits (sequences, p, k), each at the sequence left out, in the features' precision."""
    parts = features.reshape(len(coef), -1, features.shape[1])
    return np.concatenate(list(parts @ coef.astype(features.dtype)))


def share_left(rest: Floats, f: Floats) -> float:
    """Share of the variance of answers f (n, k) that is left: ``rest`` (k,) are the residuals' variances.

    The mean over outputs that vary; 1 where none does.
    """
    total = f.var(axis=0)
    varies = np.ptp(f, axis=0) > 0  # the variance of equal numbers need not be 0
    return float((rest[varies] / total[varies]).mean()) if varies.any() else 1.0


def least_left(shares: Mapping[str, float]) -> str:
    """Name of the control that leaves the least variance, unless a cheaper one is nearly as good."""
    name, *others = shares
    for candidate in others:
        if shares[candidate] < _NEARLY_AS_GOOD * shares[name]:
            name = candidate
    return name


def evenly_spread(n: int, most: int) -> slice:
    return slice(None, None, -(-n // most))


def leave_one_out_errors(gram: Floats, f: Floats) -> Floats:
    """Mean squared leave-one-out residuals a_i / (K + λ)⁻¹_ii of kernel ridge regression, one a penalty."""
    sizes, axes = np.linalg.eigh(gram)
    target = axes.T @ f
    inverse = 1.0 / (np.maximum(sizes, 0.0) + PENALTIES[:, None])
    errors = (axes @ (target * inverse[..., None])) / (inverse @ (axes**2).T)[..., None]
    return np.asarray((errors**2).mean(axis=(1, 2)))


def fit_on_centers(blocks: Iterable[tuple[Floats, Floats]], center_gram: Floats, penalty: float) -> Floats:
    """Coefficients a (m, k) of least Σ |f - gram a|² + penalty aᵀ center_gram a, over blocks (gram, f)."""
    from scipy.linalg import solve

    normal, target = penalty * center_gram, np.zeros(())
    for gram, f in blocks:
        normal = normal + gram.T @ gram
        target = target + gram.T @ f
    normal[np.diag_indices_from(normal)] += 1e-10 * np.trace(normal) / len(normal)
    return np.asarray(solve(normal, target, assume_a="pos"))


# -- log odds -----------------------------------------------------------------------------------------------

# Probabilities are clipped to this distance from 0 and 1 before their log odds are taken
_NEAREST = 1e-6
# Least weight of a row
_LEAST_WEIGHT = 1e-3


def log_odds(p: Floats) -> Floats:
    """Log odds of probabilities, finite at 0 and 1."""
    from scipy.special import logit

    return np.asarray(logit(np.clip(p, _NEAREST, 1.0 - _NEAREST)))


def roots_of_weights(p: Floats) -> Floats:
    """Square roots of the weights of rows with answers p (n, k), (n, 1)."""
    return np.asarray(np.sqrt(np.maximum((p * (1.0 - p)).mean(axis=1, keepdims=True), _LEAST_WEIGHT)))
