r"""Contributions of d units from the answers to some sets of them, by readable models of these.

With r units shown, s = d - r hidden, and sets that are uniform given their size,

    φ_j = mean + Σ_s within_s E[(z_j - r/d) f | s],    within_s = d / (r s),    Σ_j φ_j = f(all) - f(none).

Sets have sizes of a law q, a quarter of it ∝ 1 / (r s), where all have the same weight below, the rest even,
or, of words, which are many, ∝ (r s)^a: a is 2 where sets are few, since these say most about sums, and nears
0 where there are many a word. Where sets are fewer than units, the quarter is left out. Sets are independent:
of a sum a set and its complement say the same. A readable model g of f (``set_controls.py``), fitted to all
parts of the sets but one, has exact contributions γ_j, and that part estimates the rest without bias; of all
parts in turn

    ρ_j = (1/n) Σ_i within_s / q_s (z_ij - r_i/d) (f_i - g_i),           with variance σ_j².

Where units are about as many as calls, ρ is mostly noise, and γ alone is nearer to φ than γ + ρ. So

    φ_j ≈ γ_j + λ_j ρ_j,      λ_j = τ² / (τ² + σ_j²),      τ² = E (ρ_j² - σ_j²),

(Stein 1956, Efron & Morris 1973). τ² is such that the mean of ρ_j² / (τ² + σ_j²) is 1 (Paule & Mandel 1982),
and 0 where chance explains ρ; for it each quarter has its own ρ, which does not depend on its g. What g lacks
is mostly in the units with the largest γ, as the product of three that no pair explains: the eight leading
ones have their own τ², where sets are more than units. The error is at most λ_j σ_j + (1 - λ_j) τ. There τ²
is estimated among units of like size, and its own error is added: intervals cover among units that look alike
by the answers, not for one that is known to be large. What all γ together miss f(all) - f(none) by, M, is
shared by the units, exactly where no ρ is shrunk, since all ρ add up to 0. Of one that is, M²/d is the
variance of what it may lack beside, as far as ρ_j leaves that open: (1 - λ_j)² / (d / M² + 1 / σ_j²).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats
from limes._explainers.set_controls import FittedModel, Pair, set_control
from limes._sampling.least_squares import student_factors
from limes._sampling.sampled import USUAL
from limes._shapley.coalitions import account_from, ends_of, with_noise
from limes._shapley.exact import RowContributions
from limes.models._calling.caller import Calls
from limes.models._calling.counts import AnswerCount

# Parts of the sets, each of which has its ρ for τ²
_PARTS = 4
# Numbers that are chosen so that g leaves least: a penalty and a share of each of four kinds
_CHOSEN = 8
# Share of the sets whose sizes have KernelSHAP's law; steps of the search for τ²
_FLAT, _BISECTIONS = 0.25, 40
# The share of sets whose sizes do not depend on the answers, where these show how much they differ
_EVEN_SHARE = 0.3
# Sets a unit above which sizes of sets are spread evenly
SETS_A_UNIT = 4.0
# Sets without which no variance is known
LEAST_SETS = 2
# Units among which τ² is estimated: of the largest, twice as many of each next size; the fewest that are
# shrunk at all; and the leading ones, which have their τ² by themselves where sets are more than units
_ALIKE, _FEWEST_SHRUNK, _LEADING = 5, 8, 8
# Sets a feature with which least squares are as accurate, and those by a process, which knows networks
_SQUARES, _WITH_PROCESS = 8, 4

# Fields of an estimate whose last axis is that of outputs
_OF_OUTPUTS = ("values", "rest", "variance", "share", "missed", "unlike")
_TINY = np.finfo(np.float64).tiny


def drawn_sets(
    rng: np.random.Generator, count: int, d: int, power: int, spread: Floats | None = None
) -> tuple[Floats, Floats]:
    """Sets z (n, d), and within_s / q_s of each, (n,).

    ``spread`` (d - 1,) is how much answers to sets of each size differ, where this is known.
    """
    hidden = np.arange(1.0, d)
    pairs = hidden * (d - hidden)
    # sums say most of all units together; the more sets there are, the more is known of each by itself
    most, few = pairs ** (power / (1.0 + (count / (SETS_A_UNIT * d)) ** 2)), 1.0 / pairs
    # nearly all or nearly none shown say little where sets are fewer than units
    flat = _FLAT * float(np.clip(2.0 * count / d - 1.0, 0.0, 1.0))
    law = (1.0 - flat) * most / most.sum() + flat * few / few.sum()
    if spread is not None:
        best = spread / np.sqrt(pairs)
        law = _EVEN_SHARE * law + (1.0 - _EVEN_SHARE) * best / best.sum()
    # sizes are spread evenly over their law
    levels = (np.arange(count) + rng.random()) / count
    size = rng.permutation(np.minimum(np.searchsorted(np.cumsum(law), levels, side="right"), d - 2))
    z = rng.permuted(np.tile(np.arange(d), (count, 1)), axis=1) > size[:, None]
    return z.astype(np.float64), (d / (pairs * law))[size]


def influence_of(z: Floats, weights: Floats) -> Floats:
    """Numbers within_s / q_s (z_j - r/d) of sets z (n, d), by which answers count for units, (n, d)."""
    return np.asarray(weights[:, None] * (z - z.mean(axis=1, keepdims=True)))


class SetsOfUnits(NamedTuple):
    """Sets of d units, or groups, with answers to k outputs; earlier rows begin with none and all."""

    earlier: Floats  # (m, d)
    earlier_f: Floats  # (m, k)
    z: Floats  # (n, d)
    f: Floats  # (n, k)
    weights: Floats  # within_s / q_s, (n,)

    @classmethod
    def of_none(cls, earlier: Floats, earlier_f: Floats) -> SetsOfUnits:
        return cls(earlier, earlier_f, earlier[:0], earlier_f[:0], np.empty(0))

    def with_more(self, z: Floats, f: Floats, weights: Floats) -> SetsOfUnits:
        old, new = self[2:], (z, f, weights)
        return SetsOfUnits(*self[:2], *(np.concatenate(both) for both in zip(old, new, strict=True)))


@dataclass(frozen=True, eq=False)
class EstimateOfSets:
    """Contributions (d, k) by one law of sets, and what their errors follow from."""

    values: Floats
    pairs: tuple[tuple[Pair, ...], ...]
    influence: Floats  # (n, d)
    rest: Floats  # (n, k)
    variance: Floats  # σ², (d, k)
    share: Floats  # λ, (d, k)
    missed: Floats  # by all γ together, (k,)
    unlike: Floats  # the mean square that the rest of one more set may have, (k,)

    @classmethod
    def of(cls, nodes: Floats, its: SetsOfUnits, other: FittedModel | None = None) -> EstimateOfSets:
        none, whole = its.earlier_f[:2]
        control = set_control(nodes, its.earlier, its.earlier_f, its.z, its.f, other=other)
        influence = influence_of(its.z, its.weights)
        unlike = np.concatenate([its.earlier_f[:2], its.f]).var(axis=0)
        return cls.of_rest(control.gamma, control.rest, influence, whole - none, unlike, control.pairs)

    @classmethod
    def of_rest(
        cls,
        gamma: Floats,
        rest: Floats,
        influence: Floats,
        total: Floats,
        unlike: Floats,
        pairs: tuple[tuple[Pair, ...], ...] = (),
    ) -> EstimateOfSets:
        """Contributions that add up to a ``total`` (k,), by those of g (d, k) and what g leaves of sets."""
        its = cls.of_numbers(gamma, rest, influence, unlike)
        values = its.values + (total - its.values.sum(axis=0)) / len(gamma)
        return replace(its, values=values, pairs=pairs, missed=total - gamma.sum(axis=0))

    @classmethod
    def of_numbers(cls, gamma: Floats, rest: Floats, influence: Floats, unlike: Floats) -> EstimateOfSets:
        """Any numbers of the game, whose sum is not given, by those of g (d, k) and what g leaves of sets."""
        rho, variance = _mean_and_variance(influence, rest)
        share = _shares_of_rest(*_of_parts(influence, rest), variance)
        if len(rest) > len(rho) >= _FEWEST_SHRUNK:
            share = np.maximum(share, _shares_of_leading(gamma, rho, variance))
        nothing = np.zeros(gamma.shape[1])
        return cls(gamma + share * rho, (), influence, rest, variance, share, nothing, unlike)

    def only(self, k: int) -> EstimateOfSets:
        """The estimate of one output."""
        one = slice(k, k + 1)
        numbers = {name: getattr(self, name)[..., one] for name in _OF_OUTPUTS}
        return replace(self, pairs=self.pairs[one], **numbers)

    def errors(self, parts: Floats | None = None) -> Floats:
        """Errors (d, k) of values, or of sums of them, (g, k), by parts (d, g)."""
        # answers that are all the same say nothing of one that is not
        return np.where(self.unlike > 0.0, self.sizes_of_errors(parts), np.inf)

    def sizes_of_errors(self, parts: Floats | None = None) -> Floats:
        """The same, 0 where all answers are the same."""
        d = len(self.values)
        # the sum of all that g lacks is known, and not whose it is: of one unit a d-th of its square, in so
        # far as ρ leaves that open
        of_sum, noise = self.missed**2 / d, self.variance + self._of_one_more(None)
        shrunk = (1.0 - self.share) ** 2 * of_sum * noise / np.maximum(of_sum + noise, _TINY)
        if parts is not None:
            shrunk = (parts**2).T @ shrunk
        return np.asarray(np.sqrt(self._squares(parts) + self._of_one_more(parts) + shrunk))

    def _squares(self, parts: Floats | None) -> Floats:
        sums = self.values if parts is None else parts.T @ self.values
        errors = np.empty(sums.shape)
        for k in range(sums.shape[1]):
            rest, share = self.rest[:, k : k + 1], self.share[:, k : k + 1]
            errors[:, k] = _errors(sums[:, k], parts, self.influence, rest, share)
        return errors**2

    def _of_one_more(self, parts: Floats | None) -> Floats:
        """Squares of errors by a set that was not drawn, which may be one that g does not explain."""
        of_sets = (_of_sums(self.influence, parts) ** 2).mean(axis=0)
        return np.asarray(of_sets[:, None] * self.unlike / len(self.rest) ** 2)


@dataclass(frozen=True, eq=False)
class FewSets:
    """Contributions of d features from few sets z (n, d) with answers (n, k), by the estimate of units.

    ``law`` (d + 1,) has the probabilities of the number of hidden features with which the sets were drawn.
    """

    calls: Calls
    prediction: Floats  # (k,)
    z: Floats
    answers: Floats
    law: Floats
    # how often the empty set is asked about, and all features, of random answers
    times: tuple[int, int] = (1, 0)
    tally: AnswerCount = field(default_factory=AnswerCount)

    def compute(self) -> RowContributions:
        d, shown = self.z.shape[1], self.z.sum(axis=1)
        with self.tally.counting():
            none, whole = ends_of(self.calls.one_pass(self.calls), self.prediction, d, self.times)
        some = (shown > 0) & (shown < d)  # all others say nothing of single features
        hidden = (d - shown[some]).astype(np.int64)
        weights = d * self.law[1:d].sum() / (hidden * (d - hidden) * self.law[hidden])
        ends, f = np.array([[0.0], [1.0]]) * np.ones(d), np.stack([none.mean(axis=0), whole.mean(axis=0)])
        sets = SetsOfUnits(ends, f, self.z[some], self.answers[some].reshape(-1, f.shape[1]), weights)
        its = EstimateOfSets.of(np.eye(d), sets)
        errors, of_base, unknown = its.errors(), np.zeros(f.shape[1]), np.full(its.values.shape, np.nan)
        if self.times[1]:
            errors, of_base = with_noise(errors, none, whole)
        calls = self.tally.rows
        return account_from(self.prediction, its.values, errors, unknown, unknown, of_base, calls=calls)

    def is_best(self, *, has_process: bool) -> bool:
        """Whether sets show a variance, and are too few for least squares, or for these by a process."""
        shown, d = self.z.sum(axis=1), self.z.shape[1]
        enough = max(USUAL, (_WITH_PROCESS if has_process else _SQUARES) * d)
        return d > 1 and len(self.z) < enough and int(((shown > 0) & (shown < d)).sum()) >= LEAST_SETS


def _mean_and_variance(influence: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """The mean of influence (n, d) times rest (n, k), (d, k), and the variance of this mean."""
    n = len(rest)
    mean = influence.T @ rest / n
    return mean, np.maximum((influence**2).T @ rest**2 / n - mean**2, 0.0) / (n - 1)


def _of_parts(influence: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """The same of each part's sets, (parts, d, k): they do not depend on the g whose rest they estimate."""
    count = max(1, min(_PARTS, len(rest) // LEAST_SETS))
    pairs = [_mean_and_variance(influence[i::count], rest[i::count]) for i in range(count)]
    means, variances = map(np.stack, zip(*pairs, strict=True))
    return means, variances


def _shares_of_rest(means: Floats, variances: Floats, variance: Floats) -> Floats:
    """λ_j (d, k), from estimates of each part (parts, d, k) and variances σ_j² (d, k) of all together."""
    if len(variance) < _FEWEST_SHRUNK:
        return np.ones(variance.shape)
    # two standard errors of the mean where the rest is noise alone
    most = 1.0 + 2.0 * np.sqrt(2.0 / (len(means) * len(variance)))
    between = _variance_between(means, variances, most)
    return np.asarray(between / np.maximum(between + variance, _TINY))


def _shares_of_leading(gamma: Floats, rho: Floats, variance: Floats) -> Floats:
    """λ_j (d, k) of the units with the largest γ_j, 0 of all others.

    What g lacks of a model, as products of three, is in these.
    """
    leading = np.argsort(-np.abs(gamma), axis=0, kind="stable")[:_LEADING]
    means, variances = (np.take_along_axis(its, leading, axis=0) for its in (rho, variance))
    between = _variance_between(means[None], variances[None], 1.0)
    share = np.zeros(gamma.shape)
    np.put_along_axis(share, leading, between / np.maximum(between + variances, _TINY), axis=0)
    return share


def _variance_between(means: Floats, variances: Floats, most: float) -> Floats:
    """τ² (k,) with which means (parts, d, k) have squares of ``most`` times their variance."""
    low, high = np.zeros(means.shape[2]), (means**2).sum(axis=(0, 1))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_more = (means**2 / np.maximum(middle + variances, _TINY)).mean(axis=(0, 1)) > most
        low, high = np.where(is_more, middle, low), np.where(is_more, high, middle)
    return low


def _of_sums(influence: Floats, parts: Floats | None) -> Floats:
    """Influence (n, d) on sums by ``parts`` (d, g), (n, g); None: on each number by itself."""
    return influence if parts is None else np.asarray(influence @ parts)


def _errors(values: Floats, parts: Floats | None, influence: Floats, rest: Floats, share: Floats) -> Floats:
    """Errors, (g,), of sums ``parts`` (d, g) of γ_j + λ_j ρ_j; rest (n, 1), share (d, 1)."""
    noise = np.sqrt(_mean_and_variance(_of_sums(influence * share.T, parts), rest)[1][:, 0])
    # penalties and shares of g were chosen by the same rest
    n = len(rest)
    freedom = max(n - 1 - _CHOSEN, (n - 1) / 2.0)
    noise = noise * np.sqrt((n - 1) / freedom) * student_factors(np.array(freedom))
    means, variances = (its[..., 0] for its in _of_parts(_of_sums(influence * (1.0 - share).T, parts), rest))
    excess, squares = (means**2 - variances).mean(axis=0), (variances**2).mean(axis=0) / len(means)
    order, start, size, unseen = np.argsort(-np.abs(values), kind="stable"), 0, _ALIKE, np.empty(values.size)
    while start < values.size:
        stop = start + size if values.size - start >= 3 * size else values.size
        alike = order[start:stop]
        own_error = np.sqrt(2.0 * squares[alike].mean() / alike.size)
        if not start:  # the largest are least alike
            own_error *= 2.0
        unseen[alike] = np.sqrt(max(excess[alike].mean(), 0.0) + own_error)
        start, size = stop, 2 * size
    # both may have the same sign, as g and ρ come from the same sets
    return np.asarray(noise + unseen)
