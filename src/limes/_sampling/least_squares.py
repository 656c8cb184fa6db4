r"""Weighted least squares of answers on features, with cluster-robust standard errors.

A sample has rows i with weights w_i, features h_i and answers f_i: draws of w itself, all of one weight, or
rows of a background (``joint.py``). Of a control variate g all but its linear part L is subtracted first:
r = f - (g - L). With regressors A = (1, h - E_w h) and W = (AᵀwA)⁻¹Aᵀw the coefficients are b = W r. The
sums of the many rows of a pool are compiled (``pool_fit.py``); what is made of them is defined here.

Row i contributes W_i e_i to the error of a coefficient, e_i its residual, with the bias reduction of Bell &
McCaffrey (2002). Rows of one cluster (of one order of the features, ``designs/_exchangeable.py``) depend on
each other, clusters do not: the sandwich estimator is, with C_g = Σ_{i in g} W_i e_i,

    variance = Σ_g C_g²,      effective clusters = (Σ_g C_g²)² / Σ_g C_g⁴.

A sum that rests on a few clusters is about as precise as a Poisson count: if λ clusters with errors of one
size are expected, Poisson(λ) of them occur, and count ± 1.96 √(count + 2.34) covers λ in 94 % of samples
whatever λ is, a count of 0 included (1.96² · 2.34 = 3², the rule of three). The variance is therefore
multiplied by 1 + 2.34 / effective clusters.

Scrambled sequences are independent of each other. Between them sums vary by another factor than between
clusters:

- less, as points fill space evenly. That factor is pooled over all sums, raised by a margin of safety, and
  given up as the clusters that carry a sum become few: even points do not make rare events any more regular.
- more, as a sequence may repeat one piece of information. Where the sums of one coefficient differ by more
  than chance allows, their own variance counts.

*The rule of three.* If n rows all give the same answer, another answer has a probability of at most 3 / n, at
95 % confidence. A feature has two sides: rows that keep it, and rows that change it. Where fewer than 16 rows
of a side differ from the most frequent answer, the coefficient may be off by 3 · range · W, with W the root
mean square influence of a row of that side: its standard error is at least range · W · 3 / 1.96. The range of
answers is that of the sample and the instance; for answers between 0 and 1 it is 1. If all are alike, and
nothing bounds the model's range, the error is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING, Bools, Floats, Ints, is_constant
from limes._expectations.moments import Moments, SampleStatistics, boxed, with_complement
from limes.designs._product import Features
from limes.exceptions import ModelError

# Rows that differ from the most frequent answer: from fewer, the size of errors is hardly known
ENOUGH_ANSWERS = 16
# Effective rows that an error rests on: with fewer, the sample may have missed the ones that matter
ENOUGH_CARRIERS = 12.0
# Effective rows for each coefficient, below which a row is warned about
FEW_ROWS = 4
# Answers have sums of squares that are numbers if the largest lies between these
_LARGEST, _SMALLEST = 1e150, 1e-150
# Number of columns from which on a pool fits each coefficient by itself (``pool_fit.py``)
SEPARATE = 1024
# A coefficient is fitted if its feature differs from its usual value in this many rows at least: errors are
# widened for variances that rest on so few
MIN_CHANGED_ROWS = 5
# Added to a count of clusters, so that the interval ±1.96 √(count + UNSEEN) covers its expectation
UNSEEN = (3.0 / 1.96) ** 2
# Factor on the pooled variance reduction of sequences: single coefficients may gain less than the average one
_CAUTION = 1.5
# Chance that the few sums of a small design make the variance reduction look larger than it is
_REDUCTION_RISK = 0.1
# Chance that sequences of one coefficient differ by more than the limit although nothing is wrong
_BETWEEN_RISK = 0.01
# Lower bound of 1 - leverage, the share of an error that is left of a row that decides its own fit
_MIN_ONE_MINUS_LEVERAGE = 0.01
# Shape of a tail of squares above which their mean is not known, from fewer effective ones than this; squares
# that tell a shape at least; equal largest ones that are its end
_HEAVY, _MANY_SQUARES, _SMALLEST_TAIL, _MOST_TIES = 0.7, 200.0, 8, 4
# Effective clusters below which no variance reduction is assumed
_FEW_CLUSTERS = 16.0
# Residuals within this share of the answers' standard deviation are explained by the control
_EXPLAINED = 1e-2


# -- accuracy ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tolerance:
    """The largest standard error that a coefficient, or a contribution, may have.

    ``size`` is in the output's units, or, if ``relative``, a share of the largest one of its output.
    """

    size: float
    relative: bool = False

    def excess(self, coef: Floats, errors: Floats) -> Floats:
        """Largest error of coefficients (..., d, k) in units of the tolerance: at most 1 if all meet it."""
        largest = np.abs(coef).max(axis=-2, keepdims=True, initial=0.0) if self.relative else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(errors > 0, errors / (self.size * largest), 0.0)
        return np.asarray(ratio.max(axis=(-2, -1), initial=0.0))

    def with_base(self, values: Floats, errors: Floats, base_errors: Floats) -> Floats:
        """The same of contributions (..., d, k) and their base, whose errors are (..., k)."""
        both = np.concatenate([errors, base_errors[..., None, :]], axis=-2)
        return self.excess(np.concatenate([values, np.zeros_like(base_errors)[..., None, :]], axis=-2), both)

    def __str__(self) -> str:
        return f"{100 * self.size:.3g}%" if self.relative else f"{self.size:.6g}"


# Accuracy that rows are judged by, and that a pool has to reach, where the user sets no tolerance. With it
# the squared error was a fifth of lime's or less in every case of benchmarks/black_boxes
DEFAULT_TOLERANCE = Tolerance(0.015, relative=True)


def least_fitted(features: int) -> int:
    """Number of rows from which on coefficients are fitted together."""
    return 2 * (features + 1)


def least_effective(features: int, shared: Ints, effective: Floats | float = np.inf) -> Ints:
    """Effective rows that coefficients call for, given the size of the pool, or 0: of shape ``shared``.

    ``effective`` is the number of a row's own draws.
    """
    alone = np.where(shared > 0, features >= SEPARATE, effective < least_fitted(features))
    return np.asarray(FEW_ROWS * (np.where(alone, 1, features) + 1))


def can_be_trusted(sampled: SampleStatistics, least: Ints, *, varies: Bools) -> Bools:
    """Return for which of n samples errors are to be trusted, (n,); ``least`` are `least_effective`.

    Not where answers are all, or nearly all, alike, where few rows decide a coefficient, where too few count
    for the number of features, where features change together, and where R² cannot be estimated. Samples
    whose features do not vary (``varies``, (n,)) have no errors.
    """
    trusted = sampled.effective >= least
    for condition in (
        sampled.unlike >= ENOUGH_ANSWERS,
        sampled.effective_clusters >= ENOUGH_CARRIERS,
        np.isfinite(sampled.fidelity_errors),
        ~sampled.collinear,
    ):
        trusted = trusted & condition.reshape(len(varies), -1).all(axis=1)
    return np.asarray(trusted | ~varies)


# -- what least squares tells --------------------------------------------------------------------------------


class ControlMoments(NamedTuple):
    """Moments of a control variate; an axis of explained rows comes first where there are several."""

    mean: Floats  # E_w g, (k,)
    coef: Floats  # β(g), (d, k)
    errors: Floats  # standard errors of both, mean first, (1 + d, k): 0 where they are exact

    @classmethod
    def exact(cls, mean: Floats, coef: Floats) -> ControlMoments:
        return cls(mean, coef, np.zeros((*coef.shape[:-2], coef.shape[-2] + 1, coef.shape[-1])))


def simulated_errors(controls: Sequence[ControlMoments]) -> Floats:
    """Standard errors of the mean of independent controls' moments, each for one equal part of the rows."""
    return np.asarray(np.sqrt(np.sum([its.errors**2 for its in controls], axis=0)) / len(controls))


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Coefficients of k outputs around one explained row, or around n of them, whose axis comes first."""

    mean: Floats  # E_w f, (k,)
    coef: Floats  # β, (d, k)
    gamma: Floats  # Σβ, (d, k)
    coef_errors: Floats  # (d, k), such that ±1.96 of them is a 95 % interval
    variance: Floats  # Var_w f, (k,)
    surrogate_errors: Floats  # of the surrogate at the explained row, (k,)
    fidelity_errors: Floats  # of R², (k,)
    share_errors: Floats  # of the shares β_j (Σβ)_j / Var_w f, (d, k)
    noise: Floats  # what errors of β add to β_j (Σβ)_j in expectation, (d, k)
    n_unlike: Ints  # rows whose answer differs from the most frequent one, (k,)
    effective_clusters: Floats  # effective clusters behind a coefficient's error, (k,)
    effective: Floats  # effective number of rows, ()
    answers_differ: Bools  # of every output; without that no coefficient can be estimated, ()

    def to_moments(
        self,
        shape: tuple[int, ...],
        accuracy: Tolerance,
        *,
        control: str,
        units: Floats | float = 1.0,
        calls: int = 0,
        shared: int = 0,
        answers: Floats | None = None,
        beside: Floats | None = None,
        collinear: Bools | bool = False,
        complement: bool = False,
    ) -> Moments:
        """Moments of answers of this shape; those of 1 - f, too, if f is its ``complement``.

        ``answers`` are stored, unless rows share them, as are those ``beside``. A tolerance is one of
        coefficients over ``units``.
        """
        rows = self.answers_differ.shape
        each, columns = (*rows, *shape), (*rows, self.coef.shape[-2], *shape)
        with np.errstate(over="ignore"):  # coefficients that no float64 can hold are refused later
            excess = accuracy.excess(self.coef / units, self.coef_errors / units)
        moments = Moments(
            mean=self.mean.reshape(each),
            gamma=self.gamma.reshape(columns),
            coef_errors=self.coef_errors.reshape(columns),
            variance=self.variance.reshape(each),
            calls=np.full(rows, calls),
            converged=np.asarray((excess <= 1.0) & self.answers_differ),
            cut_short=np.zeros(rows, dtype=np.bool_),
            sampled=SampleStatistics(
                surrogate_errors=self.surrogate_errors.reshape(each),
                fidelity_errors=self.fidelity_errors.reshape(each),
                share_errors=self.share_errors.reshape(columns),
                excess=excess,
                control=np.full(rows, control, dtype="U16"),
                noise=self.noise.reshape(columns),
                unlike=np.broadcast_to(self.n_unlike, self.mean.shape).reshape(each),
                effective_clusters=self.effective_clusters.reshape(each),
                effective=self.effective,
                collinear=np.full(columns[: len(rows) + 1], collinear),
                answers=np.full(rows, boxed(np.empty(0) if answers is None else answers)),
                beside=np.full(rows, boxed(np.empty(0) if beside is None else beside)),
            ),
            shared=np.full(rows, shared),
        )
        return with_complement(moments) if complement else moments


class FeatureSupport(NamedTuple):
    """Which features vary enough in a sample for their coefficients to be fitted, (..., d)."""

    rows: Floats | Ints  # (effective) number of rows where the feature differs from its usual value
    used: Bools  # fitted
    unidentified: Bools  # features that vary under w, but hardly in the sample

    @classmethod
    def from_rows(cls, h: Floats, varies: Bools) -> FeatureSupport:
        """Count the rows of features (n, d), of which only some can vary."""
        changed = (h != np.median(h, axis=0)).sum(axis=0)
        return cls(changed, varies & (changed >= MIN_CHANGED_ROWS), varies & (changed < MIN_CHANGED_ROWS))

    def answers_differ(self, n_unlike: Ints) -> Bools:
        """Whether the answers of every output differ, or nothing can vary, (...)."""
        return np.asarray(~(self.used | self.unidentified).any(axis=-1) | (n_unlike > 0).all())

    def coef_errors(self, variances: Floats, simulated: Floats) -> Floats:
        """Standard errors of coefficients by their variances and simulated errors, (..., d, k)."""
        factors = student_factors(np.maximum(self.rows, 2.0) - 1.0)[..., None]
        errors = np.where(self.used[..., None], np.hypot(np.sqrt(variances) * factors, simulated), 0.0)
        return np.where(self.unidentified[..., None], np.inf, errors)

    def surrogate_errors(self, features: Features, variance: Floats, simulated: Floats) -> Floats:
        """Standard errors of the surrogate at the explained row, (..., k), by its variance there."""
        departure = features.departure[..., None]
        blind = (self.unidentified & (features.departure != 0)).any(axis=-1)[..., None]
        of_control = simulated[..., 0, :] ** 2 + (departure**2 * simulated[..., 1:, :] ** 2).sum(axis=-2)
        return np.where(blind, np.inf, np.sqrt(variance + of_control))

    def effective_clusters(self, residuals: Floats, answers: Floats | None) -> Floats:
        """Effective clusters behind a coefficient's error, (..., k), of those of each one, (..., d, k).

        The median over features. A control is fitted to few rows as well: where few answers are large, its
        residuals may all look alike. The smaller number counts, that of the answers (None without a control)
        or of the residuals.
        """
        if answers is not None:
            residuals = np.where(np.isinf(residuals), np.inf, np.minimum(residuals, answers))
        effective = np.sort(np.where(self.used[..., None], residuals, np.inf), axis=-2)
        middle = np.minimum(self.used.sum(axis=-1) // 2, self.used.shape[-1] - 1)
        return np.asarray(np.take_along_axis(effective, middle[..., None, None], axis=-2)[..., 0, :])


def r_squared_errors(
    total: Floats, each: Floats, gamma: Floats, variance: Floats, simulated: Floats, noise: Floats
) -> tuple[Floats, Floats]:
    """Errors of R² (..., k), and of the features' shares of it (..., d, k): 0 and NaN where nothing varies.

    ``total`` and ``each`` are their variances by the delta method. Simulated errors of β_j move Var_w f times
    its share by 2 (Σβ)_j; the second order of the errors of β_j adds 2 ``noise``².
    """
    safe = np.where(variance > 0, variance, 1.0)[..., None, :]
    second = (2.0 * gamma * simulated / safe) ** 2 + 2.0 * (noise / safe) ** 2
    fidelity = np.sqrt(np.maximum(total, 0.0) + second.sum(axis=-2))
    shares = np.sqrt(np.maximum(each + second, 0.0))
    varies = variance > 0
    return np.where(varies, fidelity, 0.0), np.where(varies[..., None, :], shares, np.nan)


def check_squares(f: Floats) -> None:
    """Raise ModelError, naming the largest answer, if squares of answers overflow, or all underflow."""
    largest = np.abs(f).max(initial=0.0)
    if 0.0 < largest < _SMALLEST:
        raise ModelError(
            f"the model's answers reach only {largest:.3g}: their squares are below a float64, so that no "
            "standard errors can be given; explain the answers times a constant, or their logarithm"
        )
    if largest > _LARGEST:
        raise ModelError(
            f"the model's answers reach {largest:.3g}: their squares are beyond a float64, so that "
            "no standard errors can be given; explain the answers divided by a constant, or their logarithm"
        )


def student_factors(freedom: Ints | Floats) -> Floats:
    from scipy.special import ndtri, stdtrit

    return np.asarray(stdtrit(freedom, 0.975) / ndtri(0.975))


def error_of_mean(estimates: Floats) -> Floats:
    """Standard error of the mean of a few independent estimates, along the last axis but two, widened."""
    count = estimates.shape[-3]
    return np.asarray(estimates.std(axis=-3, ddof=1) / np.sqrt(count) * student_factors(np.array(count - 1)))


def rarity_factors(estimates: Floats) -> Floats:
    """Factors on errors of the mean of estimates (n, ...), larger where few of these carry the variance."""
    squares = (estimates - estimates.mean(axis=0)) ** 2
    return np.asarray(np.sqrt(1.0 + UNSEEN * rarity(squares)))


def rarity(squares: Floats) -> Floats:
    """One over the effective number of the squares (n, ...) that make their sum, (...)."""
    total, fourth = squares.sum(axis=0), (squares**2).sum(axis=0)
    return np.asarray(np.divide(fourth, total**2, out=np.zeros_like(total), where=total**2 > 0))


# -- sandwich variances --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SandwichVariance:
    """Cluster-robust variances of m sums of errors of k outputs; leading axes are several explained rows."""

    within: Floats  # Σ_g C_g², (m, k)
    effective: Floats  # effective clusters that carry each sum, (m, k); infinite where there is no error
    between: Floats | None  # variance by the differences between sequences, (m, k), if there are any
    n_sequences: int = 1

    @classmethod
    def from_rows(cls, influence: Floats, errors: Floats, clusters: Clusters) -> SandwichVariance:
        """Return the variances of the sums of influence W (m, n) times errors e (n, k)."""
        # fourth powers of the largest and smallest errors would be none
        size = np.abs(errors).max(axis=0)
        errors = errors / np.where(size > 0, size, 1.0)
        if clusters.are_rows:
            squares, sizes = influence**2, errors**2
            within, fourth = squares @ sizes, squares**2 @ sizes**2
        else:
            sums = [clusters.sums(influence * error) ** 2 for error in errors.T]
            within = np.stack([its.sum(axis=1) for its in sums], axis=1)
            fourth = np.stack([(its**2).sum(axis=1) for its in sums], axis=1)
        effective = np.divide(within**2, fourth, out=np.full_like(within, np.inf), where=fourth > 0)
        within = within * size**2
        if clusters.sequence is None:
            return cls(within, effective, None)
        parts = [clusters.sequence == s for s in np.unique(clusters.sequence)]
        of_sequences = np.stack([influence[:, rows] @ errors[rows] for rows in parts]) * size
        return cls(within, effective, between_sequences(of_sequences, axis=0), len(parts))

    def of_sums(self, some: slice) -> SandwichVariance:
        between = None if self.between is None else self.between[some]
        return SandwichVariance(self.within[some], self.effective[some], between, self.n_sequences)

    @cached_property
    def ratio(self) -> Floats:
        """Variance between sequences in units of that within, (m, k)."""
        assert self.between is not None  # noqa: S101 - asked for where there are sequences
        return np.divide(self.between, self.within, out=np.ones_like(self.within), where=self.within > 0)

    @cached_property
    def variance_reduction(self) -> Floats:
        """Factor by which sequences change variances, pooled over all sums: below 1 if they help; ()."""
        if self.between is None:
            return np.ones(self.within.shape[:-2])
        live = self.within > 0
        count = live.sum(axis=(-2, -1))
        pooled = np.where(live, self.ratio, 0.0).sum(axis=(-2, -1)) / np.maximum(count, 1)
        freedom = (self.n_sequences - 1) * live.any(axis=-1).sum(axis=-1)
        caution = np.maximum(_CAUTION, 1.0 / _mean_square(_REDUCTION_RISK, np.maximum(freedom, 1)))
        return np.where(count > 0, np.maximum(np.minimum(1.0, caution * pooled), pooled), 1.0)

    def seen(self, reduction: Floats) -> Floats:
        """Variances of the sums, (m, k), by the sample's clusters, where sequences reduce them so, ()."""
        if self.between is None:
            return self.within
        reduction = reduction[..., None, None]
        few = np.minimum(1.0, (_FEW_CLUSTERS / self.effective) ** 2)
        factor = np.maximum(reduction, reduction + (1.0 - reduction) * few)
        surprising = is_surprising(self.ratio, self.n_sequences - 1)
        return np.asarray(np.where(surprising, np.maximum(factor, self.ratio), factor) * self.within)

    def variances(self, reduction: Floats, least: Floats) -> Floats:
        """Variances of the sums, (m, k), to which unseen clusters add ``least`` (m, k) or more."""
        seen = self.seen(reduction)
        return seen + np.maximum(seen * UNSEEN / self.effective, least)


def between_sequences(of_sequences: Floats, axis: int) -> Floats:
    """Variance of a sum, estimated from the differences between its parts along an axis."""
    count = of_sequences.shape[axis]
    return np.asarray(of_sequences.var(axis=axis) * count**2 / (count - 1))


def _mean_square(level: float, freedom: Ints | int) -> Floats:
    """Quantile of the mean square of ``freedom`` standard normal numbers."""
    from scipy.special import chdtri

    return np.asarray(chdtri(freedom, 1.0 - level) / freedom)


def is_surprising(ratio: Floats, freedom: int) -> Bools:
    """Whether a variance of ``freedom`` degrees is larger than expected by more than chance allows."""
    return np.asarray(ratio > _mean_square(1.0 - _BETWEEN_RISK, freedom))


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of n rows; rows of different clusters are independent within a sequence."""

    cluster: Ints  # (n,)
    sequence: Ints | None = None  # (n,)

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.cluster, kind="stable")
        return order, np.flatnonzero(np.diff(self.cluster[order], prepend=-1))

    @property
    def are_rows(self) -> bool:
        """Whether every row is a cluster."""
        order, starts = self._sorted
        return starts.size == order.size

    def sums(self, contributions: Floats) -> Floats:
        """Sums over clusters, (m, n) -> (m, clusters)."""
        if self.are_rows:
            return contributions
        order, starts = self._sorted
        return np.asarray(np.add.reduceat(contributions[:, order], starts, axis=1))

    def bias_reduced(self, residuals: Floats, regressors: Floats, weights: Floats) -> Floats:
        """Residuals (n, k) of least squares, enlarged to errors: (I - H_g)^(-½) r_g in each cluster g.

        H_g are the rows and columns of the cluster in regressors (n, p) · weights (p, n); for a cluster of
        one row that is r / √(1 - leverage). With it the variance of a coefficient is unbiased if all errors
        have the same variance (Bell & McCaffrey 2002).
        """
        if self.are_rows:
            remaining = 1.0 - np.einsum("np,pn->n", regressors, weights)
            return np.asarray(residuals / np.sqrt(np.maximum(remaining, _MIN_ONE_MINUS_LEVERAGE))[:, None])
        order, starts = self._sorted
        sizes = np.diff(starts, append=order.size)
        errors = np.empty_like(residuals)
        for size in np.unique(sizes):
            rows = order[starts[sizes == size][:, None] + np.arange(size)]
            hat = regressors[rows] @ weights.T[rows].transpose(0, 2, 1)
            values, vectors = np.linalg.eigh(np.eye(size) - hat)
            root = np.sqrt(np.maximum(values, _MIN_ONE_MINUS_LEVERAGE))[:, None, :]
            errors[rows] = (vectors / root @ vectors.transpose(0, 2, 1)) @ residuals[rows]
        return errors


# -- the rule of three ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AnswerStatistics:
    """Statistics of answers (n, k) that bound unseen ones; all rows that the answers explain share them."""

    usual: Floats  # the most frequent answer, (k,)
    std: Floats  # (k,)
    differs: Bools  # rows that differ from the most frequent answer, (n, k)
    reach: Floats  # range of the answers, (k,); 0 where all are alike
    probable: Bools  # whether all answers lie between 0 and 1, (k,)
    largest: Floats  # size of the largest answer, (k,)
    heavy: Bools  # whether the tail of squares is too heavy for their mean to be estimated, (k,)

    @classmethod
    def from_rows(cls, f: Floats) -> AnswerStatistics:
        largest, usual = np.abs(f).max(axis=0), _usual(f)
        distance = np.abs(f - usual)
        differs = distance > DIFFERENCE_ROUNDING * largest
        farthest = np.where(differs, distance, 0.0).max(axis=0)
        probable = np.asarray(((f >= 0) & (f <= 1)).all(axis=0))
        shapes = np.array([_tail_shape(column) for column in ((f - f.mean(axis=0)) ** 2).T])
        return cls(
            usual=usual,
            std=f.std(axis=0),
            differs=differs,
            reach=np.maximum(farthest, np.where(differs.any(axis=0), np.ptp(f, axis=0), 0.0)),
            probable=probable,
            largest=largest,
            heavy=np.asarray(~probable & (shapes > _HEAVY)),  # squares of probabilities are bounded
        )

    @property
    def rounding(self) -> Floats:
        """Largest differences of answers that are rounding errors, (k,)."""
        return DIFFERENCE_ROUNDING * self.largest

    @cached_property
    def n_unlike(self) -> Ints:
        """Number of rows that differ from the most frequent answer, (k,)."""
        return np.asarray(self.differs.sum(axis=0))

    @property
    def negligible(self) -> Floats:
        """Largest residuals that count as explained by the control, (k,)."""
        return _EXPLAINED * self.std

    def reach_around(self, prediction: Floats | None) -> Floats:
        """Range of answers and of the model's prediction (..., k) at the instance, if there is one: (..., k).

        1 where all are probabilities.
        """
        if prediction is None:
            return np.where(self.probable, 1.0, self.reach)
        distance = np.abs(prediction - self.usual)
        reach = np.maximum(self.reach, np.where(distance > self.rounding, distance, 0.0))
        return np.where(self.probable & (prediction >= 0) & (prediction <= 1), 1.0, reach)

    def least_variances(self, influence: Floats, errors: Floats, prediction: Floats | None) -> Floats:
        """Least variances (m, k) that unseen answers add to sums of influences (m, n) times errors (n, k)."""
        reach, total = self.reach_around(prediction), np.zeros((2, len(influence), self.std.size))
        differs = self.differs & (np.abs(errors - _usual(errors)) > self.rounding)
        unexplained = np.abs(errors) > self.negligible
        rare = np.concatenate([differs, unexplained], axis=1).astype(np.float64)
        sizes = (np.where(reach > 0, reach, np.inf), self.std)
        for side in (influence > 0, influence < 0):
            n_rare = side.astype(np.float64) @ rare
            if (n_rare < ENOUGH_ANSWERS).any():
                typical = (np.where(side, influence, 0.0) ** 2).sum(axis=1) / np.maximum(side.sum(axis=1), 1)
                for least, numbers, size in zip(total, np.split(n_rare, 2, axis=1), sizes, strict=True):
                    least += rare_variances(typical, numbers, size)
        return np.asarray(total.max(axis=0))

    def unseen_squares(self, weights: Floats, squares: Floats) -> Floats:
        """Variance (k,) that unseen rows add to the mean, by weights (n,), of squares (n, k) of residuals."""
        moved = (weights[:, None] * (squares - weights @ squares)) ** 2
        few = UNSEEN * moved.sum(axis=0) * rarity(moved)
        typical, unexplained = np.array([np.mean(weights**2)]), (squares > self.negligible**2).sum(axis=0)
        of_rest = rare_variances(typical, unexplained[None], self.std**2)
        of_answers = rare_variances(typical, self.n_unlike[None], self.reach**2)
        return np.asarray(np.maximum(few, np.maximum(of_rest, of_answers)[0]))


def variance_is_known(number: Floats, heavy: Bools) -> Bools:
    """Whether a variance is known that rests on an effective ``number`` of squares, (..., k).

    Few squares do not tell whether larger ones were missed; nor do more if their tail is heavy.
    """
    return np.asarray(number >= np.where(heavy, _MANY_SQUARES, ENOUGH_CARRIERS))


def _tail_shape(values: Floats) -> float:
    """Shape of the generalized Pareto law that the largest of values (n,) >= 0 follow, about; -inf of few.

    The posterior mean of Zhang & Stephens (2009). Means of values are finite below 1; above about 0.7 those
    of samples are far too small, mostly, and so are their errors (Vehtari et al. 2024).
    """
    count = min(len(values) // 5, int(3 * np.sqrt(len(values))))
    if count < _SMALLEST_TAIL:
        return -np.inf
    tail = np.partition(values, len(values) - count - 1)[-count - 1 :]
    excess = np.sort(tail - tail.min())[1:]
    excess = excess[excess > DIFFERENCE_ROUNDING * tail.max()]
    # a largest value that repeats is an end of the tail
    ties = np.count_nonzero(excess >= (1.0 - DIFFERENCE_ROUNDING) * excess[-1:].sum())
    if len(excess) < _SMALLEST_TAIL or ties >= _MOST_TIES:
        return -np.inf
    n = len(excess)
    grid = np.arange(1, 31 + int(np.sqrt(n)))
    rates = (1.0 - np.sqrt(grid.size / (grid - 0.5))) / (3.0 * excess[(n + 2) // 4 - 1]) + 1.0 / excess[-1]
    shapes = np.log1p(-rates[:, None] * excess).mean(axis=1)
    likelihood = n * (np.log(-rates / shapes) - shapes - 1.0)
    weights = np.exp(likelihood - likelihood.max())
    rate = float(weights @ rates / weights.sum())
    return float(np.log1p(-rate * excess).mean())


def rare_variances(typical: Floats, n_rare: Floats | Ints, size: Floats) -> Floats:
    """Variances (..., m, k) that unseen events of a ``size`` (..., k) add to m sums over one side's rows.

    ``typical`` (..., m) is the mean square influence of these rows, of which ``n_rare`` (..., m, k) differ.
    """
    with np.errstate(invalid="ignore"):
        variances = UNSEEN * typical[..., None] * size[..., None, :] ** 2
    return np.where((n_rare < ENOUGH_ANSWERS) & (typical[..., None] > 0), variances, 0.0)


def count_unlike(f: Floats) -> Ints:
    """Number of answers f (n, k) that differ from the most frequent one of each output, (k,)."""
    with np.errstate(over="ignore"):  # differences of the largest numbers are larger still
        distance = np.abs(f - _usual(f))
    return np.asarray((distance > DIFFERENCE_ROUNDING * np.abs(f).max(axis=0)).sum(axis=0))


def _usual(values: Floats) -> Floats:
    """Return a value near the median of each column: the most frequent one, where most are equal."""
    middle = len(values) // 2
    return np.asarray(np.partition(values, middle, axis=0)[middle])


# -- one explained row ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """Rows around one explained row: centred features h - E_w h (n, d) and answers f (n, k)."""

    centred: Floats
    f: Floats
    clusters: Clusters
    statistics: AnswerStatistics  # of the answers
    weights: Floats | None = None  # (n,), with sum 1; None if all are 1 / n
    # whether rows are draws, of w or of a law that is known: else Σ itself is estimated from them
    are_draws: bool = True

    def mean(self, numbers: Floats) -> Floats:
        """Means of numbers (n, k) under the weights, (k,)."""
        return np.asarray(numbers.mean(axis=0) if self.weights is None else self.weights @ numbers)

    @property
    def roots(self) -> Floats:
        """Roots of the weights in units of equal ones, (n, 1): rows times these have one weight."""
        weights = np.ones(len(self.f)) if self.weights is None else len(self.f) * self.weights
        return np.sqrt(weights)[:, None]


def least_squares(
    features: Features,
    sample: WeightedSample,
    support: FeatureSupport,
    *,
    residuals: Floats | None = None,
    controls: Sequence[ControlMoments] = (),
    prediction: Floats | None = None,
    inverse: Floats | None = None,
) -> LeastSquares:
    """Fit answers, or the ``residuals`` of controls (n, k), on features.

    ``prediction`` (k,) is the model's at the explained row, if there is one. Of rows that are no draws the Σ,
    of which ``inverse`` is the inverse, is itself estimated from them. Few draws are fitted to one feature at
    a time: ``residuals`` then lack the controls, whose coefficients are added.
    """
    centred, f, used = sample.centred, sample.f, support.used
    residuals = f if residuals is None else residuals
    simulated = simulated_errors(controls) if controls else np.zeros((1 + used.size, f.shape[1]))
    regressors = np.ones((len(f), 1 + used.sum()))
    regressors[:, 1:] = centred if used.all() else centred[:, used]
    weighted = regressors if sample.weights is None else regressors * sample.weights[:, None]
    alone = sample.are_draws and len(f) < least_fitted(used.size)
    if alone:
        regressors = regressors[:, :1]
        influence = _influence_of_few(features, sample)[np.concatenate([[True], used])]
    else:
        if inverse is None:
            inverse = np.linalg.pinv(regressors.T @ weighted, hermitian=True)
        influence = inverse @ weighted.T
    fitted = influence @ residuals
    rest = residuals - (fitted[0] if alone else regressors @ fitted)
    errors = _bias_reduced(sample, rest, regressors, influence[: regressors.shape[1]])
    mean, coef, all_influence = fitted[0], fitted[1:], influence
    if not used.all():
        place = np.flatnonzero(np.concatenate([[True], used]))
        coef, all_influence = np.zeros((used.size, f.shape[1])), np.zeros((1 + used.size, len(f)))
        coef[used], all_influence[place] = fitted[1:], influence
    others = np.mean([its.coef for its in controls], axis=0) if controls else np.zeros_like(coef)
    coef = np.where(support.unidentified[:, None], others, coef + (others if alone else 0.0))
    gamma = features.gamma(coef)
    squares = (f - mean - (0.0 if alone else centred @ coef) if controls else rest) ** 2
    mean_square = sample.mean(squares)
    # where the residuals are 0, R² is 1, however the sample happens to scatter
    variance = mean_square if alone else (coef * gamma).sum(axis=0) + mean_square
    variance = np.where(is_constant(variance, sample.statistics.largest), 0.0, variance)

    # what moves the intercept, the coefficients, and the surrogate at the explained row
    at_row = np.concatenate([[1.0], features.departure])
    every_influence = np.vstack([all_influence, at_row @ all_influence])
    every = SandwichVariance.from_rows(every_influence, errors, sample.clusters)
    least = sample.statistics.least_variances(every_influence, errors, prediction)
    sandwich, of_answers = every.of_sums(slice(-1)), None
    variances = every.variances(sandwich.variance_reduction, least)
    if controls:
        answers = f - regressors @ (influence @ f)[: regressors.shape[1]]
        of_answers = SandwichVariance.from_rows(all_influence, answers, sample.clusters).effective[1:]
    moves = _Moves(all_influence[1:], errors, mean, coef, gamma, variance, squares, alone)
    noise, (total, each) = moves.noise(features, sample.clusters), moves.variances(features, sample)
    seen, within = sandwich.seen(sandwich.variance_reduction)[1:], sandwich.within[1:]
    noise *= np.divide(seen, within, out=np.zeros_like(seen), where=within > 0)
    if sample.are_draws:
        noise += features.variance[:, None] * simulated[1:] ** 2
        fidelity, shares = r_squared_errors(total, each, gamma, variance, simulated[1:], noise)
        weights = np.full(len(f), 1.0 / len(f)) if sample.weights is None else sample.weights
        unseen = sample.statistics.unseen_squares(weights, squares)
        # R² is 1 less a mean square over Var_w f, of which it is a part
        share = np.divide(mean_square, variance, out=np.ones_like(variance), where=variance > 0)
        moved = np.divide(np.sqrt(unseen), variance, out=np.zeros_like(variance), where=variance > 0)
        fidelity = np.hypot(fidelity, (1.0 - np.minimum(share, 1.0)) * moved)
        # answers that are all the same show nothing of the fit
        fidelity = np.where((variance == 0) & (features.variance > 0).any(), np.inf, fidelity)
        square = (f - mean) ** 2 * (1.0 if sample.weights is None else sample.weights[:, None])
        number = _effective(square.sum(axis=0), (square**2).sum(axis=0))
        # where the residuals are 0, R² is 1 whatever the variance is
        estimable = variance_is_known(number, sample.statistics.heavy) | (variance == 0)
        estimable |= np.sqrt(mean_square) <= sample.statistics.rounding
        fidelity = np.where(estimable, fidelity, np.inf)
    else:
        # R² = 1 - E_w rest² / Var_w f is that of the rows which β was fitted to. In their population it is
        # smaller by Σ_j noise_j / Var_w f in expectation, which the errors cover
        noise /= np.where(variance > 0, variance, 1.0)
        assert sample.weights is not None  # noqa: S101 - rows of a background have weights
        of_ratio = mean_ratio_error(sample.weights, rest**2, (f - mean) ** 2)
        fidelity = np.sqrt(of_ratio**2 + 2.0 * (noise**2).sum(axis=0) + noise.sum(axis=0) ** 2)
        shares = np.where(variance > 0, np.sqrt(each), np.nan)
        noise = np.zeros_like(noise)
    return LeastSquares(
        mean=mean,
        coef=coef,
        gamma=gamma,
        coef_errors=support.coef_errors(variances[1:-1], simulated[1:]),
        variance=variance,
        surrogate_errors=support.surrogate_errors(features, variances[-1], simulated),
        fidelity_errors=fidelity,
        share_errors=shares,
        noise=noise,
        n_unlike=sample.statistics.n_unlike,
        effective_clusters=support.effective_clusters(sandwich.effective[1:], of_answers),
        effective=np.array(
            float(len(f)) if sample.weights is None else 1.0 / (sample.weights @ sample.weights)
        ),
        answers_differ=support.answers_differ(sample.statistics.n_unlike),
    )


def _bias_reduced(sample: WeightedSample, rest: Floats, regressors: Floats, influence: Floats) -> Floats:
    """Errors (n, k) of draws, see `Clusters.bias_reduced`; those that weigh nothing have none."""
    if sample.weights is None or not sample.are_draws:
        return sample.clusters.bias_reduced(rest, regressors, influence)
    roots = sample.roots
    inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    errors = sample.clusters.bias_reduced(rest * roots, regressors * roots, influence * inverse.T)
    return np.asarray(errors * inverse)


def _influence_of_few(features: Features, sample: WeightedSample) -> Floats:
    """Influence (1 + d, n) of draws on their mean and on Σ⁻¹ Cov_sample(h, f)."""
    centred, n = sample.centred, len(sample.centred)
    centred = centred - sample.mean(centred)
    if sample.weights is None:
        return np.vstack([np.full(n, 1.0 / n), features.solve(centred.T) / (n - 1)])
    moved = centred * (sample.weights * n / (n - 1))[:, None]
    return np.vstack([sample.weights, features.solve(moved.T)])


def _effective(total: Floats, squares: Floats) -> Floats:
    """Effective number of terms, given their sum and that of their squares; infinite without any."""
    return np.divide(total**2, squares, out=np.full_like(total, np.inf), where=squares > 0)


class _Moves(NamedTuple):
    """Changes that errors of rows make: the delta method for R² and the shares s_j = β_j Γ_j / Var_w f."""

    influence: Floats  # on the coefficients, (d, n)
    errors: Floats  # (n, k)
    mean: Floats
    coef: Floats
    gamma: Floats
    variance: Floats
    squares: Floats  # of the surrogate's residuals, or of the answers, (n, k)
    alone: bool  # whether coefficients are estimated by themselves

    def noise(self, features: Features, clusters: Clusters) -> Floats:
        """Return what errors of β add to β_j (Σβ)_j in expectation, (d, k): the diagonal of Cov(β) Σ."""
        if clusters.are_rows:
            return np.asarray((self.influence * features.gamma(self.influence)) @ self.errors**2)
        moved = (clusters.sums(self.influence * error) for error in self.errors.T)
        return np.stack([(its * features.gamma(its)).sum(axis=1) for its in moved], axis=1)

    def variances(self, features: Features, sample: WeightedSample) -> tuple[Floats, Floats]:
        """Variances of R² (k,), where Σ is known, and of shares (d, k)."""
        w, sums = sample.weights, sample.clusters.sums
        total, each = np.zeros_like(self.mean), np.zeros_like(self.coef)
        for k in np.flatnonzero(self.variance > 0).tolist():
            variance, moved = self.variance[k], self.influence * self.errors[:, k]
            coef, gamma = self.coef[:, k, None], self.gamma[:, k, None]
            change = (gamma / variance) * moved
            if sample.are_draws:  # Σ is known, and Var_w f = βᵀΣβ + E_w rest²
                change += (coef / variance) * features.gamma(moved)
                squares = self.squares[:, k]
                rest = squares - sample.mean(squares)
                rest = rest / len(squares) if w is None else rest * w
                grown = (0.0 if self.alone else change.sum(axis=0)) + rest / variance
            else:  # Σ is estimated, too
                assert w is not None  # noqa: S101 - rows of a background have weights
                f = sample.f[:, k] - self.mean[k]
                change += (coef / variance) * (np.multiply(sample.centred.T, w * f, order="C") - gamma * w)
                grown = w * (f**2 / variance - 1.0)
            change -= (coef * gamma / variance) * grown
            each[:, k] = (sums(change) ** 2).sum(axis=1)
            if sample.are_draws:
                total[k] = (sums(change.sum(axis=0)[None]) ** 2).sum()
        return total, each


def mean_ratio_error(weights: Floats, part: Floats, whole: Floats) -> Floats:
    """Standard errors (k,) of E_w part / E_w whole, (n, k) both, of independent rows; 0 without a whole."""
    total = weights @ whole
    safe = np.where(total > 0, total, 1.0)
    ratio = (weights @ part) / safe
    moved = weights[:, None] * (part - ratio * whole) / safe
    return np.where(total > 0, np.sqrt((moved**2).sum(axis=0)), 0.0)
