r"""Rules that hold: the facts under which a prediction moves least, and bounds of how far it still moves.

The error of a set S of facts is that of the neighbours in which all of them hold, with a loss a(z) that is
|f(z) - f(x)| (the 2025 paper's P2) or 1[f(z) is on the other side of a threshold] (its P1):

    P(S) = E[a(z) given z_S = x_S].

One weighted sample of rows serves all S: P̂(S) = Σ w_i a_i / Σ w_i over the rows that have the facts. With a
few literals the sample is all 2^d rows with their probabilities, and P̂ is P. Otherwise it starts as rows of
the law; rows in which one of the best sets of facts holds are added in rounds, and every row has the weight
w(z) = 1/Σ_T n_T 1[z_T = x_T]/P(z_T = x_T), n_T rows having been drawn with z_T = x_T (Veach and Guibas 1995).

**Search.** Some S beats an error λ if and only if v(S) = Σ_{rows with S} w_i (a_i - λ) is negative
(Dinkelbach 1967). With the Gram matrices of the facts over the rows that have S, weighted by the positive and
the negative parts of w (a - λ), v is exact for one and two more facts. For t more facts T it is bounded: a
union removes from the positive part at most Σ_j b_j, and from the negative part at least max_j g_j, hence

    v(S ∪ T) ≥ v(S) - Σ_{j∈T} (b_j - g_j/t) ≥ v(S) - (sum of the t largest b_j - g_j/t).

``FactSearch`` goes best first; the nodes that are open when it stops bound the errors of all other sets.

**The error of a rule** P(w) = E[|f(z) - f(x)| given w·z = w·x] is the same for generic weights: with u = w∘x,
w·z = w·x if and only if the flipped literals T of the support have Σ_T u_j = 0. There are at most 2^|S| such
sets; given one, all other literals flip by the law. With more than 20 literals no other set is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from time import perf_counter
from typing import TypeAlias

import numpy as np
from scipy.special import bdtr, betaincinv

from limes._arrays import ROUNDING, Bools, Floats, Ints
from limes._rules.neighbourhood import FlippingLiterals, LiteralNeighbourhood, TableDraws, having
from limes.exceptions import InputError


def bernstein_bound(values: Floats, *, largest: float, risk: float) -> float:
    r"""Empirical Bernstein: E ≤ mean + √(2 V ln(2/δ)/n) + 7 L ln(2/δ)/(3(n - 1)) with probability ≥ 1 - δ.

    Maurer and Pontil 2009, Theorem 4.
    """
    n = values.size
    if n < 2:
        raise InputError(f"a bound needs two fresh rows at least, got {n}")
    log = float(np.log(2.0 / risk))
    deviation = np.sqrt(2.0 * values.var(ddof=1) * log / n)
    return float(min(largest, values.mean() + deviation + 7.0 * largest * log / (3.0 * (n - 1))))


def betting_bound(values: Floats, *, largest: float, risk: float) -> float:
    r"""Upper bound of the mean of values in [0, largest]: the least m that bets on smaller values refute.

    With x = values/largest a gambler's capital K(m) = ∏_i (1 - λ_i (x_i - m)), λ_i ≤ 1 chosen before x_i, has
    mean 1 if m is the mean, so that K(m) ≥ 1/δ has probability ≤ δ. K grows with m. With few values near
    ``largest`` it is much closer than the empirical Bernstein bound, which adds 7 ln(2/δ)/(3n) of the range.

    Waudby-Smith and Ramdas 2024, section 4.
    """
    n, needed = values.size, float(np.log(1.0 / risk))
    if n < 2:
        raise InputError(f"a bound needs two fresh rows at least, got {n}")
    if largest == 0.0:
        return 0.0
    x, steps = values / largest, np.arange(2.0, n + 2.0)
    means = (0.5 + np.cumsum(x)) / steps
    variances = np.append(0.25, (0.25 + np.cumsum((x - means) ** 2)) / steps)[:-1]
    bets = np.minimum(1.0, np.sqrt(2.0 * needed / (n * variances)))
    low, high = 0.0, 1.0  # at 1 no factor is below 1
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if float(np.log1p(-bets * (x - middle)).sum()) >= needed:
            high = middle
        else:
            low = middle
    return float(largest * high)


def share_bound(events: int, n: int, *, risk: float) -> float:
    """Upper bound of a probability of which ``events`` of n draws are a sample (Clopper and Pearson 1934)."""
    return 1.0 if events >= n else float(betaincinv(events + 1.0, n - events, 1.0 - risk))


def quantile_bound(values: Floats, share: float, *, risk: float) -> float:
    """Upper bound of a quantile: the smallest order statistic that bounds it with probability ≥ 1 - risk.

    The u-th smallest of n draws is below the quantile only if u of them are, with probability P(Bin(n, share)
    ≥ u) at most. It is inf where no draw is large enough for sure.
    """
    enough = bdtr(np.arange(values.size), values.size, share) >= 1.0 - risk
    return float(np.sort(values)[np.argmax(enough)]) if enough.any() else np.inf


def theorem_accuracy(samples: int, size: int, k: int, risk: float) -> float:
    """Return ε of a sample: (((32 ln 2d + 8 ln 2/δ)(k + 1)²)/m)^½, of Koriche et al. 2025, Theorem 2, mended.

    With probability 1 - δ the mean of |w·z - f(z)| exceeds the sample's by ε at most, for all k-sparse w in
    [-1, 1]^d at once: the loss that the paper's proof bounds. It prints ^¼, for √fidelity and precision,
    which do not follow.
    """
    return float(np.sqrt(_demand(size, k, risk) / samples))


def theorem_samples(accuracy: float, size: int, k: int, risk: float) -> float:
    return float(np.ceil(_demand(size, k, risk) / accuracy**2))


def _demand(size: int, k: int, risk: float) -> float:
    return float((32.0 * np.log(2.0 * size) + 8.0 * np.log(2.0 / risk)) * (k + 1) ** 2)


# A sum of coefficients is zero below this share of their sizes, as weights are rounded
_ZERO = 1e-9
# Steps of a bisection of [0, 1]
_HALVINGS = 40
# Largest number of literals whose subsets are listed
_LARGEST_SUPPORT = 20
# Largest number of free literals that are enumerated: 16,384 rows per set
EXACT_LITERALS = 14


@dataclass(frozen=True, eq=False)
class Precision:
    """P(w), its standard error, Pr[w·z = w·x], and the rows behind it: distances |f(z) - f(x)|, answers f(z).

    Weights are the probabilities of all rows where P(w) is exact, and None where the rows are drawn.
    """

    value: float
    error: float
    coincidence: float
    distances: Floats
    answers: Floats
    weights: Floats | None

    @property
    def draws(self) -> Floats:
        """The distances where they are sampled; none where P(w) is exact."""
        return self.distances if self.weights is None else np.zeros(0)

    def other_side(self, threshold: float, target: float, *, risk: float) -> tuple[float, float]:
        """Return the share of rows on the other side of a threshold than the target, and its upper bound."""
        across = other_sides(self.answers, threshold, target)
        if self.weights is not None:
            return (float(self.weights @ across),) * 2
        return float(across.mean()), share_bound(int(across.sum()), across.size, risk=risk)

    def band(self, share: float, *, risk: float) -> float:
        """Upper bound of the distance that a share of the rows does not exceed; exact where P(w) is."""
        if self.weights is None:
            return quantile_bound(self.distances, share, risk=risk)
        order = np.argsort(self.distances, kind="stable")
        reached = np.cumsum(self.weights[order]) >= share - ROUNDING
        return float(self.distances[order][np.argmax(reached)])


def other_sides(answers: Floats, threshold: float, target: float) -> Bools:
    """Return which answers are on the other side of a threshold than the target.

    Votes of half of the trees are at the threshold, in whatever order they were added up.
    """
    least = threshold - ROUNDING * max(1.0, abs(threshold))
    return np.asarray((answers >= least) != (target >= least))


def zero_sum_sets(u: Floats) -> Bools:
    """Return sets of positions whose coefficients add up to 0, (sets, n); the empty one first."""
    if u.size > _LARGEST_SUPPORT:
        raise InputError(f"all sets of at most {_LARGEST_SUPPORT} literals can be listed, got {u.size}")
    sets = _subsets(u.size)
    return np.asarray(sets[np.abs(sets @ u) <= _ZERO * np.abs(u).sum()])


def precision(
    near: LiteralNeighbourhood,
    predict: Callable[[Floats], Floats],
    u: Floats,
    target: float,
    *,
    draws: int,
    rng: np.random.Generator,
    exact_literals: int = EXACT_LITERALS,
) -> Precision:
    """Compute P(w), exactly where few literals are free and determine the rows."""
    support, rest = np.flatnonzero(u), np.flatnonzero(u == 0.0)
    if isinstance(near, TableDraws):
        flips, rows = near.draw(rng, draws)
        answered = predict(having(near, support, rows, flips, near.values_of(rng, draws)))
        return _of_draws(answered, target, near.share(support))
    law, none = near.law, np.zeros((1, support.size), dtype=np.bool_)
    sets = zero_sum_sets(u[support]) if support.size <= _LARGEST_SUPPORT else none
    flipped = sets.sum(axis=1)
    probability = law.chance(sets, support)
    coincidence = float(probability.sum())

    def answers(inside: Bools, outside: Bools) -> Floats:
        flips = np.empty((len(outside), u.size), dtype=np.bool_)
        flips[:, support], flips[:, rest] = inside, outside
        return predict(near.rows(flips, rng))

    # where nothing is left to flip, the row is the only one
    is_decided = near.decided_by_flips or (not rest.size and len(sets) == 1)
    if is_decided and rest.size <= exact_literals:
        free = _subsets(rest.size)
        every = np.empty((len(sets), len(free), u.size), dtype=np.bool_)
        every[:, :, support], every[:, :, rest] = sets[:, None], free
        weights = law.chance(every.reshape(-1, u.size), np.arange(u.size)) / coincidence
        answered = np.concatenate([answers(set_, free) for set_ in sets])
        distances = np.abs(answered - target)
        return Precision(float(weights @ distances), 0.0, coincidence, distances, answered, weights)
    drawn = rng.choice(len(sets), draws, p=probability / coincidence)
    answered = answers(sets[drawn], law.elsewhere(rng, flipped[drawn], rest))
    return _of_draws(answered, target, coincidence)


def _of_draws(answers: Floats, target: float, coincidence: float) -> Precision:
    distances = np.abs(answers - target)
    error = float(distances.std(ddof=1) / np.sqrt(distances.size))
    return Precision(float(distances.mean()), error, coincidence, distances, answers, None)


def _subsets(n: int) -> Bools:
    return np.asarray((np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1)


# -- the facts ----------------------------------------------------------------------------------------------

# Best sets that a search lists
_LISTED = 16
# Operations of the last search, about a second, of those before, and what a node costs whatever its size
_MOST_WORK, _QUICK, _NODE = 5e9, 1e9, 2e6
# Rounds in which rows are added, how many sets they are drawn for, and standard errors that end them
_ROUNDS, _CERTAIN = (16, 8, 4, 2), 4.0

# The largest sample in multiples of the rows that it starts with
MOST_SAMPLES = 1 + len(_ROUNDS)

Facts: TypeAlias = tuple[int, ...]  # ascending positions of literals


@dataclass(frozen=True, eq=False)
class FactRows:
    """A sample of a neighbourhood: which facts hold (m, d), losses (m,) ≥ 0 and weights (m,) > 0."""

    holds: Bools
    losses: Floats
    weights: Floats

    def error(self, facts: Facts) -> float:
        """Mean loss of the rows with these facts; inf where no row has them."""
        rows = self.holds[:, list(facts)].all(axis=1)
        weights = self.weights[rows]
        return float(weights @ self.losses[rows] / weights.sum()) if weights.size else np.inf


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Errors and sets of facts, the best first, and a lower bound of the errors of all sets of the size."""

    best: tuple[tuple[float, Facts], ...]
    lower_bound: float
    nodes: int

    @property
    def proved(self) -> bool:
        return self.lower_bound >= self.best[0][0]


class FactSearch:
    """Search a sample for the sets of facts of least error, among ``candidates`` (positions)."""

    def __init__(self, rows: FactRows, candidates: Ints) -> None:
        self._rows = rows
        self._listed: dict[Facts, float] = {}
        self._scale = float(rows.weights @ rows.losses / rows.weights.sum()) or 1.0
        self._offer(())
        # facts whose failing rows err most come first: their sets are few, and good
        excess = rows.weights * (rows.losses - self._scale)
        self._order = candidates[np.argsort(excess @ rows.holds[:, candidates], kind="stable")]
        self._holds = rows.holds[:, self._order].astype(np.float64)

    def best(
        self, k: int, *, work: float = _MOST_WORK, is_late: Callable[[], bool] = lambda: False
    ) -> SearchResult:
        """Search all sets of at most k facts; ``work`` limits the operations."""
        if k == 0:
            return SearchResult(((self._listed[()], ()),), self._listed[()], 0)
        self._beam(k)
        order, nodes, spent = count(), 0, 0.0
        pending: list[tuple[float, int, float, Facts]] = [(-np.inf, next(order), 0.0, ())]
        while pending and self._errors[0] > 0.0:
            *_, places = pending[0]
            rows = np.flatnonzero(self._with(places))
            joining = self._order.size - (places[-1] + 1 if places else 0)
            spent += _NODE + (3.0 if k - len(places) > 2 else 1.0) * rows.size * joining**2
            if spent > work or is_late():
                break
            heappop(pending)
            nodes += 1
            for value, bound, child in self._expand(places, rows, k):
                heappush(pending, (value, next(order), bound, child))
        lower = min([self._errors[0], *(bound for _, _, bound, _ in pending)])
        return SearchResult(tuple((error, facts) for facts, error in self._listed.items()), lower, nodes)

    @property
    def _errors(self) -> list[float]:
        return list(self._listed.values())

    @property
    def _cut(self) -> float:
        """An error that a set has to stay below to be listed."""
        return self._errors[-1] if len(self._listed) == _LISTED else float(self._rows.losses.max())

    def _offer(self, facts: Facts) -> None:
        """List a set of facts if it is among the best; of two alike the smaller one is better."""
        error = self._rows.error(facts)
        if not np.isfinite(error) or facts in self._listed:
            return

        def rank(entry: tuple[Facts, float]) -> tuple[float, int, Facts]:
            return round(entry[1] / self._scale, 12), len(entry[0]), entry[0]

        self._listed = dict(sorted([*self._listed.items(), (facts, error)], key=rank)[:_LISTED])

    def _named(self, places: Iterable[int]) -> Facts:
        return tuple(sorted(self._order[list(places)].tolist()))

    def _with(self, places: Facts) -> Bools:
        """Return which rows have some facts, (m,)."""
        return np.asarray(self._holds[:, list(places)].all(axis=1))

    def _beam(self, k: int) -> None:
        """Offer the best sets that grow from the best smaller ones, a fact at a time."""
        level: list[Facts] = [()]
        for _ in range(k):
            grown: dict[Facts, float] = {}
            weights = np.stack([self._with(places) for places in level]) * self._rows.weights
            total, wrong = weights @ self._holds, (weights * self._rows.losses) @ self._holds
            errors = np.divide(wrong, total, out=np.full(total.shape, np.inf), where=total > 0.0)
            for places, of_set in zip(level, errors, strict=True):
                of_set[list(places)] = np.inf
                for j in np.argsort(of_set, kind="stable")[:_LISTED].tolist():
                    if of_set[j] < np.inf:
                        grown[tuple(sorted((*places, j)))] = float(of_set[j])
            level = sorted(grown, key=lambda places: (grown[places], places))[:_LISTED]
            for places in level:
                self._offer(self._named(places))

    def _expand(self, places: Facts, rows: Ints, k: int) -> list[tuple[float, float, Facts]]:
        """Offer a node's sets of one and two facts more, and return its children with bounds of v and P.

        ``rows`` have its facts; those that join come behind its last one in the order of the search.
        """
        first, more = places[-1] + 1 if places else 0, k - len(places)
        holds, losses, weights = self._holds[rows, first:], self._rows.losses[rows], self._rows.weights[rows]
        if not holds.size:
            return []
        cut = self._cut
        excess = weights * (losses - cut)
        near = ROUNDING * float(np.abs(excess).sum())
        if more <= 2:
            values = holds.T @ (excess[:, None] * holds)
        else:
            worse, better = np.maximum(excess, 0.0), np.maximum(-excess, 0.0)
            above, below = holds.T @ (worse[:, None] * holds), holds.T @ (better[:, None] * holds)
            values = above - below
        wanted = np.diag(np.diag(values) <= near) if more == 1 else np.triu(values <= near)
        pairs = np.argwhere(wanted)
        for i, j in pairs[np.argsort(values[wanted], kind="stable")].tolist():
            self._offer(self._named({*places, first + i, first + j}))
        if more <= 2:
            return []
        totals = holds.T @ (weights[:, None] * holds)
        bounds, errors = _child_bounds(above, below, totals, more - 1, cut)
        open_ones = np.flatnonzero(bounds < near).tolist()
        return [(float(bounds[i]), float(errors[i]), (*places, first + i)) for i in open_ones]


def _child_bounds(
    above: Floats, below: Floats, totals: Floats, most: int, cut: float
) -> tuple[Floats, Floats]:
    """Bound v, and P, of the sets that a child's fact i and 2 to ``most`` facts behind it make, (f,) each."""
    size = len(above)
    behind = np.triu(np.ones((size, size), dtype=np.bool_), 1)
    lost_above, lost_below, lost = (np.diag(gram)[:, None] - gram for gram in (above, below, totals))
    bounds = np.full(size, np.inf)
    for t in range(2, most + 1):
        changes = np.sort(np.where(behind, lost_below / t - lost_above, np.inf), axis=1)
        bounds = np.minimum(bounds, np.diag(above) - np.diag(below) + changes[:, :t].sum(axis=1))
    # nothing is below what is left of the negative part
    rest = np.diag(below) - np.where(behind, lost_below, np.inf).min(axis=1)
    bounds = np.maximum(bounds, -rest)
    removed = np.sort(np.where(behind, lost, 0.0), axis=1)[:, -most:].sum(axis=1)
    kept = np.diag(totals) - removed
    errors = np.maximum(0.0, cut + np.divide(bounds, kept, out=np.full(size, -np.inf), where=kept > 0.0))
    return bounds, errors


class FactSample:
    """Rows around one row by which facts are chosen: all rows, or rows of the law and of the best sets.

    ``losses`` takes flips (m, d) and returns the rows' losses (m,). ``first`` are rows of the law with their
    losses; without them all 2^d rows are the sample. ``seconds`` limit the last search, in the place of its
    operations.
    """

    def __init__(
        self,
        near: FlippingLiterals,
        losses: Callable[[Bools], Floats],
        candidates: Ints,
        *,
        first: tuple[Bools, Floats] | None,
        rng: np.random.Generator,
        seconds: float | None = None,
    ) -> None:
        self._near, self._losses, self._candidates, self._rng = near, losses, candidates, rng
        self._until = None if seconds is None else perf_counter() + seconds
        self.is_complete = first is None
        if first is None:
            flips = _subsets(near.law.size)
            first = flips, losses(flips)
        self._flips, self._values = first
        # sets of facts in which rows were drawn, and the number of rows
        self._drawn: dict[Facts, int] = {(): len(self._flips)}

    @property
    def size(self) -> int:
        return len(self._values)

    @property
    def rows(self) -> FactRows:
        law, holds = self._near.law, ~self._flips
        if self.is_complete:
            weights = law.chance(self._flips, np.arange(law.size))
        else:
            density = np.zeros(self.size)
            for facts, number in self._drawn.items():
                all_hold = np.zeros((1, len(facts)), dtype=np.bool_)
                chance = float(law.chance(all_hold, np.array(facts, dtype=np.int64))[0])
                density += number / chance * holds[:, list(facts)].all(axis=1)
            weights = 1.0 / density
        return FactRows(holds, self._values, weights)

    def best(self, k: int, enough: float = np.inf) -> SearchResult:
        """Search the sets of at most k facts; unless all rows are at hand, draw rows of the best and repeat.

        No rows are drawn where the best set errs by more than ``enough``: it errs more than the sample says.
        """
        searched = self._search(k, _QUICK)
        number = self._drawn[()]
        for width in () if self.is_complete else _ROUNDS:
            sets = [facts for _, facts in searched.best[:width] if facts]
            certain = searched.best[0][1] in self._drawn and self._is_certain(searched)
            if not sets or certain or searched.best[0][0] > enough:
                break
            for facts in sets:
                self._draw(facts, -(-number // len(sets)))
            searched = self._search(k, _QUICK)
        is_last = searched.proved or searched.best[0][0] > enough
        return searched if is_last else self._search(k, _MOST_WORK if self._until is None else np.inf)

    def _search(self, k: int, work: float) -> SearchResult:
        searched = FactSearch(self.rows, self._candidates).best(k, work=work, is_late=self._is_late)
        for size in range(1, k if searched.best[0][0] == 0.0 else 0):  # of facts without an error, the fewest
            fewer = FactSearch(self.rows, self._candidates).best(size, work=_QUICK)
            if fewer.best[0][0] == 0.0:
                return fewer
        return searched

    def _is_late(self) -> bool:
        return self._until is not None and perf_counter() > self._until

    def _draw(self, facts: Facts, number: int) -> None:
        law = self._near.law
        flips, rest = np.zeros((number, law.size), dtype=np.bool_), np.setdiff1d(np.arange(law.size), facts)
        flips[:, rest] = law.elsewhere(self._rng, np.zeros(number, dtype=np.int64), rest)
        self._flips = np.concatenate([self._flips, flips])
        self._values = np.concatenate([self._values, self._losses(flips)])
        self._drawn[facts] = self._drawn.get(facts, 0) + number

    def _is_certain(self, searched: SearchResult) -> bool:
        """Whether the best set leads by more standard errors than chance explains."""
        rows = self.rows
        parts = [self._influence(rows, facts) for _, facts in searched.best]
        errors = [error for error, _ in searched.best]
        return all(
            error - errors[0] > _CERTAIN * float(np.linalg.norm(part - parts[0]))
            for error, part in zip(errors[1:], parts[1:], strict=True)
        )

    @staticmethod
    def _influence(rows: FactRows, facts: Facts) -> Floats:
        weights = rows.weights * rows.holds[:, list(facts)].all(axis=1)
        return np.asarray(weights * (rows.losses - rows.error(facts)) / weights.sum())
