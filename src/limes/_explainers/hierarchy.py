r"""Accounts of an input at two levels, from few calls: sentences and their words, coarse and fine segments.

Contributions are Shapley values of the game v(S) = f(S shown, all else hidden) of d *units*. With r units
shown, s = d - r hidden, and sets that are uniform given their size (``designs/_exchangeable.py``),

    φ_j = mean + Σ_s within_s E[(z_j - r/d) f | s],    within_s = d / (r s),    Σ_j φ_j = f(all) - f(none).

Sets have sizes of a law q, a quarter of it ∝ 1 / (r s), where all have the same weight below, the rest even,
or, of words, which are many, ∝ (r s)²: there sets say most about a sum. They are independent: of a sum a set
and its complement say the same. A readable model g of f, fitted to three quarters of the sets, has exact
contributions γ_j, and the fourth quarter estimates the rest without bias; of all quarters in turn

    ρ_j = (1/n) Σ_i within_s / q_s (z_ij - r_i/d) (f_i - g_i),           with variance σ_j².

g is a ridge regression of f, or of its log odds (a row counts by how much f depends on these), whichever
leaves less, on how much is shown of each *node*: of a word; of a rectangle, and of all that contain it. Where
units are about as many as calls, ρ is mostly noise, and γ alone is nearer to φ than γ + ρ. So

    φ_j ≈ γ_j + λ_j ρ_j,      λ_j = τ² / (τ² + σ_j²),      τ² = E (ρ_j² - σ_j²),

(Stein 1956, Efron & Morris 1973). τ² is such that the mean of ρ_j² / (τ² + σ_j²) is 1 (Paule & Mandel 1982),
and 0 where chance explains ρ; for it each quarter has its own ρ, which does not depend on its g. The error is
at most λ_j σ_j + (1 - λ_j) τ. There τ² is estimated among units of like size, and its own error is added:
intervals cover among units that look alike by the answers, not for one that is known to be large.

Groups of units have sums of contributions, with errors of the same kind, from sums of ρ. A word that stands
in several sentences is shared by these, to each place an equal part. What all together miss f(all) - f(none)
by is shared by the units: units add up to groups, and groups to f(all) - f(none).

Of an image the units are chosen: rectangles, of which those that matter by the answers so far are halved, at
each of a few looks. A probability is near 0 unless nearly all is shown, so that its logarithm says where to
halve too. All answers train g; ρ and σ come from the sets that are drawn after the last look, most of them of
sizes at which answers differ: Var ρ_j is, but for what g explains, Σ_s within_s² r s Var(f | s) / (d² q_s)
over their number, least where q_s ∝ sd(f | s) / √(r s) (Neyman 1934).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from limes._arrays import Floats, Ints, Objects, are_probabilities, r_squared
from limes._expectations.linked_words import LinkedWordsExpectation
from limes._expectations.moments import REFUSED
from limes._explanation.attribution import Contributions
from limes._explanation.view import SHAPLEY
from limes._sampling.controls.control import evenly_spread
from limes._sampling.least_squares import Tolerance
from limes._shapley.coalitions import exact_account
from limes._shapley.exact import RowContributions
from limes.designs._exchangeable import Coalitions, ExchangeableDesign
from limes.exceptions import InputError
from limes.models._identity import Predict
from limes.models.forms._base import Linear
from limes.models.forms._linked import Linked

# Parts of the sets: g is fitted without each in turn
_PARTS = 4
# Share of the sets whose sizes have KernelSHAP's law; steps of the search for τ²
_FLAT, _BISECTIONS = 0.25, 40
# Calls without which errors would say little: 64, with those that check whether the model is a function
FEWEST = 56
# Units among which τ² is estimated: of the largest, twice as many of each next size; the fewest that are
# shrunk at all
_ALIKE, _FEWEST_SHRUNK = 16, 8
# Probabilities nearer to 0 or 1 are alike; dp is taken to be larger by this
_NEAREST, _LEAST_SLOPE = 1e-6, 0.02
# Penalties of the ridge, of nodes between 0 and 1, and the most rows that it is fitted to
_PENALTIES = np.geomspace(1e-4, 1e3, 29)
_MOST_FITTED = 2048
# Sets from which the R² of a read form follows
_SIMULATED = 4096
# Features of which every subset is asked about, where the budget allows
_ENUMERATED = 12


class Partition(Protocol):
    """The units of an input, which consist of its m pieces."""

    @property
    def of_pieces(self) -> Ints:
        """The unit of each piece, 0 to d - 1, (m,)."""

    @property
    def shares(self) -> Floats:
        """How much of each unit is in each group, (d, g), 1 in all together."""

    @property
    def nodes(self) -> Floats:
        """How much of each node is in each unit, (d, p), 1 in all together."""

    @property
    def looks(self) -> int:
        """How often units are refined."""

    @property
    def power(self) -> int:
        """Sizes of most sets are ∝ (r s) to this power."""

    def refined(self, sizes: Floats, count: int) -> Self:
        """At most ``count`` units; those of the largest ``sizes`` (d,) are split."""


@dataclass(frozen=True, eq=False)
class Words:
    """The words of a text, in sentences."""

    places: Floats  # how often each word is in each sentence, (d, g)
    looks, power = 0, 2

    @classmethod
    def of(cls, word: Ints, sentence: Ints) -> Words:
        """Words by the number of the word, 0 to d - 1, and of the sentence at each place."""
        return cls(_members(word).T @ _members(sentence))

    @property
    def of_pieces(self) -> Ints:
        return np.arange(len(self.places))

    @property
    def shares(self) -> Floats:
        return np.asarray(self.places / self.places.sum(axis=1, keepdims=True))

    @property
    def nodes(self) -> Floats:
        # of a word, and of each of its places: all are shown or hidden together, so that one column has the
        # squares of them all
        return np.diag(np.sqrt(1.0 + self.places.sum(axis=1)))

    def refined(self, sizes: Floats, count: int) -> Self:  # noqa: ARG002 - all words are units
        return self


# Halvings down to the smallest rectangles, 32 x 32, and to the groups, 4 x 4
_FINEST, _COARSE = 10, 4
# The share of the calls that looks have, and units for the root of the calls: 49 of 300, 91 of 1,000. More
# are too small to matter alone, and too many to distinguish
_LOOKING, _UNITS_A_ROOT = 0.5, 2.9
# The share of sets whose sizes do not depend on the answers, and the width of the kernel, as a share of d,
# under which answers to sets of like sizes are compared
_EVEN_SHARE, _LIKE_SIZES = 0.3, 0.125


@dataclass(frozen=True, eq=False)
class Rectangles:
    """Rectangles of an image, halved across and down in turn."""

    places: Ints  # of the smallest rectangles, (m,), as ``rectangles`` numbers them
    pixels: Ints  # of each of these, (m,)
    depths: Ints  # how often the image was halved down to the unit of each, (m,)
    looks, power = 4, 0

    @classmethod
    def of(cls, places: Ints, pixels: Ints) -> Rectangles:
        return cls(places, pixels, np.full(places.size, _COARSE))

    @cached_property
    def of_pieces(self) -> Ints:
        return np.unique(self._at(self.depths), return_inverse=True)[1]

    @property
    def groups(self) -> Ints:
        """The group of each piece, (m,)."""
        return np.unique(self._at(_COARSE), return_inverse=True)[1]

    @property
    def shares(self) -> Floats:
        return _members(self.groups[self._firsts])

    @property
    def nodes(self) -> Floats:
        areas = np.bincount(self.of_pieces, self.pixels)
        nodes = []
        for depth in range(int(self.depths.max()) + 1):
            # a unit that is larger than the nodes of this depth is no part of them
            its = np.where(self.depths >= depth, self._at(depth), -1)[self._firsts]
            names = np.unique(its[its >= 0])
            part = (its[:, None] == names) * areas[:, None]
            nodes.append(part / part.sum(axis=0))
        return np.concatenate(nodes, axis=1)

    def refined(self, sizes: Floats, count: int) -> Rectangles:
        """Halve the largest, of which each half is taken to have half the size."""
        depths, firsts = self.depths.copy(), self._firsts
        total = sizes.size
        heap = [(-float(size), int(first)) for size, first in zip(sizes, firsts, strict=True)]
        heapify(heap)
        while total < count and heap:
            size, first = heappop(heap)
            depth = int(depths[first])
            if depth == _FINEST:
                continue
            its = np.flatnonzero((self._at(depth) == self._at(depth)[first]) & (depths == depth))
            depths[its] += 1
            starts = np.unique(self._at(depth + 1)[its], return_index=True)[1]
            total += starts.size - 1
            for start in starts.tolist():
                heappush(heap, (size / 2, int(its[start])))
        return replace(self, depths=depths)

    def _at(self, depth: Ints | int) -> Ints:
        """The first place of what contains each piece after a number of halvings."""
        rest = _FINEST - depth
        return self.places >> rest << rest

    @cached_property
    def _firsts(self) -> Ints:
        """The first piece of each unit."""
        return np.unique(self.of_pieces, return_index=True)[1]


def rectangles(shape: tuple[int, int], depth: int = _FINEST) -> Ints:
    """Number (H, W) the rectangles into which an image is halved ``depth`` times, across first.

    The digits of a number say in which half a pixel is, the first one in the upper or lower half.
    """
    side = 1 << _FINEST // 2
    down, across = (np.arange(n) * side // n for n in shape)
    numbers = np.zeros(shape, dtype=np.int64)
    for digit in range(_FINEST // 2 - 1, -1, -1):
        numbers = 4 * numbers + (2 * (down >> digit & 1)[:, None] + (across >> digit & 1))
    return np.asarray(numbers >> (_FINEST - depth))


def coarse_rectangles(shape: tuple[int, int]) -> Ints:
    """The groups (H, W), numbered from 0."""
    numbers = rectangles(shape, _COARSE)
    return np.unique(numbers, return_inverse=True)[1].reshape(shape)


def check_hierarchy(hierarchy: Any, options: Mapping[str, Any], **defaults: tuple[Any, Any]) -> bool:
    """Refuse options that are not used with an account at two levels: ``defaults`` are (value, default)."""
    if not isinstance(hierarchy, bool):
        raise InputError(f"hierarchy must be True or False, got {hierarchy!r}")
    defaults |= {"control": (options["control"], "auto"), "tolerance": (options["tolerance"], None)}
    for name, (value, default) in defaults.items():
        # a user's segments are arrays, which have no truth value
        if hierarchy and not (value is default or (type(value) is type(default) and value == default)):
            raise InputError(f"{name}= is not used with hierarchy=True: leave it out")
    return hierarchy


class LevelAccount(NamedTuple):
    """Contributions of d units, in g groups, to k outputs, with standard errors."""

    partition: Partition
    base: Floats  # f(none), (k,)
    values: Floats  # (d, k)
    errors: Floats
    of_groups: Floats  # (g, k)
    group_errors: Floats
    fidelity: Floats  # R² of base + Σ_j φ_j z_j, where sets have Shapley's weights, (k,)
    fidelity_errors: Floats
    is_exact: bool


def exact_levels(
    units: Partition, account: RowContributions, predict: Predict, rng: np.random.Generator
) -> LevelAccount:
    """The account of all pieces of an input, whose contributions are exact; R² by sets of ``predict``."""
    base, values, d = account.base[0], account.values[0], len(units.shares)
    sums, fidelity, error = units.shares.T @ values, np.ones(base.size), np.zeros(base.size)
    if d > 1:
        z, weights = _sets(rng, _SIMULATED, d, units.power)
        fidelity, error = _fidelity(predict(z).reshape(len(z), -1), base + z @ values, weights)
    zero = np.zeros_like
    return LevelAccount(units, base, values, zero(values), sums, zero(sums), fidelity, error, is_exact=True)


class ReadModel(Protocol):
    """A model bound to an input."""

    @property
    def exact(self) -> Any:
        """The expectation of the form that it was read as, None if it was not."""

    @property
    def read_predict(self) -> Predict | None:
        """Its answers without the model."""

    @property
    def is_function(self) -> bool:
        """Whether it answers alike to the same input."""


def levels_of(
    model: ReadModel, ask: Predict, units: Partition, whole: Floats, calls: int, rng: np.random.Generator
) -> LevelAccount:
    """The account by the form that a model was read as, if all pieces are units; else by ``account_of``."""
    if model.exact is not None and model.read_predict is not None and not units.looks:
        try:
            account = exact_account(model.exact, model.read_predict, len(units.shares))
        except REFUSED:  # sampled from the form, without a call
            pass
        else:
            return exact_levels(units, account, model.read_predict, rng)
    return account_of(ask, units, whole, calls, rng, is_function=model.is_function)


def account_of(
    ask: Predict,
    units: Partition,
    whole: Floats,
    calls: int,
    rng: np.random.Generator,
    *,
    is_function: bool,
) -> LevelAccount:
    """Contributions by ``calls`` answers (n, k) of ``ask`` to pieces (n, m); ``whole`` (k,) is one of them.

    ``ask`` knows that one.

    InputError where calls are too few.
    """
    pieces, d = units.of_pieces.size, int(units.of_pieces.max()) + 1
    if pieces == 1 or (is_function and pieces <= _ENUMERATED and 1 << pieces <= calls):
        return _enumerated(ask, units.refined(np.ones(d), pieces))
    if calls < FEWEST:
        raise InputError(
            f"max_calls leaves {calls:,} calls for contributions at two levels, which need {FEWEST}: raise "
            f"it by {FEWEST - calls}"
        )
    none = ask(np.zeros((1, pieces)))[0]
    shown, f = np.stack([np.zeros(pieces), np.ones(pieces)]), np.stack([none, whole])
    calls -= 2
    each, most = int(calls * _LOOKING) // max(units.looks, 1), max(d, int(_UNITS_A_ROOT * np.sqrt(calls)))
    for i in range(units.looks):
        z = _sets(rng, each, d, units.power)[0][:, units.of_pieces]
        shown, f, calls = np.concatenate([shown, z]), np.concatenate([f, ask(z)]), calls - each
        slopes, _ = _ridge(_unit_shares(shown, units) @ units.nodes, _steering(f))
        units = units.refined(_sizes(units.nodes @ slopes), d + (most - d) // (units.looks - i))
        d = len(units.shares)
    earlier = _unit_shares(shown, units)
    spread = _spread_of_sizes(earlier.mean(axis=1), f, d) if units.looks else None
    z, weights = _sets(rng, calls, d, units.power, spread)
    return _account(units, earlier, f, z, ask(z[:, units.of_pieces]), weights)


def _steering(f: Floats) -> Floats:
    """Answers (n, k) by which units are halved: of probabilities with their logarithms."""
    if not are_probabilities(f, add_up=False):
        return f
    return np.concatenate([f, np.log(np.maximum(f, _NEAREST))], axis=1)


def _sizes(coef: Floats) -> Floats:
    """The largest of each unit's shares of what all units have (d, k), whatever the scale of an output."""
    sizes = np.abs(coef)
    total = sizes.sum(axis=0)
    return np.asarray(np.divide(sizes, total, out=np.zeros_like(sizes), where=total > 0).max(axis=1))


def _spread_of_sizes(shares: Floats, f: Floats, d: int) -> Floats:
    """Deviation (d - 1,) of f where 1 to d - 1 units are hidden; of several outputs the mean of shares.

    Answers (n, k) are to sets of which ``shares`` (n,) are shown.
    """
    size = 1.0 - np.arange(1.0, d) / d
    near = np.exp(-(((shares - size[:, None]) / _LIKE_SIZES) ** 2) / 2)
    near /= near.sum(axis=1, keepdims=True)
    f = f - f.mean(axis=0)
    deviations = np.sqrt(np.maximum(near @ f**2 - (near @ f) ** 2, 0.0))
    total = deviations.sum(axis=0)
    its = np.divide(deviations, total, out=np.zeros_like(deviations), where=total > 0).mean(axis=1)
    return its if its.any() else np.ones(d - 1)


def _enumerated(ask: Predict, units: Partition) -> LevelAccount:
    d = len(units.shares)
    states = ExchangeableDesign(Coalitions.of(d)).states(1 << d)
    assert states is not None  # noqa: S101 - there are few
    z, _, weights = states
    f = ask(z[:, units.of_pieces])
    values = weights @ f
    sums = units.shares.T @ values
    fidelity = np.ones(f.shape[1])
    inside = (z.sum(axis=1) > 0) & (z.sum(axis=1) < d)
    if inside.any():
        kept = z[inside].sum(axis=1)
        of_size = np.bincount(kept.astype(np.int64))[kept.astype(np.int64)]
        fidelity, _ = _fidelity(f[inside], f[0] + z[inside] @ values, 1.0 / (kept * (d - kept) * of_size))
    zero = np.zeros_like(values)
    return LevelAccount(
        units, f[0], values, zero, sums, np.zeros_like(sums), fidelity, np.zeros_like(fidelity), True
    )


# -- sets ----------------------------------------------------------------------------------------------------


def _sets(
    rng: np.random.Generator, count: int, d: int, power: int, spread: Floats | None = None
) -> tuple[Floats, Floats]:
    """Sets z (n, d), and within_s / q_s of each, (n,).

    ``spread`` (d - 1,) is how much answers to sets of each size differ, where this is known.
    """
    hidden = np.arange(1.0, d)
    pairs = hidden * (d - hidden)
    most, few = pairs**power, 1.0 / pairs
    law = (1.0 - _FLAT) * most / most.sum() + _FLAT * few / few.sum()
    if spread is not None:
        best = spread / np.sqrt(pairs)
        law = _EVEN_SHARE * law + (1.0 - _EVEN_SHARE) * best / best.sum()
    # sizes are spread evenly over their law
    levels = (np.arange(count) + rng.random()) / count
    size = rng.permutation(np.minimum(np.searchsorted(np.cumsum(law), levels, side="right"), d - 2))
    z = rng.permuted(np.tile(np.arange(d), (count, 1)), axis=1) > size[:, None]
    return z.astype(np.float64), (d / (pairs * law))[size]


def _members(groups: Ints) -> Floats:
    return np.eye(int(groups.max()) + 1)[groups]


def _unit_shares(shown: Floats, units: Partition) -> Floats:
    """How much of each unit is shown, (n, d), of pieces (n, m)."""
    return (shown @ _members(units.of_pieces)) / np.bincount(units.of_pieces)


# -- estimates -----------------------------------------------------------------------------------------------


def _account(
    units: Partition, earlier: Floats, earlier_f: Floats, z: Floats, f: Floats, weights: Floats
) -> LevelAccount:
    """The account by fresh sets z (n, d) with answers f (n, k), and by earlier sets (m, d).

    The first two earlier rows are nothing and all.
    """
    none, whole = earlier_f[:2]
    gamma, rest = _best_control(units.nodes, earlier, earlier_f, z, f)
    influence = weights[:, None] * (z - z.mean(axis=1, keepdims=True))
    rho, variance = _mean_and_variance(influence, rest)
    share = _shares_of_rest(*_of_parts(influence, rest), variance)
    values = gamma + share * rho
    values += (whole - none - values.sum(axis=0)) / len(values)
    sums = units.shares.T @ values
    errors, sum_errors = np.empty(values.shape), np.empty(sums.shape)
    for k in range(none.size):
        for numbers, its, parts in ((values, errors, np.eye(len(values))), (sums, sum_errors, units.shares)):
            its[:, k] = _errors(numbers[:, k], parts, influence, rest[:, k : k + 1], share[:, k : k + 1])
    # within_s / q_s ∝ 1 / (r s q_s): Shapley's weights of sets over the law by which they were drawn
    fidelity, fidelity_errors = _fidelity(f, none + z @ values, weights)
    return LevelAccount(
        units, none, values, errors, sums, sum_errors, fidelity, fidelity_errors, is_exact=False
    )


def _best_control(
    nodes: Floats, earlier: Floats, earlier_f: Floats, z: Floats, f: Floats
) -> tuple[Floats, Floats]:
    """γ (d, k), and what g leaves of the answers (n, k), of the link that leaves least of each output."""
    gamma, rest = _control(nodes, earlier, earlier_f, z, f, is_logistic=False)
    if not are_probabilities(np.concatenate([earlier_f, f]), add_up=False):
        return gamma, rest
    try:
        other, its = _control(nodes, earlier, earlier_f, z, f, is_logistic=True)
    except REFUSED:  # contributions to these probabilities have no exact sum
        return gamma, rest
    better = (its**2).sum(axis=0) < (rest**2).sum(axis=0)
    return np.where(better, other, gamma), np.where(better, its, rest)


def _control(
    nodes: Floats, earlier: Floats, earlier_f: Floats, z: Floats, f: Floats, *, is_logistic: bool
) -> tuple[Floats, Floats]:
    from scipy.special import expit

    ridge = _logistic_ridge if is_logistic else _ridge
    part, d = np.arange(len(z)) % _PARTS, z.shape[1]
    gamma, rest = np.zeros((d, f.shape[1])), np.empty(f.shape)
    for k in range(_PARTS):
        out = part == k
        rows, answers = np.concatenate([earlier, z[~out]]), np.concatenate([earlier_f, f[~out]])
        slopes, level = ridge(rows @ nodes, answers)
        coef = nodes @ slopes
        margin = level + z[out] @ coef
        rest[out] = f[out] - (expit(margin) if is_logistic else margin)
        if is_logistic:
            form = Linked(Linear(coef, level), "logistic")
            coef = exact_account(LinkedWordsExpectation(form), form.predict, d).values[0]
        gamma += coef / _PARTS
    return gamma, rest


def _ridge(x: Floats, y: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """Coefficients (p, k) and levels (k,) of ridge regressions, by the penalty of the largest likelihood.

    ``weights`` (n,) are those of rows, 1 by default.
    """
    some = evenly_spread(len(x), _MOST_FITTED)
    x, y = x[some], y[some]
    n, weights = len(x), np.ones(len(x)) if weights is None else weights[some]
    center, level = (np.average(its, axis=0, weights=weights) for its in (x, y))
    root = np.sqrt(weights)[:, None]
    left, sizes, right = np.linalg.svd(root * (x - center), full_matrices=False)
    squares, target = sizes**2, left.T @ (root * (y - level))
    total = np.maximum((weights[:, None] * (y - level) ** 2).sum(axis=0), np.finfo(np.float64).tiny)
    rest = np.maximum(total - (target**2).sum(axis=0), 0.0)
    scores = []
    for penalty in _PENALTIES:
        fit = (target**2 / (squares + penalty)[:, None]).sum(axis=0) + rest / penalty
        logs = np.log(squares + penalty).sum() + (n - squares.size) * np.log(penalty)
        scores.append(n * np.log(np.maximum(fit, np.finfo(np.float64).tiny)) + logs)
    penalties = _PENALTIES[np.argmin(scores, axis=0)]
    coef = right.T @ (sizes[:, None] * target / (squares[:, None] + penalties))
    return coef, level - center @ coef


def _logistic_ridge(x: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Ridge regressions of log odds; a row has weight (dp)², dp = p (1 - p) the slope of p in log odds.

    Unweighted, faint probabilities would decide the fit. Weights are those of all outputs together.
    """
    from scipy.special import logit

    p = np.clip(p, _NEAREST, 1.0 - _NEAREST)
    slopes = p * (1.0 - p) + _LEAST_SLOPE
    weights = (slopes / slopes.max(axis=0)).mean(axis=1) ** 2
    return _ridge(x, np.asarray(logit(p)), weights / weights.max())


def _mean_and_variance(influence: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """The mean of influence (n, d) times rest (n, k), (d, k), and the variance of this mean."""
    n = len(rest)
    mean = influence.T @ rest / n
    return mean, np.maximum((influence**2).T @ rest**2 / n - mean**2, 0.0) / (n - 1)


def _of_parts(influence: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """The same of each part's sets, (parts, d, k): they do not depend on the g whose rest they estimate."""
    pairs = [_mean_and_variance(influence[i::_PARTS], rest[i::_PARTS]) for i in range(_PARTS)]
    means, variances = map(np.stack, zip(*pairs, strict=True))
    return means, variances


def _shares_of_rest(means: Floats, variances: Floats, variance: Floats) -> Floats:
    """λ_j (d, k), from estimates of each part (parts, d, k) and variances σ_j² (d, k) of all together."""
    if len(variance) < _FEWEST_SHRUNK:
        return np.ones(variance.shape)
    tiny = np.finfo(np.float64).tiny
    # two standard errors of the mean where the rest is noise alone
    most = 1.0 + 2.0 * np.sqrt(2.0 / (len(means) * len(variance)))
    low, high = np.zeros(variance.shape[1]), (means**2).sum(axis=(0, 1))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_more = (means**2 / np.maximum(middle + variances, tiny)).mean(axis=(0, 1)) > most
        low, high = np.where(is_more, middle, low), np.where(is_more, high, middle)
    return np.asarray(low / np.maximum(low + variance, tiny))


def _errors(values: Floats, parts: Floats, influence: Floats, rest: Floats, share: Floats) -> Floats:
    """Errors, (g,), of sums ``parts`` (d, g) of γ_j + λ_j ρ_j; rest (n, 1), share (d, 1)."""
    noise = np.sqrt(_mean_and_variance(influence @ (share * parts), rest)[1][:, 0])
    means, variances = (its[..., 0] for its in _of_parts(influence @ ((1.0 - share) * parts), rest))
    excess, squares = (means**2 - variances).mean(axis=0), (variances**2).mean(axis=0) / len(means)
    order, start, size, unseen = np.argsort(-np.abs(values), kind="stable"), 0, _ALIKE, np.empty(values.size)
    while start < values.size:
        stop = start + size if values.size - start >= 3 * size else values.size
        alike = order[start:stop]
        own_error = np.sqrt(2.0 * squares[alike].mean() / alike.size)
        unseen[alike] = np.sqrt(max(excess[alike].mean(), 0.0) + own_error)
        start, size = stop, 2 * size
    # both may have the same sign, as g and ρ come from the same sets
    return noise + unseen


def _fidelity(f: Floats, surrogate: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """R² (k,) of a surrogate's answers (n, k) at weighted rows, and its standard error."""
    weights = (weights / weights.sum())[:, None]
    centred = f - (weights * f).sum(axis=0)
    squares, left = centred**2, (f - surrogate) ** 2
    total, rest = (weights * squares).sum(axis=0), (weights * left).sum(axis=0)
    share = np.divide(rest, total, out=np.zeros_like(rest), where=total > 0)
    error = np.sqrt((weights**2 * (left - share * squares) ** 2).sum(axis=0))
    return r_squared(total - rest, total, np.abs(f).max(axis=0), error)


# -- the explanation -----------------------------------------------------------------------------------------

_MEANING = "contribution to the prediction when the {} is shown, the mean over all orders of showing"


class _Undiagnosed:
    def _diagnostic_context(self, explanation: Any, **_: Any) -> Any:  # noqa: ARG002 - as explainers have it
        raise InputError(
            "limes.diagnose examines LIME's coefficients, and these are contributions: explain without "
            "hierarchy=True"
        )


class NamedFeatures(Protocol):
    """What features of an input are called, and where they are."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def conditions(self) -> tuple[str, ...]: ...
    @property
    def data(self) -> Objects: ...
    @property
    def picture(self) -> Mapping[str, Any]: ...


def explanation_fields(
    account: LevelAccount,
    inputs: tuple[NamedFeatures, NamedFeatures],
    predictions: Floats,
    outputs: tuple[str, ...],
    feature: str,
    *,
    accuracy: Tolerance,
    exact: bool,
    calls: int,
    spread: float,
) -> dict[str, Any]:
    """Fields of an explanation of one input, whose coefficients are its contributions.

    They are those of the linear surrogate that KernelSHAP's weights of sets give. ``inputs`` have units and
    groups as features, ``predictions`` are (1,) or (1, k), ``feature`` is the word for a unit,
    and ``spread`` what answers to one input differ by.
    """
    fine, coarse = inputs

    def shaped(numbers: Floats) -> Floats:
        return numbers.reshape(1, *numbers.shape[: numbers.ndim - 1], *predictions.shape[1:])

    values, errors, base = shaped(account.values), shaped(account.errors), shaped(account.base)
    # two answers of a random model differ by √2 of the spread of one
    of_base = np.full(account.base.shape, spread / np.sqrt(2.0))
    unknown = np.full(values.shape, np.nan)
    return {
        "values": values,
        "standard_errors": errors,
        "intercepts": base,
        "predictions": predictions,
        "surrogate_predictions": base + values.sum(axis=1),
        "fidelity": shaped(account.fidelity),
        "fidelity_errors": shaped(account.fidelity_errors),
        "explainer": _Undiagnosed(),
        "method": "exact" if exact else "sampled",
        "controls": None if exact else ("ridge",),
        "calls": np.array([calls]),
        "row_converged": np.array([exact or accuracy.excess(account.values, account.errors) <= 1.0]),
        "output_names": outputs,
        "feature_names": fine.names,
        "conditions": (fine.conditions,),
        "data": fine.data[None],
        "account": Contributions(
            values=values,
            base_values=base,
            base_errors=shaped(of_base),
            standard_errors=errors,
            alone=unknown,
            last=unknown,
            calls=np.zeros(1, dtype=np.int64),
            row_converged=np.array(
                [exact or accuracy.with_base(account.values, account.errors, of_base) <= 1.0]
            ),
        ),
        "provenance": {
            **fine.picture,
            "meaning": _MEANING.format(feature),
            "weights": SHAPLEY,
            **({} if exact else {"tolerance": str(accuracy)}),
            "coarse": {
                "names": coarse.names,
                "conditions": coarse.conditions,
                "data": coarse.data.tolist(),
                "outputs": list(outputs),
                "shares": [
                    [[int(j), float(its[j])] for j in np.flatnonzero(its)]
                    for its in account.partition.shares.T
                ],
                "values": account.of_groups.tolist(),
                "standard_errors": account.group_errors.tolist(),
                "picture": dict(coarse.picture),
            },
        },
    }
