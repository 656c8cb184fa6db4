r"""Accounts of an input at two levels, from few calls: sentences and their words, coarse and fine segments.

Contributions are Shapley values of the game v(S) = f(S shown, all else hidden) of d *units*, by some sets of
these, which are uniform given their size (``designs/_exchangeable.py``): their law, the estimates, and the
errors of these and of their sums are in ``set_estimates.py``.

Groups of units have sums of contributions, with errors of the same kind, from sums of ρ, if no set shows or
hides a group as a whole, as of rectangles. Sentences have a share of the sets for themselves: they are the
players of a separate game, whose contributions Φ are estimated as those of units are, from sets of whole
sentences, or from all of these where they are few. Such sets train the g of words too; and a g of words that
did not see them is one of the models of sentences, because few sets of sentences are fitted exactly by models
that are wrong. Words then share what Φ has more than the sum of their φ, in proportion to their mean squares
φ² + error², so that a word that is known to add nothing has nothing of it. Where all sets of units are asked
about, and each is in one group, contributions are Owen's (1977), which add up to those of groups: means over
orders in which the units of a group stand together; of words in several sentences mean squares are those of
their effects, (f(S and j) - f(S))². All are the same but for what three or more units do together. A word
that stands in several sentences is shared by these, to each place an equal part; a set of sentences shows the
places in it, a set of words all places of a word. Units add up to groups, and groups to f(all) - f(none).

Of an image the units are chosen: rectangles, of which those that matter by the answers so far are halved, at
each of a few looks. A probability is near 0 unless nearly all is shown, so that its logarithm says where to
halve too. All answers train g; ρ and σ come from the sets that are drawn after the last look, most of them of
sizes at which answers differ: Var ρ_j is, but for what g explains, Σ_s within_s² r s Var(f | s) / (d² q_s)
over their number, least where q_s ∝ sd(f | s) / √(r s) (Neyman 1934).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from limes._arrays import Floats, Ints, Objects, are_probabilities, r_squared
from limes._expectations.moments import REFUSED
from limes._explainers.few_units import CompletedGame, have_few_sets, leading_sets
from limes._explainers.set_controls import Pair, model_beside, pairs_of_states
from limes._explainers.set_controls import ridge as _ridge
from limes._explainers.set_estimates import (
    LEAST_SETS,
    SETS_A_UNIT,
    EstimateOfSets,
    SetsOfUnits,
    drawn_sets,
)
from limes._explanation.attribution import Contributions
from limes._explanation.parts import TOGETHER
from limes._explanation.view import SHAPLEY
from limes._explanation.wording import CONFIDENCE
from limes._sampling.least_squares import Tolerance
from limes._shapley.coalitions import ends_of, exact_account, repetitions_of, with_noise
from limes._shapley.exact import RowContributions
from limes.designs._exchangeable import Coalitions, ExchangeableDesign
from limes.exceptions import InputError
from limes.models._identity import Predict

# Calls for sets of units and of groups, with none and all shown
_LEAST_CALLS = 6
# Singular value of the shares of units in groups without which sums of groups determine no units
_TOLD_APART = 0.1
# Sets of groups: the number a group, and at least this share of all sets, which is larger where sets are many
# more than units; all of them up to the last share
_SETS_A_GROUP, _LEAST_GROUPED, _ALL_GROUPED = 3, (0.2, 0.4), 1 / 2
# Sets that are drawn before errors are looked at for the first time
_FIRST_STAGE = 512
# Errors fall with the root of the number of sets, and at most as much faster where models learn: they are not
# looked at where they cannot be within a tolerance
_FASTER = 2.0
# Sets from which the R² of a read form follows
_SIMULATED = 4096
_TINY = np.finfo(np.float64).tiny
# Share of the largest answer that sums over all subsets round by
_ROUNDED = 1e-14
# Features of which every subset is asked about, where the budget allows
_ENUMERATED = 12
# Pairs that are reported
_REPORTED = 5


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
    def whole_groups(self) -> Ints | None:
        """The group of each piece, (m,), where sets may show or hide whole groups, which have their game."""

    @property
    def looks(self) -> int:
        """How often units are refined."""

    @property
    def power(self) -> int:
        """Sizes of most sets are ∝ (r s) to this power."""

    def refined(self, sizes: Floats, count: int) -> Self:
        """At most ``count`` units; those of the largest ``sizes`` (d,) are split."""


@dataclass(frozen=True, eq=False)
class GroupedUnits:
    """Units at places of groups: the words of a text in its sentences, features in the parts of an input."""

    places: Floats  # how often each unit is in each group, (d, g)
    # the unit and the group of each place, (m,); None: a piece is a unit, all places together
    pieces: tuple[Ints, Ints] | None = None
    looks, power = 0, 2

    @classmethod
    def of(cls, unit: Ints, group: Ints) -> GroupedUnits:
        """The numbers of the unit, 0 to d - 1, and of the group at each place."""
        return cls(members(unit).T @ members(group), (unit, group))

    @property
    def of_pieces(self) -> Ints:
        return np.arange(len(self.places)) if self.pieces is None else self.pieces[0]

    @property
    def shares(self) -> Floats:
        return np.asarray(self.places / self.places.sum(axis=1, keepdims=True))

    @cached_property
    def whole_groups(self) -> Ints | None:
        words, groups = self.places.shape
        # sentences of the same words have no separate sums
        if not 1 < groups < words or np.linalg.matrix_rank(self.shares, tol=_TOLD_APART) < groups:
            return None
        if self.pieces is not None:
            return self.pieces[1]
        return self.places.argmax(axis=1) if ((self.places > 0).sum(axis=1) == 1).all() else None

    @property
    def nodes(self) -> Floats:
        # of a word, and of each of its places: all are shown or hidden together, so that one column has the
        # squares of them all
        words = np.diag(np.sqrt(1.0 + self.places.sum(axis=1)))
        if self.whole_groups is None:
            return words
        return np.concatenate([words, self.shares / np.sqrt(self.shares.sum(axis=0))], axis=1)

    def refined(self, sizes: Floats, count: int) -> Self:  # noqa: ARG002 - all words are units
        return self


# The share of the calls that looks have, and units for the root of the calls: 49 of 300, 91 of 1,000. More
# are too small to matter alone, and too many to distinguish
_LOOKING, _UNITS_A_ROOT = 0.5, 2.9
# The width of the kernel, as a share of d, under which answers to sets of like sizes are compared
_LIKE_SIZES = 0.125
# Smaller probabilities are alike
_FAINTEST = 1e-6


def check_hierarchy(hierarchy: Any, options: Mapping[str, Any], **defaults: tuple[Any, Any]) -> bool:
    """Refuse options that are not used with an account at two levels: ``defaults`` are (value, default)."""
    if not isinstance(hierarchy, bool):
        raise InputError(f"hierarchy must be True or False, got {hierarchy!r}")
    used = _used(options, defaults)
    if hierarchy and used:
        raise InputError(f"{used[0]}= is not used with hierarchy=True: leave it out")
    return hierarchy


def may_have_levels(options: Mapping[str, Any], **defaults: tuple[Any, Any]) -> bool:
    """Whether no option asks for coefficients, or for what accounts at two levels do not use."""
    return not _used(options, defaults) and options["contributions"] and options["method"] != "exact"


def _used(options: Mapping[str, Any], defaults: dict[str, tuple[Any, Any]]) -> list[str]:
    """Names of options that accounts at two levels do not use, and that have no default value."""
    defaults |= {"control": (options["control"], "auto"), "tolerance": (options["tolerance"], None)}
    return [
        name
        for name, (value, default) in defaults.items()
        # a user's segments are arrays, which have no truth value
        if not (value is default or (type(value) is type(default) and value == default))
    ]


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
    # the strongest of each output, where sets of units were asked about
    pairs: tuple[tuple[Pair, ...], ...] = ()

    def excess(self, accuracy: Tolerance) -> float:
        """The largest error of both levels in units of the tolerance."""
        levels = ((self.values, self.errors), (self.of_groups, self.group_errors))
        return max(float(accuracy.excess(values, errors)) for values, errors in levels)


def exact_levels(
    units: Partition, account: RowContributions, predict: Predict, rng: np.random.Generator
) -> LevelAccount:
    """The account of all pieces of an input, whose contributions are exact; R² by sets of ``predict``."""
    base, values, d = account.base[0], account.values[0], len(units.shares)
    sums, fidelity, error = units.shares.T @ values, np.ones(base.size), np.zeros(base.size)
    if d > 1:
        z, weights = drawn_sets(rng, _SIMULATED, d, units.power)
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
    model: ReadModel,
    ask: Predict,
    units: Partition,
    whole: Floats,
    calls: int,
    rng: np.random.Generator,
    accuracy: Tolerance,
    answered: int = 0,
) -> LevelAccount:
    """The account by the form that a model was read as, if all pieces are units; else by ``account_of``."""
    if model.exact is not None and model.read_predict is not None and not units.looks:
        try:
            account = exact_account(model.exact, model.read_predict, len(units.shares))
        except REFUSED:  # sampled from the form, without a call
            pass
        else:
            return exact_levels(units, account, model.read_predict, rng)
    return account_of(
        ask, units, whole, calls, rng, is_function=model.is_function, accuracy=accuracy, answered=answered
    )


def account_of(
    ask: Predict,
    units: Partition,
    whole: Floats,
    calls: int,
    rng: np.random.Generator,
    *,
    is_function: bool,
    accuracy: Tolerance | None = None,
    answered: int = 0,
) -> LevelAccount:
    """Contributions by ``calls`` answers (n, k) of ``ask`` to pieces (n, m); ``whole`` (k,) is one of them.

    ``ask`` knows that one, and n answers to other sets, ``answered`` before, which count where all are asked
    about. Fewer calls where errors are within an ``accuracy``. InputError where they are too few.
    """
    pieces, d = units.of_pieces.size, int(units.of_pieces.max()) + 1
    if (pieces if units.looks else d) <= _ENUMERATED:
        finest = units.refined(np.ones(d), pieces)
        if is_function and (len(finest.shares) == 1 or _states(finest) <= calls):
            return _enumerated(ask, finest)
    calls -= answered
    if calls < _LEAST_CALLS:
        raise InputError(
            f"max_calls leaves {calls:,} calls for contributions at two levels, which need {_LEAST_CALLS}: "
            f"raise it by {_LEAST_CALLS - calls}"
        )
    if is_function and not units.looks and have_few_sets(d, calls) and not _are_apart(units):
        return _completed(ask, units, calls, rng)
    # one answer of a random model says little of their mean
    times = 1 if is_function else repetitions_of(calls)
    nones, wholes = ends_of(ask, whole, pieces, (times, 0 if is_function else times))
    none, total = nones.mean(axis=0), wholes.mean(axis=0)
    if pieces == 1:
        return _with_noise(_of_one_unit(units, none, total), nones, wholes, whole)
    shown, f = np.stack([np.zeros(pieces), np.ones(pieces)]), np.stack([none, total])
    calls -= 2 * times
    units, shown, f = _halved(ask, units, shown, f, calls, rng)
    calls, d = calls - (len(f) - 2), len(units.shares)
    earlier = _unit_shares(shown, units)
    spread = _spread_of_sizes(earlier.mean(axis=1), f, d) if units.looks else None
    ends = np.array([[0.0], [1.0]]) * np.ones(units.shares.shape[1])
    of_units, of_groups = SetsOfUnits.of_none(earlier, f), SetsOfUnits.of_none(ends, f[:2])
    sets = _Sets(ask, units, is_function, spread, of_units, of_groups)
    stages = _stages(calls) if accuracy is not None and not units.looks else [calls]
    look = stages[0]
    for most in stages:
        sets.draw(most, rng)
        if most < look:
            continue
        account = sets.account()
        if not is_function:
            account = _with_noise(account, nones, wholes, whole)
        excess = 0.0 if accuracy is None else account.excess(accuracy)
        if excess <= 1.0:
            break
        look = int(min(most * (excess / _FASTER) ** 2, calls))
    return account


@dataclass(eq=False)
class _Sets:
    """Sets of units, and of groups where these have their game, which are drawn in stages."""

    ask: Predict
    units: Partition
    is_function: bool
    spread: Floats | None
    of_units: SetsOfUnits
    of_groups: SetsOfUnits
    every: _Game | None = None  # of all sets of groups
    drawn: int = 0

    def draw(self, most: int, rng: np.random.Generator) -> None:
        """Ask about more sets, ``most`` in all."""
        units, (d, groups) = self.units, self.units.shares.shape
        more, self.drawn = most - self.drawn, most
        grouped, are_all = 0, False
        if self.every is None:
            grouped, are_all = _sets_of_groups(units, more, is_function=self.is_function)
        z, weights = drawn_sets(rng, more - grouped, d, units.power, self.spread)
        self.of_units = self.of_units.with_more(z, self.ask(z[:, units.of_pieces]), weights)
        if are_all:
            self.every = _game_of_all(self.ask, units, *self.of_units.earlier_f[:2])
        elif grouped:
            z, weights = drawn_sets(rng, grouped, groups, units.power)
            self.of_groups = self.of_groups.with_more(z, self.ask(z[:, units.whole_groups]), weights)

    def account(self) -> LevelAccount:
        by_sets = _Game.of(self.of_groups, self.units, self.of_units) if len(self.of_groups.z) else None
        return _account(self.units, self.of_units, by_sets if self.every is None else self.every)


def _halved(
    ask: Predict, units: Partition, shown: Floats, f: Floats, calls: int, rng: np.random.Generator
) -> tuple[Partition, Floats, Floats]:
    """Units that are refined at each look, and pieces (n, m) with answers (n, k)."""
    d, looks = len(units.shares), units.looks
    each, most = int(calls * _LOOKING) // max(looks, 1), max(d, int(_UNITS_A_ROOT * np.sqrt(calls)))
    for i in range(looks):
        z = drawn_sets(rng, each, d, units.power)[0][:, units.of_pieces]
        shown, f = np.concatenate([shown, z]), np.concatenate([f, ask(z)])
        slopes, _ = _ridge(_unit_shares(shown, units) @ units.nodes, _steering(f))
        units = units.refined(_sizes(units.nodes @ slopes), d + (most - d) // (looks - i))
        d = len(units.shares)
    return units, shown, f


def _with_noise(account: LevelAccount, nones: Floats, wholes: Floats, whole: Floats) -> LevelAccount:
    """The account with the noise of repeated answers to nothing and to all, which leads to one to all."""
    errors, _ = with_noise(account.errors, nones, wholes)
    of_groups, _ = with_noise(account.group_errors, nones, wholes)
    base = whole - account.values.sum(axis=0)
    return account._replace(base=base, errors=errors, group_errors=of_groups)


def _stages(calls: int) -> list[int]:
    """How many sets are drawn before each look at the errors: twice as many as before, and all."""
    stages = [calls]
    while stages[0] >= 2 * _FIRST_STAGE:
        stages.insert(0, stages[0] // 2)
    return stages


def _sets_of_groups(units: Partition, calls: int, *, is_function: bool) -> tuple[int, bool]:
    """How many of the calls show or hide whole groups, and whether they are all sets of these."""
    if units.whole_groups is None or calls < 2 * LEAST_SETS:
        return 0, False
    d, groups = map(int, units.shares.shape)
    # where units are many more than sets, little is known of them but their sums
    few = min(_SETS_A_GROUP * groups, int(calls * d / (d + calls)))
    least = int(_LEAST_GROUPED[calls >= SETS_A_UNIT * d] * calls)
    drawn = min(max(LEAST_SETS, few, least), calls - LEAST_SETS)
    every = (1 << groups) - 2 if groups <= _ENUMERATED else calls
    if is_function and every <= max(drawn, int(_ALL_GROUPED * calls)):
        return every, True
    return drawn, False


def _game_of_all(ask: Predict, units: Partition, none: Floats, whole: Floats) -> _Game:
    """The game of groups, all of whose sets are asked about."""
    assert units.whole_groups is not None  # noqa: S101 - there are groups
    groups = units.shares.shape[1]
    states = ExchangeableDesign(Coalitions.of(groups)).states(1 << groups)
    assert states is not None  # noqa: S101 - there are few
    z, _, weights = states  # the first shows none, the last all
    f = ask(z[1:-1][:, units.whole_groups]) if groups > 1 else np.empty((0, none.size))
    # less one of them, so that parts of a constant add 0 and no rounding
    values = weights @ (np.concatenate([none[None], f, whole[None]]) - none)
    return _Game(values, np.zeros(values.shape), z[1:-1], f)


def _of_one_unit(units: Partition, none: Floats, whole: Floats) -> LevelAccount:
    """The account of one unit, from mean answers (k,) without it and with it."""
    values, zero, one = (whole - none)[None], np.zeros((1, none.size)), np.ones(none.size)
    return LevelAccount(units, none, values, zero, values, zero, one, 0.0 * one, is_exact=False)


def with_random_answers(account: LevelAccount, noise: Floats) -> LevelAccount:
    """The account by one answer to every set, where answers have a variance of ``noise`` (k,)."""
    sets = _AllSets.of(account.partition)
    one, coarse = (
        np.sqrt(np.multiply.outer((weights**2).sum(axis=1), noise))
        for weights in (sets.of_units, sets.of_groups)
    )
    return account._replace(errors=one, group_errors=coarse, is_exact=False)


def _states(units: Partition) -> int:
    """All sets of units, and of groups, more than can be asked about if units are many."""
    d, groups = len(units.shares), units.shares.shape[1]
    if d > _ENUMERATED:
        return int(np.iinfo(np.int64).max)
    return (1 << d) + ((1 << groups) - 2 if _are_apart(units) else 0)


def _are_apart(units: Partition) -> bool:
    """Whether the game of groups has sets beside those of units, as units are in several groups."""
    return units.whole_groups is not None and _groups_of(units) is None


def _groups_of(units: Partition) -> Ints | None:
    """The group of each unit (d,) in a game of groups; None without one, or if units are in several."""
    if units.whole_groups is None or not np.isin(units.shares, (0.0, 1.0)).all():
        return None
    return np.asarray(units.shares.argmax(axis=1))


class _AllSets(NamedTuple):
    """All sets of units (n, d), and the weights of their answers in contributions.

    With groups contributions are Owen's: means over orders in which the units of a group stand together.
    """

    z: Floats  # none first, and all last
    of_units: Floats  # (d, n)
    of_groups: Floats  # (g, n)

    @classmethod
    def of(cls, units: Partition) -> _AllSets:
        states = ExchangeableDesign(Coalitions.of(len(units.shares))).states(1 << _ENUMERATED)
        assert states is not None  # noqa: S101 - there are few
        (z, _, weights), group = states, _groups_of(units)
        weights = weights if group is None else _owen_weights(z, group)
        return cls(z, weights, units.shares.T @ weights)


def _owen_weights(z: Floats, group: Ints) -> Floats:
    """Weights (d, n) of answers to sets z (n, d) in the contributions of units, each in a ``group`` (d,).

    A set counts for a unit where all other groups are shown or hidden as wholes: by Shapley's weight in the
    game of groups times that in a game of the units of its group.
    """
    weights, shown = np.zeros(z.shape[::-1]), z @ members(group)
    sizes, groups = np.bincount(group), int(group.max()) + 1
    whole = shown == sizes
    for g, size in enumerate(sizes.tolist()):
        others = np.delete(whole | (shown == 0), g, axis=1).all(axis=1)
        of_groups = _shapley_weights(groups)[np.delete(whole, g, axis=1).sum(axis=1)]
        before = shown[:, g].astype(np.int64)
        for j in np.flatnonzero(group == g):
            is_shown = z[:, j] == 1.0
            inside = _shapley_weights(size)[np.clip(before - is_shown, 0, size - 1)]
            weights[j] = np.where(others, np.where(is_shown, 1.0, -1.0) * of_groups * inside, 0.0)
    return weights


def _shapley_weights(d: int) -> Floats:
    """The weights s! (d - 1 - s)! / d! of sets before a player of d, by their sizes s."""
    return np.array([1.0 / (d * math.comb(d - 1, s)) for s in range(d)])


def _steering(f: Floats) -> Floats:
    """Answers (n, k) by which units are halved: of probabilities with their logarithms."""
    if not are_probabilities(f, add_up=False):
        return f
    return np.concatenate([f, np.log(np.maximum(f, _FAINTEST))], axis=1)


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
    z, of_units, of_groups = _AllSets.of(units)
    f = ask(z[:, units.of_pieces])
    # less one of them, so that parts of a constant add 0 and no rounding
    values, sums = of_units @ (f - f[0]), of_groups @ (f - f[0])
    if _are_apart(units):
        sums = _game_of_all(ask, units, f[0], f[-1]).values
        for k, effects in enumerate(_squares_of_effects(z, f).T):
            values[:, k] = _with_sums(values[:, k], sums[:, k], units.shares, _spread(units.shares, effects))
    # a unit that adds nothing has no bar of roundings
    values[np.abs(values) <= _ROUNDED * np.abs(f).max(axis=0)] = 0.0
    fidelity = np.ones(f.shape[1])
    inside, weights = _shapley_law(z)
    if inside.size:
        fidelity, _ = _fidelity(f[inside], f[0] + z[inside] @ values, weights)
    return LevelAccount(
        units,
        f[0],
        values,
        np.zeros_like(values),
        sums,
        np.zeros_like(sums),
        fidelity,
        np.zeros_like(fidelity),
        is_exact=True,
        pairs=pairs_of_states(z, f),
    )


def _completed(ask: Predict, units: Partition, calls: int, rng: np.random.Generator) -> LevelAccount:
    """The account of few units by answers to some of their sets."""
    z, of_units, of_groups = _AllSets.of(units)
    answered, d = leading_sets(of_units, calls - 2, rng), len(units.shares)
    f, (i, j), x = ask(z[answered][:, units.of_pieces]), np.triu_indices(d, 1), 2.0 * z - 1.0
    # less one of them, so that contributions add up
    game = CompletedGame.of(d, answered, f - f[0])
    values, errors = game.estimates(of_units)
    inside, law = _shapley_law(z)

    def fidelity_of(tables: Floats) -> Floats:
        surrogates = tables[0] + z @ (of_units @ tables)
        return _fidelity(tables[inside], surrogates[inside], law)[0][None]

    pairs, fidelities = [], []
    for k, (sizes, size_errors) in enumerate(
        zip(*(its.T for its in game.estimates(4.0 * (x[:, i] * x[:, j]).T / len(z))), strict=True)
    ):
        clear = [
            p for p in np.argsort(-np.abs(sizes)).tolist() if abs(sizes[p]) > CONFIDENCE * size_errors[p]
        ]
        pairs.append(tuple((int(i[p]), int(j[p]), float(sizes[p])) for p in clear[:_REPORTED]))
        fidelities.append(game.ratios(fidelity_of, k, rng))
    fidelity, fidelity_errors = np.concatenate(fidelities, axis=1)
    return LevelAccount(
        units,
        f[0],
        values,
        errors,
        *game.estimates(of_groups),
        fidelity,
        fidelity_errors,
        is_exact=False,
        pairs=tuple(pairs),
    )


def _shapley_law(z: Floats) -> tuple[Ints, Floats]:
    """The sets among all z (2^d, d) but none and all of the units, and their weights by Shapley's law."""
    kept, d = z.sum(axis=1).astype(np.int64), z.shape[1]
    inside = np.flatnonzero((kept > 0) & (kept < d))
    kept = kept[inside]
    return inside, 1.0 / (kept * (d - kept) * np.bincount(kept, minlength=1)[kept])


def _squares_of_effects(z: Floats, f: Floats) -> Floats:
    """Mean of (f(S and j) - f(S))² over all sets S, (d, k), by answers f (2^d, k) to all sets z (2^d, d)."""
    codes = (z @ (2.0 ** np.arange(z.shape[1]))).astype(np.int64)
    of_code = np.empty_like(f)
    of_code[codes] = f
    every = np.arange(len(f))
    return np.stack([((of_code[every | 1 << j] - of_code) ** 2).mean(axis=0) for j in range(z.shape[1])])


# -- sets ----------------------------------------------------------------------------------------------------


def members(groups: Ints) -> Floats:
    return np.eye(int(groups.max()) + 1)[groups]


def _unit_shares(shown: Floats, units: Partition) -> Floats:
    """How much of each unit is shown, (n, d), of pieces (n, m)."""
    return (shown @ members(units.of_pieces)) / np.bincount(units.of_pieces)


# -- estimates -----------------------------------------------------------------------------------------------


class _Game(NamedTuple):
    """Contributions of groups, with errors, (g, k), and the sets (n, g) of them with their answers (n, k)."""

    values: Floats
    errors: Floats
    z: Floats
    f: Floats

    @classmethod
    def of(cls, sets: SetsOfUnits, units: Partition, of_units: SetsOfUnits) -> _Game:
        other = None
        if len(of_units.z) >= len(units.shares):  # fewer sets say less of units than of groups
            rows = _unit_shares(sets.z[:, units.whole_groups], units)
            its_units = of_units.earlier, of_units.earlier_f, of_units.z, of_units.f
            other = model_beside(units.nodes, *its_units, units.shares, rows)
        its = EstimateOfSets.of(np.eye(sets.z.shape[1]), sets, other)
        return cls(its.values, its.errors(), sets.z, sets.f)


def _account(units: Partition, sets: SetsOfUnits, game: _Game | None) -> LevelAccount:
    """The account by sets of units, and by the game of groups unless that is None."""
    none, shares = sets.earlier_f[0], units.shares
    if game is None:
        its = EstimateOfSets.of(units.nodes, sets)
        values, errors, sum_errors = its.values, its.errors(), its.errors(shares)
    else:
        # sets of groups train the control of units
        earlier = np.concatenate([sets.earlier, _unit_shares(game.z[:, units.whole_groups], units)])
        earlier_f = np.concatenate([sets.earlier_f, game.f])
        its = EstimateOfSets.of(units.nodes, sets._replace(earlier=earlier, earlier_f=earlier_f))
        sum_errors, its_errors = game.errors, its.sizes_of_errors()
        values, errors = np.empty(its.values.shape), np.empty(its.values.shape)
        for k in range(none.size):
            one, sizes = its.values[:, k], its_errors[:, k]
            squares = one**2 + sizes**2
            spread = _spread(shares, squares)
            values[:, k] = _with_sums(one, game.values[:, k], shares, spread)
            if its.unlike[k] == 0.0 or np.isinf(sum_errors[:, k]).any():
                errors[:, k] = np.inf
                continue
            # of what a group has more, a unit has more itself the larger it is taken for
            more = spread @ (game.values[:, k] - shares.T @ one)
            of_square = np.divide(more, squares, out=np.zeros_like(more), where=squares > 0.0)
            within = np.eye(len(one)) - spread @ shares.T
            of_units = its.only(k).sizes_of_errors((within * (1.0 + 2.0 * one * of_square)).T)[:, 0]
            of_noise = (within * of_square) ** 2 @ (3.0 * sizes**4)
            errors[:, k] = np.sqrt(of_units**2 + of_noise + spread**2 @ sum_errors[:, k] ** 2)
    # within_s / q_s ∝ 1 / (r s q_s): Shapley's weights of sets over the law by which they were drawn
    fidelity, fidelity_errors = _fidelity(sets.f, none + sets.z @ values, sets.weights)
    sums = shares.T @ values
    return LevelAccount(
        units,
        none,
        values,
        errors,
        sums,
        sum_errors,
        fidelity,
        fidelity_errors,
        is_exact=False,
        pairs=its.pairs,
    )


def _spread(shares: Floats, squares: Floats) -> Floats:
    """Return what each unit has of what a group has more than its units, (d, g), by expected squares (d,).

    A unit that is known to add nothing has nothing of it.
    """
    weighted = (squares + 1e-12 * max(float(squares.max()), _TINY))[:, None] * shares
    return np.asarray(np.linalg.lstsq(shares.T @ weighted, weighted.T, rcond=None)[0].T, dtype=np.float64)


def _with_sums(values: Floats, sums: Floats, shares: Floats, spread: Floats) -> Floats:
    """Values (d,) that add up to ``sums`` (g,) of groups."""
    moved = values + spread @ (sums - shares.T @ values)
    # what rounding leaves, to all alike
    return np.asarray(moved + np.linalg.lstsq(shares.T, sums - shares.T @ moved, rcond=None)[0])


def _fidelity(f: Floats, surrogate: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """R² (k,) of a surrogate's answers (n, k) at weighted rows, and its standard error."""
    weights = (weights / weights.sum())[:, None]
    centred = f - (weights * f).sum(axis=0)
    squares, missed = centred**2, (f - surrogate) ** 2
    total, rest = (weights * squares).sum(axis=0), (weights * missed).sum(axis=0)
    share = np.divide(rest, total, out=np.zeros_like(rest), where=total > 0)
    error = np.sqrt((weights**2 * (missed - share * squares) ** 2).sum(axis=0))
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
    """Names of an input's features, and their places."""

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
    kind: str = "",
    reason: str = "",
) -> dict[str, Any]:
    """Fields of an explanation of one input, whose coefficients are its contributions.

    They are those of the linear surrogate that KernelSHAP's weights of sets give. ``inputs`` have units and
    groups as features, ``predictions`` are (1,) or (1, k), ``feature`` is the word for a unit, ``kind`` for
    a group, ``reason`` says why there are groups, and ``spread`` is what answers to one input differ by.
    """
    fine, coarse = inputs
    shaped = partial(_of_one_row, predictions)
    contributions = contributions_of(
        account, predictions, accuracy=accuracy, exact=exact, calls=calls, spread=spread
    )
    return {
        "values": contributions.values,
        "standard_errors": contributions.standard_errors,
        "intercepts": contributions.base_values,
        "predictions": predictions,
        "surrogate_predictions": contributions.base_values + contributions.values.sum(axis=1),
        "fidelity": shaped(account.fidelity),
        "fidelity_errors": shaped(account.fidelity_errors),
        "explainer": _Undiagnosed(),
        "method": "exact" if exact else "sampled",
        "controls": None if exact else ("mixture",),  # of readable models, `set_controls.py`
        # they were spent on contributions, which coefficients are
        "calls": np.zeros(1, dtype=np.int64),
        "row_converged": np.array([exact or accuracy.excess(account.values, account.errors) <= 1.0]),
        "output_names": outputs,
        "feature_names": fine.names,
        "conditions": (fine.conditions,),
        "data": fine.data[None],
        "account": contributions,
        "provenance": {
            **fine.picture,
            "meaning": _MEANING.format(feature),
            "weights": SHAPLEY,
            **({} if exact else {"tolerance": str(accuracy)}),
            "coarse": coarse_facts(account, coarse, outputs, kind) | ({"reason": reason} if reason else {}),
            **pair_facts(account, fine.conditions, outputs),
        },
    }


def _of_one_row(predictions: Floats, numbers: Floats) -> Floats:
    """Numbers (..., k) of one input, as explanations have them: (1, ...) where there is one output."""
    return numbers.reshape(1, *numbers.shape[: numbers.ndim - 1], *predictions.shape[1:])


def contributions_of(
    account: LevelAccount, predictions: Floats, *, accuracy: Tolerance, exact: bool, calls: int, spread: float
) -> Contributions:
    """Contributions to the ``predictions``, (1,) or (1, k), of one input."""
    shaped = partial(_of_one_row, predictions)
    values = shaped(account.values)
    # two answers of a random model differ by √2 of the spread of one
    of_base = np.full(account.base.shape, spread / np.sqrt(2.0))
    unknown = np.full(values.shape, np.nan)
    return Contributions(
        values=values,
        base_values=shaped(account.base),
        base_errors=shaped(of_base),
        standard_errors=shaped(account.errors),
        alone=unknown,
        last=unknown,
        calls=np.array([calls]),
        row_converged=np.array([exact or accuracy.with_base(account.values, account.errors, of_base) <= 1.0]),
    )


def pair_facts(
    account: LevelAccount, conditions: tuple[str, ...], outputs: tuple[str, ...]
) -> dict[str, Any]:
    """Pairs of units that act together, by output, as the provenance has them."""
    pairs = {
        name: [[conditions[i], conditions[j], value] for i, j, value in its]
        for name, its in zip(outputs, account.pairs, strict=False)
        if its
    }
    return {TOGETHER: pairs} if pairs else {}


def coarse_facts(
    account: LevelAccount, coarse: NamedFeatures, outputs: tuple[str, ...], kind: str = ""
) -> dict[str, Any]:
    """The coarse level, as the provenance of the fine one has it; ``kind`` is the word for a group."""
    return {
        **({"kind": kind} if kind else {}),
        "names": coarse.names,
        "conditions": coarse.conditions,
        "data": coarse.data.tolist(),
        "outputs": list(outputs),
        "shares": [
            [[int(j), float(its[j])] for j in np.flatnonzero(its)] for its in account.partition.shares.T
        ],
        "values": account.of_groups.tolist(),
        "standard_errors": account.group_errors.tolist(),
        "picture": dict(coarse.picture),
    }
