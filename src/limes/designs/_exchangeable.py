r"""Exchangeable designs: random subsets of the features of a text or an image are removed.

Two instances of one notion:

- LIME for text: s distinct words are deleted, s uniform on 1..d;
- LIME for images: each superpixel is switched off with probability ½, s ~ Binomial(d, ½).

The removed set is uniform given its size s, and the weight depends on s alone: ψ(s/d) = exp(-(1 - √(1 -
s/d))² / (2ν²)), from the cosine distance between z and (1, ..., 1). Tilting the law of s by ψ gives the
weighted law w. The z_j are not independent under it: Cov_w(z) has two eigenvalues, one along
(1, ..., 1) and one across.

Samples are spread more evenly than independent sets. A few rows share a random order of the features,
arranged in a circle, and each row removes the next stretch of the order: features that one row removes, the
next keeps. Their sizes differ as much as they can, so that together they remove about every feature once. For
a symmetric law of sizes that is a set and its complement. Each row alone is a uniform set of its size.

Given the number s of removed features, the removed set is a uniform draw. All that a surrogate needs of f is
therefore a sum over s of means within the *stratum* of s. With r = d - s features kept, F_s = E[f | s] and
p_s the law of s under w:

    E_w f     = Σ_s p_s F_s
    mean of β = Σ_s between_s F_s,                        the slope of F on r:  Cov_w(r, F) / Var_w(r)
    β_j       = mean of β + Σ_s within_s E[(z_j - r/d) f | s],             within_s = p_s / (α₁ - α₂)

because Cov_w(z) = (α₁ - α₂)(I - J/d) + (Var_w(s)/d) J/d, with J the matrix of ones. Nothing here subtracts
α's from each other, and the weights of both sums are of moderate size however narrow the law: where s is
all but fixed they are those of the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import is_count
from limes.designs._weights import check_bandwidth
from limes.exceptions import InputError

BANDWIDTH = 0.25
# Narrower bandwidths are replaced by this one: its exponents stay finite.
_NARROWEST = 1e-100
# 2^20 rows of 20 features are 168 MB
LARGEST_ENUMERATION = 20
# Where s all but never varies, Γ along (1, ..., 1), and with it the digits of β, would be lost in the
# roundings of Γ across it. Its eigenvalue is at least this share of the one across, in Σ and in Σ⁻¹ alike.
_LEAST_SHARE = 1e-5
_LEAST_VARIANCE = 1e-100
# With more rows of one order the sets would be too much alike.
_MOST_ROWS_OF_AN_ORDER = 4
# Log probability, before weighting, that a text of one word keeps it: one row among infinitely many
_SHARE_OF_THE_ORIGINAL = float(np.log(1e-30))


def log_factorial(n: Floats) -> Floats:
    """Log n! elementwise, of whole numbers n >= 0."""
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1.0))


def log_binomial(n: Floats, k: Floats) -> Floats:
    """Log of the number of k-subsets of n elements, -inf where k < 0 or k > n."""
    possible = (k >= 0) & (k <= n)
    k = np.where(possible, k, 0.0)
    n = np.maximum(n, 0.0)
    return np.where(possible, log_factorial(n) - log_factorial(k) - log_factorial(n - k), -np.inf)


def log_weights(d: int, bandwidth: float) -> Floats:
    """Log ψ(s/d) = -(1 - √(1 - s/d))² / (2ν²) for s = 0..d, (d + 1,)."""
    share = np.arange(d + 1.0) / d
    # 1 - √(1 - t) = t / (1 + √(1 - t)) keeps its digits for small t
    distance = share / (1.0 + np.sqrt(1.0 - share))
    return np.asarray(-0.5 * (distance / max(bandwidth, _NARROWEST)) ** 2)


@dataclass(frozen=True, eq=False)
class Counts:
    """The law of the number s of removed features under w."""

    log_law: Floats  # (d + 1,), log p_s, normalised; -inf where s has no probability
    log_weight: float  # log E[π] before tilting

    @classmethod
    def tilted(cls, log_prior: Floats, bandwidth: float) -> Counts:
        """p_s ∝ ρ_s ψ(s/d), from log ρ (d + 1,)."""
        joint = log_prior + log_weights(log_prior.size - 1, bandwidth)
        total = _log_sum(joint)
        return cls(joint - total, total - _log_sum(log_prior))

    @property
    def size(self) -> int:
        return self.log_law.size - 1

    @cached_property
    def law(self) -> Floats:
        """p_s, (d + 1,)."""
        return np.exp(self.log_law)

    @cached_property
    def kept(self) -> Floats:
        return np.asarray(self.size - np.arange(self.size + 1.0))

    @cached_property
    def inclusion(self) -> float:
        return float(self.law @ self.kept / self.size)

    @cached_property
    def exclusion(self) -> float:
        return float(self.law @ self.kept[::-1] / self.size)

    @property
    def between(self) -> Floats:
        """Weights (d + 1,) of the slope of F_s on the number kept; 0 if s is fixed."""
        return self._spread[0]

    @property
    def between_variance(self) -> float:
        """Var_w(s) / d, the eigenvalue of Cov_w(z) along (1, ..., 1)."""
        return self._spread[1]

    @property
    def within(self) -> Floats:
        """p_s / (α₁ - α₂), (d + 1,); 0 where all or no features are removed, as nothing varies there."""
        return self._strata[0]

    @property
    def within_variance(self) -> float:
        """α₁ - α₂ = E_w[r s] / (d (d - 1)), the other eigenvalue of Cov_w(z); 0 for d = 1."""
        return self._strata[1]

    @cached_property
    def _spread(self) -> tuple[Floats, float]:
        """Sizes relative to the likeliest s, masses relative to the second likeliest: neither underflows."""
        mode = int(np.argmax(self.log_law))
        others = np.where(np.arange(self.size + 1) == mode, -np.inf, self.log_law)
        second = others.max()
        if np.isneginf(second):
            return np.zeros(self.size + 1), 0.0
        mass, unit = np.exp(others - second), np.exp(second)
        offset = self.kept - self.kept[mode]
        shift = mass @ offset
        deviation = mass * (offset - unit * shift)
        deviation[mode] = -self.law[mode] * shift
        variance = mass @ (offset - unit * shift) ** 2 + self.law[mode] * unit * shift**2
        return deviation / variance, float(unit * variance / self.size)

    @cached_property
    def _strata(self) -> tuple[Floats, float]:
        pairs = self.kept * self.kept[::-1]
        varies = (pairs > 0) & np.isfinite(self.log_law)
        if not varies.any():
            return np.zeros(self.size + 1), 0.0
        among = self.size * (self.size - 1.0)
        unit = self.log_law[varies].max()
        mass = np.exp(np.where(varies, self.log_law, -np.inf) - unit)
        total = mass @ pairs
        return among * mass / total, float(np.exp(unit) * total / among)


class Coalitions(Counts):
    """Strata weights whose β are Shapley values of f(S kept, the others removed).

    φ_j is the mean over r of what feature j adds to r others; see ``_shapley/coalitions.py``. The law of
    s is that along the way from no feature to all, which is uniform.
    """

    @classmethod
    def of(cls, d: int) -> Coalitions:
        return cls(np.full(d + 1, -np.log(d + 1.0)), 0.0)

    @cached_property
    def _spread(self) -> tuple[Floats, float]:
        slope = np.zeros(self.size + 1)
        slope[[0, -1]] = 1.0 / self.size, -1.0 / self.size
        return slope, 1.0

    @cached_property
    def _strata(self) -> tuple[Floats, float]:
        pairs = self.kept * self.kept[::-1]
        return np.divide(self.size, pairs, out=np.zeros(self.size + 1), where=pairs > 0), 1.0


# scipy.special.logsumexp differs from it in the last digit for one law in twenty
def _log_sum(values: Floats) -> float:
    peak = values.max()
    return float(peak + np.log(np.exp(values - peak).sum()))


@dataclass(frozen=True, eq=False)
class ExchangeableDesign:
    """d features of which a random set is removed: z_j = 1 if feature j is kept.

    ``limes.limit(design, form)`` explains a form over z. For narrow bandwidths β tends to a limit, and equals
    it where the law of s no longer varies in float64: a linear model has its own coefficients at any ν. With
    one feature β = f(1) - f(0) and the intercept is f(0), for texts and images alike.

    Parameters
    ----------
    counts
        The law of the number of removed features under w.

    Examples
    --------
    >>> from limes.designs import ExchangeableDesign
    >>> from limes.models import forms
    >>> import limes
    >>> design = ExchangeableDesign.word_deletions(6)
    >>> limes.limit(design, forms.PresenceProducts([([0], [], 2.0)])).coef.round(6) + 0.0
    array([2., 0., 0., 0., 0., 0.])
    """

    counts: Counts

    @classmethod
    def word_deletions(cls, d: int, bandwidth: float = BANDWIDTH) -> ExchangeableDesign:
        """LIME's design for a text of d distinct words: s uniform on 1..d.

        For d = 1 the word would be deleted in every row. ``lime`` always keeps the original text as one of
        its N rows, and for any N its least squares give β = f(1) - f(0). So does the limit: s = 0 has a
        vanishing share of the law, 1e-30.

        Parameters
        ----------
        d
            Number of words, >= 1.
        bandwidth
            ν > 0 in the unit of the paper, infinity allowed; ``lime`` calls 0.25 a kernel width of 25.

        Raises
        ------
        InputError
            If d is no whole number >= 1, or the bandwidth is not positive.

        References
        ----------
        Mardaoui & Garreau 2021, section 2.2 and eq. 4.
        """
        _check_size(d)
        prior = np.zeros(d + 1)
        prior[0] = _SHARE_OF_THE_ORIGINAL if d == 1 else -np.inf
        return cls(Counts.tilted(prior, check_bandwidth(bandwidth)))

    @classmethod
    def superpixel_switches(cls, d: int, bandwidth: float = BANDWIDTH) -> ExchangeableDesign:
        """LIME's design for an image of d superpixels: s ~ Binomial(d, ½).

        See :meth:`word_deletions` for ``d``, ``bandwidth`` and errors.
        """
        _check_size(d)
        prior = log_binomial(np.full(d + 1, float(d)), np.arange(d + 1.0))
        return cls(Counts.tilted(prior, check_bandwidth(bandwidth)))

    def check_size(self, size: int) -> None:
        """Raise InputError if ``size``, a form's number of words, differs from the design's."""
        if self.size != size:
            raise InputError(f"the design has {self.size} words, the form has {size}")

    @property
    def size(self) -> int:
        """Number of features d."""
        return self.counts.size

    @cached_property
    def units(self) -> Floats:
        """Ones (d,), as features are 0 or 1; see :class:`ProductDesign`."""
        return np.ones(self.size)

    def in_units(self) -> ExchangeableDesign:
        """Return the design itself."""
        return self

    @cached_property
    def inclusion(self) -> Floats:
        """α_j = E_w z_j, (d,): all alike."""
        return np.full(self.size, self.counts.inclusion)

    @cached_property
    def variance(self) -> Floats:
        """Var_w z_j, (d,): the diagonal of the centred Σ."""
        return np.full(self.size, self.counts.inclusion * self.counts.exclusion)

    @cached_property
    def at_instance(self) -> Floats:
        """z(ξ), (d,): nothing is removed."""
        return np.ones(self.size)

    @cached_property
    def departure(self) -> Floats:
        """z(ξ) - α, (d,)."""
        return np.full(self.size, self.counts.exclusion)

    @cached_property
    def log_weight(self) -> Floats:
        """Log E[π] before tilting, ()."""
        return np.array(self.counts.log_weight)

    def a(self, k: int, r: int) -> float:
        """a_{k,r} = P_w(``k`` given features kept, ``r`` others removed); a(k, 0) is the paper's α_k / α₀.

        References
        ----------
        Mardaoui & Garreau 2021, Proposition 1.
        """
        d, s = self.size, np.arange(self.size + 1.0)
        chosen = log_binomial(np.full(d + 1, float(d - k - r)), s - r)
        return float(np.exp(self.counts.log_law + chosen - log_binomial(np.full(d + 1, float(d)), s)).sum())

    def spectral(self, function: Callable[[Floats], Floats], values: Floats) -> Floats:
        """g(Σ) · values for a function g of the eigenvalues of the centred Σ; values (d, ...).

        Raises
        ------
        InputError
            If g differs between features.
        """
        return _spread(values, *self._of_eigenvalues(function))

    def largest(self, function: Callable[[Floats], Floats]) -> Floats:
        """The larger g(eigenvalue), (d,): every feature lies in both eigenspaces."""
        return np.full(self.size, max(self._of_eigenvalues(function)))

    def _of_eigenvalues(self, function: Callable[[Floats], Floats]) -> tuple[float, float]:
        """The function's values across and along (1, ..., 1)."""
        across, along = (
            function(np.array([v])) for v in (self.counts.within_variance, self.counts.between_variance)
        )
        if across.size != 1:
            raise InputError("all features of an exchangeable design need the same penalty: pass one number")
        return float(across[0]), float(along[0])

    def solve(self, gamma: Floats) -> Floats:
        """β = Σ⁻¹Γ for centred Γ_j = Cov_w(z_j, f), (d, ...)."""
        across, along = self._eigenvalues
        return _spread(gamma, _reciprocal(across), _reciprocal(along))

    def gamma(self, coef: Floats) -> Floats:
        """Γ = Σβ, the inverse of ``solve``; (d, ...)."""
        return _spread(coef, *self._eigenvalues)

    @cached_property
    def _eigenvalues(self) -> tuple[float, float]:
        """Across and along (1, ..., 1); none so small that Γ would lose the digits of β."""
        counts = self.counts
        across = max(counts.within_variance, _LEAST_VARIANCE) if counts.within.any() else 0.0
        least = max(_LEAST_VARIANCE, _LEAST_SHARE * across)
        along = max(counts.between_variance, least) if counts.between.any() else 0.0
        return across, along

    def sample(self, points: int, stream: np.random.SeedSequence) -> tuple[Floats, Floats]:
        """Draw one replicate of rows of w, all of the same weight: x and h, both z, (``points``, d).

        ``stream`` is the seed.

        Each row has the law w exactly; together they are spread more evenly than independent rows.
        """
        z, _ = self.subsets(points, stream)
        return z, z

    def subsets(self, points: int, stream: np.random.SeedSequence) -> tuple[Floats, Ints]:
        """Draw one replicate of z (``points``, d) from a ``stream``, and each row's group.

        Rows of a group share an order of the features, and depend on each other.
        """
        return _low_variance_subsets(self.counts.law, points, np.random.default_rng(stream))

    def sampler(self, streams: Sequence[np.random.SeedSequence]) -> SubsetRows:
        """Return sequences of replicates of rows of w, all of the same weight, one of each of ``streams``."""
        return SubsetRows(self, streams)

    @classmethod
    def between(cls, designs: Sequence[ExchangeableDesign]) -> ExchangeableDesign:
        """Return a design whose law is the mean of those of several: a sample of it serves all of them.

        Parameters
        ----------
        designs : designs of one size
        """
        with np.errstate(divide="ignore"):
            return cls(Counts(np.log(np.mean([design.counts.law for design in designs], axis=0)), 0.0))

    def weights(self, design: ExchangeableDesign, z: Floats) -> Floats:
        """How much likelier rows are under another design, (n,): by how many features are removed.

        Parameters
        ----------
        design : the other design
        z : (n, d)
        """
        law = self.counts.law
        ratio = np.divide(design.counts.law, law, out=np.zeros_like(law), where=law > 0)
        return np.asarray(ratio[self.size - z.sum(axis=1).astype(np.int64)])

    def states(self, most: int) -> tuple[Floats, Floats, Floats] | None:
        """Every z (2^d, d), its probability (2^d,), and W (d, 2^d) with β = W f; None if more than ``most``.

        With r = d - s features kept, W_jz = (between_s + within_s (z_j - r/d)) / C(d, s): probabilities of
        narrow laws underflow, these weights do not.
        """
        if self.size > min(LARGEST_ENUMERATION, np.log2(most)):
            return None
        z, _ = self.enumerate()
        return z, *self.of_states(z)

    def of_states(self, z: Floats) -> tuple[Floats, Floats]:
        """The same of some rows: their probabilities (m,), and the columns of W, (d, m).

        Parameters
        ----------
        z : (m, d)
        """
        kept = z.sum(axis=1)
        removed = self.size - kept.astype(np.int64)
        log_sets = log_binomial(np.full(len(z), float(self.size)), kept)
        within = self.counts.within[removed] * np.exp(-log_sets)
        between = self.counts.between[removed] * np.exp(-log_sets)
        probability = np.exp(self.counts.log_law[removed] - log_sets)
        return probability, between + within * (z.T - kept / self.size)

    def enumerate(self) -> tuple[Floats, Floats]:
        """Every z (2^d, d), and the log of its probability under w (2^d,).

        Raises
        ------
        InputError
            If d > 20.
        """
        if self.size > LARGEST_ENUMERATION:
            raise InputError(
                f"{self.size} features have 2^{self.size} subsets; at most {LARGEST_ENUMERATION} features "
                "can be enumerated: sample them instead"
            )
        z = ((np.arange(2**self.size)[:, None] >> np.arange(self.size)) & 1).astype(np.float64)
        removed = np.arange(self.size + 1.0)
        per_subset = self.counts.log_law - log_binomial(np.full(removed.size, float(self.size)), removed)
        return z, per_subset[self.size - z.sum(axis=1).astype(np.int64)]


class SubsetRows:
    """Endless sequences of replicates of an exchangeable design, one a stream."""

    def __init__(self, design: ExchangeableDesign, streams: Sequence[np.random.SeedSequence]) -> None:
        self._design = design
        self._streams = streams

    def draw(self, rows: int) -> tuple[Floats, Floats, Ints]:
        """The next rows z of every sequence, (sequences · rows, d) twice, and the group of each row."""
        replicates = [self._design.subsets(rows, stream.spawn(1)[0]) for stream in self._streams]
        z = np.concatenate([subsets for subsets, _ in replicates])
        # no sequence has more groups than rows
        return z, z, np.concatenate([i * rows + group for i, (_, group) in enumerate(replicates)])


def _low_variance_subsets(law: Floats, points: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Kept sets z (points, d) for the law (d + 1,) of the number removed, and each row's order."""
    d = law.size - 1
    removed = _stratified_counts(law, points, rng)
    orders = -(-points // _rows_of_an_order(law))
    order, start = _assigned_orders(removed, orders, d)
    shuffled = rng.permutation(points)
    order = order[shuffled]
    # small integers: the comparisons below are bound by memory
    number = np.int16 if 2 * d <= np.iinfo(np.int16).max else np.int32
    removed, start = removed[shuffled, None].astype(number), start[shuffled, None].astype(number)
    place = rng.permuted(np.tile(np.arange(d, dtype=number), (orders, 1)), axis=1)[order]
    # the stretch from start, and its part beyond the end of the circle
    end = start + removed
    in_stretch = ((place >= start) & (place < end)) | (place < end - d)
    return (~in_stretch).astype(np.float64), order


def _stratified_counts(law: Floats, points: int, rng: np.random.Generator) -> Ints:
    """Draw ascending sizes (points,): the inverse distribution function at (i + u) / points."""
    levels = (np.arange(points) + rng.random()) / points
    cumulated = np.cumsum(law)
    # rounding must not exceed the last size that has a probability
    last = int(np.flatnonzero(law)[-1])
    return np.minimum(np.searchsorted(cumulated / cumulated[-1], levels, side="right"), last)


def _rows_of_an_order(law: Floats) -> int:
    """Number of rows that together remove every feature about once."""
    d = law.size - 1
    mean = float(law @ np.arange(d + 1))
    rows = d / max(mean, 1.0 / d)
    return int(np.clip(np.rint(rows), 2, _MOST_ROWS_OF_AN_ORDER))


def _assigned_orders(removed: Ints, orders: int, d: int) -> tuple[Ints, Ints]:
    """Assign rows of ascending sizes to orders, back and forth: each row's order and its set's start."""
    row = np.arange(removed.size)
    turn, place = np.divmod(row, orders)
    order = np.where(turn % 2 == 0, place, orders - 1 - place)
    start, used = np.zeros_like(removed), np.zeros(orders, dtype=removed.dtype)
    for now in range(int(turn[-1]) + 1):
        rows = turn == now
        start[rows] = used[order[rows]]
        used[order[rows]] = (used[order[rows]] + removed[rows]) % d
    return order, start


def _spread(values: Floats, across: float, along: float) -> Floats:
    """(across · (I - J/d) + along · J/d) · values."""
    mean = values.mean(axis=0, keepdims=True)
    return np.asarray(across * (values - mean) + along * mean)


def _reciprocal(eigenvalue: float) -> float:
    return 1.0 / eigenvalue if eigenvalue > 0 else 0.0


def _check_size(d: object) -> None:
    if not is_count(d):
        raise InputError(f"d, the number of words or superpixels, must be a whole number >= 1, got {d!r}")
