r"""Least squares of a control variate's residuals, with cluster-robust standard errors.

With rows of w itself, β of the residual r = f - h is the ordinary least squares of r on the features. Row i
contributes W_i e_i to a coefficient's error Σ_i W_i e_i, W the rows of (AᵀA)⁻¹Aᵀ and e_i its residual, with
the bias reduction of Bell & McCaffrey (2002). Rows of one cluster (of one order of the features,
``designs/_exchangeable.py``) depend on each other, clusters do not: the cluster-robust sandwich estimator
is, with C_g = Σ_{i in g} W_i e_i,

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

``rule_of_three.py`` bounds the errors that the residuals cannot show. Controls whose expectation is simulated
add the standard errors of the simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._expectations.rule_of_three import UNSEEN, AnswerStatistics, RareAnswers
from limes._variance import is_constant
from limes.designs._product import Features

# A coefficient is fitted if its feature differs from its usual value in this many rows at least.
FEWEST_CHANGED = 16
# Factor on the pooled variance reduction of sequences: single coefficients may gain less than the average one
_CAUTION = 1.5
# Chance that the few sums of a small design make the variance reduction look larger than it is
_REDUCTION_RISK = 0.1
# Chance that sequences of one coefficient differ by more than the limit although nothing is wrong
_BETWEEN_RISK = 0.01
# Least 1 - leverage: the share of an error that least squares leaves of a row that decides its own fit
LEAST_LEFT = 0.01
# Effective clusters below which no variance reduction is assumed
_FEW = 16.0


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters and sequences of n rows.

    Attributes
    ----------
    cluster
        (n,) number of the cluster of each row; rows of different clusters are independent within a sequence.
    sequence
        (n,) number of the sequence of each row.
    """

    cluster: Ints
    sequence: Ints

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.cluster, kind="stable")
        return order, np.flatnonzero(np.diff(self.cluster[order], prepend=-1))

    def sums(self, contributions: Floats) -> Floats:
        """Sums over clusters, (m, n) -> (m, clusters)."""
        order, starts = self._sorted
        if starts.size == order.size:
            return contributions
        return np.asarray(np.add.reduceat(contributions[:, order], starts, axis=1))

    def bias_reduced(self, residuals: Floats, regressors: Floats, weights: Floats) -> Floats:
        """Residuals (n, k) of least squares, enlarged to errors: (I - H_g)^(-½) r_g in each cluster g.

        H_g are the rows and columns of the cluster in regressors (n, p) · weights (p, n); for a cluster of
        one row that is r / √(1 - leverage). With it the variance of a coefficient is unbiased if all errors
        have the same variance (Bell & McCaffrey 2002).
        """
        order, starts = self._sorted
        sizes = np.diff(starts, append=order.size)
        errors = np.empty_like(residuals)
        for size in np.unique(sizes):
            rows = order[starts[sizes == size][:, None] + np.arange(size)]
            hat = regressors[rows] @ weights.T[rows].transpose(0, 2, 1)
            values, vectors = np.linalg.eigh(np.eye(size) - hat)
            root = vectors / np.sqrt(np.maximum(values, LEAST_LEFT))[:, None, :] @ vectors.transpose(0, 2, 1)
            errors[rows] = root @ residuals[rows]
        return errors


@dataclass(frozen=True, eq=False)
class SandwichVariance:
    """Cluster-robust variances of m sums of errors of k outputs; leading axes are several explained rows.

    Attributes
    ----------
    within
        Σ_g C_g², (m, k).
    effective
        Effective number of clusters that carry each sum, (m, k); infinite where there is no error.
    between
        Variance of the sums, estimated from the differences between sequences, (m, k).
    n_sequences
        Number of sequences.
    """

    within: Floats
    effective: Floats
    between: Floats
    n_sequences: int

    @classmethod
    def from_rows(cls, influence: Floats, errors: Floats, clusters: Clusters) -> SandwichVariance:
        """Return the variances of the sums of influence W (m, n) times errors e (n, k)."""
        sums = [clusters.sums(influence * errors[:, k]) for k in range(errors.shape[1])]
        squares = [c**2 for c in sums]
        within = np.stack([s.sum(axis=1) for s in squares], axis=1)
        effective = np.stack([_effective(s, s.sum(axis=1, keepdims=True)) for s in squares], axis=1)
        sequence = clusters.sequence
        folds = np.unique(sequence)
        of_sequences = np.stack([influence[:, sequence == s] @ errors[sequence == s] for s in folds])
        between = of_sequences.var(axis=0) * folds.size**2 / (folds.size - 1)
        return cls(within, effective, between, folds.size)

    @cached_property
    def ratio(self) -> Floats:
        """Variance between sequences in units of that within, (m, k)."""
        return np.divide(self.between, self.within, out=np.ones_like(self.within), where=self.within > 0)

    @cached_property
    def variance_reduction(self) -> Floats:
        """Factor by which sequences change variances, pooled over all sums: below 1 if they help; ()."""
        live = self.within > 0
        count = live.sum(axis=(-2, -1))
        pooled = np.where(live, self.ratio, 0.0).sum(axis=(-2, -1)) / np.maximum(count, 1)
        freedom = (self.n_sequences - 1) * live.any(axis=-1).sum(axis=-1)
        caution = np.maximum(_CAUTION, 1.0 / _mean_square(_REDUCTION_RISK, np.maximum(freedom, 1)))
        return np.where(count > 0, np.maximum(np.minimum(1.0, caution * pooled), pooled), 1.0)

    @cached_property
    def seen(self) -> Floats:
        """Variances of the sums, (m, k), by the clusters that the sample has."""
        return self._seen(self.variance_reduction)

    def variances(self, reduction: Floats, least: Floats) -> Floats:
        """Variances of the sums, (m, k), where sequences change them by a factor ``reduction`` ().

        Unseen clusters add ``least`` (m, k) to them, or more.
        """
        seen = self._seen(reduction)
        return seen + np.maximum(seen * UNSEEN / self.effective, least)

    def _seen(self, reduction: Floats) -> Floats:
        reduction = reduction[..., None, None]
        few = np.minimum(1.0, (_FEW / self.effective) ** 2)
        factor = np.maximum(reduction, reduction + (1.0 - reduction) * few)
        surprising = is_surprising(self.ratio, self.n_sequences - 1)
        factor = np.where(surprising, np.maximum(factor, self.ratio), factor)
        return np.asarray(factor * self.within)


@dataclass(frozen=True, eq=False)
class FeatureSupport:
    """Features that vary enough in a sample for their coefficients to be fitted.

    Attributes
    ----------
    n_changed
        (d,) number of rows where a feature differs from its usual value.
    unidentified
        (d,) features that hardly varied: their coefficients cannot be estimated from the sample.
    used
        (d,) features whose coefficients are fitted: identified, and not fixed by the design either.
    """

    n_changed: Ints
    unidentified: Bools
    used: Bools

    @classmethod
    def from_rows(cls, h: Floats, fixed: Bools) -> FeatureSupport:
        """Return the support of features (n, d), of which the ``fixed`` ones cannot vary."""
        n_changed = (h != np.median(h, axis=0)).sum(axis=0)
        unidentified = ~fixed & (n_changed < FEWEST_CHANGED)
        return cls(n_changed, unidentified, ~fixed & ~unidentified)


@dataclass(frozen=True, eq=False)
class ResidualFit:
    """Least squares of residuals (n, k) on centred features (n, d).

    Attributes
    ----------
    coef
        Intercept first, (1 + d, k).
    influence
        W, (1 + d, n).
    errors
        e, (n, k).
    clusters
        Clusters of the rows.
    rare
        Rows whose answers are rare.
    uncontrolled
        Residuals of the answers themselves, without a control, (n, k).
    simulated
        Standard errors of the controls' moments, intercept first, (1 + d, k).
    support
        Features that vary.
    """

    coef: Floats
    influence: Floats
    errors: Floats
    clusters: Clusters
    rare: RareAnswers
    uncontrolled: Floats
    simulated: Floats
    support: FeatureSupport

    @classmethod
    def fit(
        cls,
        h: Floats,
        center: Floats,
        r: Floats,
        clusters: Clusters,
        *,
        answers: Floats,
        prediction: Floats | None,
        support: FeatureSupport,
        simulated: Floats,
    ) -> ResidualFit:
        """Fit residuals r (n, k) of the model's ``answers`` (n, k).

        ``center`` is E_w h, so that the intercept is E_w r.
        """
        used = support.used
        regressors = np.column_stack([np.ones(len(h)), h[:, used] - center[used]])
        inverse = np.linalg.pinv(regressors.T @ regressors, hermitian=True)
        weights = inverse @ regressors.T
        solution = weights @ r
        errors = clusters.bias_reduced(r - regressors @ solution, regressors, weights)
        place = np.concatenate([[True], used])
        coef, influence = np.zeros((place.size, r.shape[1])), np.zeros((place.size, len(h)))
        coef[place], influence[place] = solution, weights
        rare = RareAnswers.from_rows(AnswerStatistics.from_rows(answers), errors, prediction)
        uncontrolled = answers - regressors @ (weights @ answers)
        return cls(coef, influence, errors, clusters, rare, uncontrolled, simulated, support)

    @cached_property
    def _sandwich(self) -> SandwichVariance:
        """Variances of the intercept and the coefficients."""
        return SandwichVariance.from_rows(self.influence, self.errors, self.clusters)

    def _variances(self, influence: Floats) -> Floats:
        """Variances of sums of residuals with influences (m, n), (m, k)."""
        sandwich = SandwichVariance.from_rows(influence, self.errors, self.clusters)
        return sandwich.variances(self._sandwich.variance_reduction, self.rare.least_variances(influence))

    @cached_property
    def coef_errors(self) -> Floats:
        """Standard errors of the coefficients, (d, k), such that ±1.96 of them is a 95 % interval."""
        sampled = np.sqrt(self._variances(self.influence)[1:])
        sampled *= student_factors(np.maximum(self.support.n_changed, FEWEST_CHANGED) - 1)[:, None]
        sampled[self.support.unidentified] = np.inf
        return np.hypot(sampled, self.simulated[1:])

    @cached_property
    def answers_differ(self) -> bool:
        """Whether the answers of every output differ; without them no coefficient can be estimated."""
        fixed = not (self.support.used | self.support.unidentified).any()
        return bool((self.rare.n_unlike > 0).all() or fixed)

    @cached_property
    def carriers(self) -> Floats:
        """Effective number of clusters behind a coefficient's error, (k,): the median over features.

        A control is fitted to few rows as well: where few answers are large, its residuals may all look
        alike. The smaller number counts, that of the answers or that of the residuals.
        """
        used = self.support.used
        if not used.any():
            return np.full(self.coef.shape[1], np.inf)
        answers = SandwichVariance.from_rows(self.influence, self.uncontrolled, self.clusters)
        residuals = self._sandwich.effective[1:][used]
        effective = np.where(np.isinf(residuals), np.inf, np.minimum(residuals, answers.effective[1:][used]))
        return np.asarray(np.sort(effective, axis=0)[len(effective) // 2])

    def quality(self, design: Features, h: Floats, coef: Floats, f: Floats) -> Quality:
        """Var_w f, and errors of functions of coefficients (d, k), by features (n, d) and answers (n, k).

        Var_w f is the variance that the surrogate explains, βᵀΣβ, plus the mean square of its residuals:
        where they are 0, R² is 1, however the sample happens to scatter.
        """
        at_instance = np.concatenate([[1.0], design.departure])
        sampled = self._variances((at_instance @ self.influence)[None])[0]
        unidentified = (self.support.unidentified & (design.departure != 0)).any()
        squares = (f - self.coef[0] - (h - design.inclusion) @ coef) ** 2
        variance = (coef * design.gamma(coef)).sum(axis=0) + squares.mean(axis=0)
        variance = np.where(is_constant(variance, np.abs(f).max(axis=0)), 0.0, variance)
        noise = np.stack([self._noise(design, k) for k in range(f.shape[1])], axis=1)
        shares = [
            self._shares(design, coef[:, k], squares[:, k], noise[:, k], float(variance[k]), k)
            for k in range(f.shape[1])
        ]
        return Quality(
            variance=variance,
            surrogate_errors=np.where(
                unidentified, np.inf, np.sqrt(sampled + at_instance**2 @ self.simulated**2)
            ),
            fidelity_errors=np.array([total for total, _ in shares]),
            share_errors=np.stack([single for _, single in shares], axis=1),
            noise=noise,
        )

    def _noise(self, design: Features, k: int) -> Floats:
        """Return what errors of β add to β_j (Σβ)_j in expectation, (d,): the diagonal of Cov(β) Σ."""
        moved = self.clusters.sums(self.influence[1:] * self.errors[:, k])
        seen, within = self._sandwich.seen[1:, k], self._sandwich.within[1:, k]
        factor = np.divide(seen, within, out=np.zeros_like(seen), where=within > 0)
        sampled = factor * (moved * design.gamma(moved)).sum(axis=1)
        return np.asarray(sampled + design.variance * self.simulated[1:, k] ** 2)

    def _shares(
        self, design: Features, coef: Floats, squares: Floats, noise: Floats, variance: float, k: int
    ) -> tuple[float, Floats]:
        """Errors of R² = Σ s_j and of the shares s_j = β_j (Σβ)_j / Var f.

        The delta method, and the second order of the errors of β_j: 2 ``noise``². ``squares`` (n,) are those
        of the surrogate's residuals. Answers that are all the same show nothing of either.
        """
        gamma = design.gamma(coef)
        if variance == 0:
            return (np.inf if (design.variance > 0).any() else 0.0), np.full(coef.size, np.nan)
        share = coef * gamma / variance
        moved = self.influence[1:] * self.errors[:, k]
        change = gamma[:, None] * moved + coef[:, None] * design.gamma(moved)
        grown = change.sum(axis=0) + (squares - squares.mean()) / squares.size
        change = (change - share[:, None] * grown) / variance
        second = 2.0 * (noise / variance) ** 2
        simulated = (2.0 * gamma * self.simulated[1:, k] / variance) ** 2 + second
        sums = self.clusters.sums(np.vstack([change.sum(axis=0), change]))
        squares = (sums**2).sum(axis=1)
        return float(np.sqrt(squares[0] + simulated.sum())), np.sqrt(squares[1:] + simulated)


@dataclass(frozen=True, eq=False)
class Quality:
    """Var_w f, and standard errors of the surrogate at the instance, of R² (k,), and of shares (d, k).

    ``noise`` (d, k) is what errors of the coefficients add to β_j (Σβ)_j in expectation.
    """

    variance: Floats
    surrogate_errors: Floats
    fidelity_errors: Floats
    share_errors: Floats
    noise: Floats


def _effective(squares: Floats, total: Floats) -> Floats:
    """Effective number of squares (m, clusters), given their sums (m, 1): 1 / Σ shares²."""
    share = np.divide(squares, total, out=np.zeros_like(squares), where=total > 0)
    concentration = (share**2).sum(axis=1)
    unknown = np.full_like(concentration, np.inf)
    return np.asarray(np.divide(1.0, concentration, out=unknown, where=concentration > 0))


def _mean_square(level: float, freedom: Ints | int) -> Floats:
    """Quantile of the mean square of ``freedom`` standard normal numbers."""
    from scipy.special import chdtri

    return np.asarray(chdtri(freedom, 1.0 - level) / freedom)


def is_surprising(ratio: Floats, freedom: int) -> Bools:
    """Whether a variance of ``freedom`` degrees is larger than expected by more than chance allows."""
    return np.asarray(ratio > _mean_square(1.0 - _BETWEEN_RISK, freedom))


def student_factors(freedom: Ints | Floats) -> Floats:
    """Factors by which errors from few rows must grow."""
    from scipy.special import ndtri, stdtrit

    return np.asarray(stdtrit(freedom, 0.975) / ndtri(0.975))
