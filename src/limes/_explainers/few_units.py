r"""Few units have few sets: no set is asked about twice, and what is not asked about is estimated.

Contributions, coefficients, means and pairs are sums W f of the answers to all 2^d sets, for which there is a
Gaussian process: of unknown mean and size, with

    Cov(f_z, f_z') ∝ (1 - ν) (Π_j (1 + ρ x_j x'_j) - 1) / ((1 + ρ)^d - 1) + ν 1[z = z'],    x_j = 2 z_j - 1,

under which products of m units have a variance ∝ ρ^m, and each set has something by itself: ν = 1 says
nothing of sets that were not asked about. Answers that change in steps, as yes or no, are signs of such a
process, whose covariance is 2/π arcsin of its correlation (Sheppard 1899). The empty set is unlike any other
for many a model: in some processes its answer says nothing of the others. W f is then a t variable given the
process, and processes are averaged by their likelihood. R² and shares are no sums: they are those of tables
of answers as they may be.

*Which sets.* Contributions consist of what odd numbers of units do together, in which a set and its
complement differ by a sign: `leading_sets` are both, those of the largest weights first. These say little of
sets of other sizes. Where one process serves contributions and coefficients, whose weights are those of other
sizes, sets are drawn by the law of both, none twice (`CompletedExpectation`).

References
----------
Sheppard 1899, On the application of the theory of error to cases of normal distribution and normal
    correlation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints, fingerprint, is_constant, streams
from limes._expectations.moments import Moments
from limes._sampling.least_squares import LeastSquares, check_squares, count_unlike, student_factors
from limes._sampling.sampled import Draw, SampledDesign, SampledExpectation, Sampling
from limes._shapley.coalitions import account_from
from limes._shapley.exact import RowContributions
from limes.designs._exchangeable import Coalitions, ExchangeableDesign
from limes.models._calling.caller import Calls

# Most units whose other sets are estimated; for contributions alone those of which any number of answers is
# enough, and answers a unit that are enough of others
MOST_COMPLETED, _FEW_UNITS, _CALLS_A_UNIT = 8, 6, 3
# Values of ρ, ν, whose probability beforehand is ∝ ν to a power, and of ν = 1 as large as that of all others
# together: few answers may look smooth by chance. Values of ν of steps, which are as probable as all of these
_SMOOTH, _ALONE, _LEANING = (0.02, 0.1, 0.25, 0.5), (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3), 0.3
_ALONE_OF_STEPS = (1e-5, 1e-2)
# The variance of an answer that says nothing of others, in units of theirs, and its probability beforehand
_UNLIKE, _UNLIKE_SHARE = 100.0, 1e-4
# A factor on errors, and where most answers are near one of two: answers to sets of few units and of most say
# little of where the others change. A share of the range that is near, and of the answers that are most
_CAUTION, _OF_STEPS = 1.25, 1.75
_NEAR, _MOST = 0.1, 0.8
# Squares that are rounding; likelihoods, relative to the largest, that count for nothing
_NOTHING, _UNLIKELY = 1e-14, 1e-6
# Tables of answers as they may be; sets at the first look at errors
_TABLES, _FIRST_LOOK = 200, 16
_TINY = np.finfo(np.float64).tiny


def have_few_sets(d: int, calls: int) -> bool:
    """Whether d units have so few sets that contributions estimate the answers to the others."""
    return d <= (MOST_COMPLETED if calls >= _CALLS_A_UNIT * d else _FEW_UNITS)


def leading_sets(weights: Floats, count: int, rng: np.random.Generator) -> Ints:
    """The numbers of the empty set, of all, and of ``count`` others of the 2^d sets, (2 + n,).

    Set i shows the units of the binary digits of i. ``weights`` (m, 2^d) are those of the answers in sums.
    """
    last = weights.shape[1] - 1
    squares = (weights**2).sum(axis=0)
    pairs = np.arange(1, (last + 1) // 2)
    sizes = squares[pairs] + squares[last - pairs]
    # of sizes that are the same but for rounding any may be first
    sizes = np.round(sizes / max(float(sizes.max(initial=0.0)), _TINY), 9)
    pairs = pairs[np.lexsort((rng.random(pairs.size), -sizes))]
    pairs = np.where(rng.random(pairs.size) < 0.5, pairs, last - pairs)
    both = np.stack([pairs, last - pairs], axis=1).ravel()
    return np.concatenate([[0, last], both[:count]])


def numbers_of(z: Floats) -> Ints:
    """The numbers of sets z (n, d), whose binary digits are the units that they show."""
    return (z @ (2.0 ** np.arange(z.shape[1]))).astype(np.int64)


@dataclass(frozen=True, eq=False)
class CompletedGame:
    """A game of few units with k outputs: sets that were ``answered``, and processes of the others.

    Of each process: its probability, means, and covariances by their ``scale``.
    """

    answered: Ints  # (n,)
    others: Ints  # (u,)
    f: Floats  # (n, k)
    likely: Floats  # (r, k)
    means: Floats  # (r, u, k)
    covariances: Floats  # (r, u, u)
    scale: Floats  # (r, k)

    @classmethod
    def of(cls, d: int, answered: Ints, f: Floats) -> CompletedGame:
        others = np.setdiff1d(np.arange(1 << d), answered)
        n, level, size = len(f), f.mean(axis=0), np.maximum(np.ptp(f, axis=0), _TINY)
        y, regressors = (f - level) / size, np.ones((n, 1))
        logs, solved = [], []
        # an answer that is unlike all others, where most of these are the same, shows that others may be
        inner = answered > 0
        alike = count_unlike(f[inner]) < inner.sum() / 2.0 if inner.any() else np.ones(f.shape[1], np.bool_)
        for prior, covariance, among, is_apart in _processes(d, answered):
            # of a constant, and of the answers
            one, of_answers = np.split(np.linalg.solve(among, np.hstack([regressors, y])), [1], axis=1)
            total = one.sum()
            mean = of_answers.sum(axis=0) / total
            rest = of_answers - one * mean
            squares = np.maximum((y * rest).sum(axis=0), _NOTHING)
            determinant = np.linalg.slogdet(among)[1] + np.log(total)
            likelihood = np.log(prior) - (determinant + (n - 1) * np.log(squares)) / 2.0
            logs.append(np.where(is_apart & alike, -np.inf, likelihood))
            solved.append((covariance, among, one, mean, rest, squares))
        likely = np.exp(np.stack(logs) - np.max(logs, axis=0))
        counts = (likely > _UNLIKELY).any(axis=1)
        means, covariances, scale = [], [], []
        for i in np.flatnonzero(counts).tolist():
            covariance, among, one, mean, rest, squares = solved[i]
            crossing = covariance[np.ix_(others, answered)]
            unsure = 1.0 - crossing @ one
            inside = covariance[np.ix_(others, others)] - crossing @ np.linalg.solve(among, crossing.T)
            covariances.append(inside + unsure @ unsure.T / one.sum())
            means.append(level + size * (mean + crossing @ rest))
            # one number less for ρ and ν
            scale.append(size * np.sqrt(squares / max(n - 2, 1)))
        likely = likely[counts] / likely[counts].sum(axis=0)
        return cls(answered, others, f, likely, np.stack(means), np.stack(covariances), np.stack(scale))

    @property
    def _factor(self) -> Floats:
        """The factor on errors of each output, (k,)."""
        low, high = self.f.min(axis=0), self.f.max(axis=0)
        away = np.minimum(self.f - low, high - self.f)
        steps = (away <= _NEAR * (high - low)).mean(axis=0) >= _MOST
        degrees = np.array(max(len(self.f) - 2.0, 1.0))
        return np.where(steps, _OF_STEPS, _CAUTION) * student_factors(degrees)

    @property
    def _differ(self) -> Any:
        """Whether answers differ, (k,): nothing bounds others where all are the same."""
        return np.ptp(self.f, axis=0) > 0.0

    def estimates(self, weights: Floats) -> tuple[Floats, Floats]:
        """Sums (m, k) of all answers by weights (m, 2^d), and errors: inf where all answers are the same."""
        its = weights[:, self.others]
        each = its @ self.means  # (r, m, k)
        values = np.einsum("rk,rmk->mk", self.likely, each)
        squares = np.maximum(((its @ self.covariances) * its).sum(axis=2), 0.0)
        within = squares[..., None] * (self._factor * self.scale[:, None]) ** 2
        errors = np.sqrt(np.einsum("rk,rmk->mk", self.likely, within + (each - values) ** 2))
        return weights[:, self.answered] @ self.f + values, np.where(self._differ, errors, np.inf)

    def expected(self) -> Floats:
        """Answers to all sets as they are expected, (2^d, k)."""
        answers = np.empty((self.answered.size + self.others.size, self.f.shape[1]))
        answers[self.answered] = self.f
        answers[self.others] = np.einsum("rk,ruk->uk", self.likely, self.means)
        return answers

    def tables(self, output: int, count: int, rng: np.random.Generator) -> Floats:
        """Answers to all sets as they may be, (2^d, count)."""
        process = rng.choice(len(self.likely), size=count, p=self.likely[:, output])
        tables = np.empty((self.answered.size + self.others.size, count))
        tables[self.answered] = self.f[:, output, None]
        for i in np.unique(process).tolist():
            drawn = np.flatnonzero(process == i)
            root = np.linalg.cholesky(self.covariances[i])  # no eigenvalue is below ν
            moved = root @ rng.standard_normal((self.others.size, drawn.size))
            spread = self._factor[output] * self.scale[i, output]
            tables[np.ix_(self.others, drawn)] = self.means[i, :, output, None] + spread * moved
        return tables

    def ratios(
        self, of: Callable[[Floats], Floats], output: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Numbers (m,) that follow from tables, ``of`` (2^d, t) -> (m, t), and errors; inf as in estimates.

        Squares of what is unsure are too large, and ratios to them too small, in the mean over tables: the
        number is in the middle between that mean and the number of the expected answers, and the error one
        of both.
        """
        drawn = of(self.tables(output, _TABLES, rng))
        values = (drawn.mean(axis=1) + of(self.expected()[:, output, None])[:, 0]) / 2.0
        errors = np.sqrt(((drawn - values[:, None]) ** 2).mean(axis=1))
        return values, np.where(self._differ[output], errors, np.inf)


def _processes(d: int, answered: Ints) -> Iterator[tuple[float, Floats, Floats, bool]]:
    """Prior probabilities, covariances of all answers, and among ``answered``; whether none is set apart."""
    empty = (answered == 0).astype(np.float64)
    for prior, covariance in _covariances(d):
        among = covariance[np.ix_(answered, answered)]
        yield prior * (1.0 - _UNLIKE_SHARE), covariance, among, False
        if empty.any():
            yield prior * _UNLIKE_SHARE, covariance, among + np.diag(_UNLIKE * empty), True


@cache
def _covariances(d: int) -> list[tuple[float, Floats]]:
    """Prior weights, and covariances of answers to all sets of d units, of each process."""
    z = (np.arange(1 << d)[:, None] >> np.arange(d) & 1) * 2.0 - 1.0
    alike, single = (d + z @ z.T) / 2.0, np.eye(1 << d)
    grid, steps = [], list[Floats]()
    for rho in _SMOOTH:
        smooth = ((1.0 + rho) ** alike * (1.0 - rho) ** (d - alike) - 1.0) / ((1.0 + rho) ** d - 1.0)
        grid += [(nu**_LEANING, (1.0 - nu) * smooth + nu * single) for nu in _ALONE]
        signs = 2.0 / np.pi * np.arcsin(np.clip(smooth, -1.0, 1.0))  # no rounding is beyond 1
        steps += [(1.0 - nu) * signs + nu * single for nu in _ALONE_OF_STEPS]
    grid.append((sum(prior for prior, _ in grid), single))
    whole = sum(prior for prior, _ in grid)
    return [*grid, *((whole / len(steps), covariance) for covariance in steps)]


# -- coefficients and contributions --------------------------------------------------------------------------


class CompletedExpectation(SampledExpectation):
    """Moments of a function of few units from answers to some sets, with a process of the others.

    Sets ``first`` (m, d) are asked about before any other, as what is asked again costs nothing; then
    ``sampling.max_calls`` others, which are drawn by the law of ``drawn``.
    """

    def __init__(
        self,
        predict: Callable[[Floats], Floats],
        sampling: Sampling,
        drawn: ExchangeableDesign,
        first: Floats,
    ) -> None:
        super().__init__(predict, sampling, drawn)
        self._law, self._first = drawn, first

    def _sets(self, row: int) -> Floats:
        """Sets in the order in which they are asked about, (m + max_calls, d)."""
        z, log_probability = self._law.enumerate()
        first = np.unique(numbers_of(self._first))[::-1]
        rng = np.random.default_rng(streams(self._sampling.seed, row, 1)[0])
        # the first arrivals at rates that are the probabilities: draws of which none comes twice
        with np.errstate(over="ignore"):
            arrivals = np.log(rng.standard_exponential(len(z))) - log_probability
        arrivals[first] = np.inf
        drawn = np.argsort(arrivals, kind="stable")[: min(self.max_calls, len(z) - first.size)]
        return np.asarray(z[np.concatenate([first, drawn])])

    def redraw(self, design: SampledDesign, row: Floats, count: int) -> Draw:
        del design
        z = self._sets(fingerprint(row))[:count]
        return z, z, np.arange(len(z))

    def game(self, design: SampledDesign, row: Floats, answers: Floats) -> CompletedGame:
        """The game by answers (n, ...) to the first sets."""
        sets = numbers_of(self.redraw(design, row, len(answers))[0])
        return CompletedGame.of(design.size, sets, answers.reshape(len(answers), -1))

    def _until_converged(
        self, design: SampledDesign, key: int, calls: Calls, prediction: Floats | None
    ) -> Moments:
        del prediction
        for sets, answers in self._answered_sets(key, calls.one_pass(calls)):
            if len(answers) == len(self._sets(key)) or self._sampling.tolerance is not None:
                moments = self._estimated(design, key, sets, answers, len(calls))
                if moments.converged:
                    break
        return moments

    def _so_far(
        self, design: SampledDesign, key: int, calls: Calls, prediction: Floats | None
    ) -> Moments | None:
        del prediction
        looks = list(self._answered_sets(key, calls.one_pass(calls.recall)))
        return self._estimated(design, key, *looks[-1], len(calls)) if looks else None

    def _answered_sets(
        self, key: int, predict: Callable[[Floats], Floats | None]
    ) -> Iterator[tuple[Ints, Floats]]:
        """Numbers of sets and their answers, twice as many at each look; they end where one is missing."""
        sets = self._sets(key)
        first = len(sets) if self._sampling.tolerance is None else min(_FIRST_LOOK, len(sets))
        looks = first * 2 ** np.arange(int(np.log2(len(sets) / first)) + 1)
        for size in sorted({*looks.tolist(), len(sets)}):
            answers = predict(sets[:size])
            if answers is None:
                return
            yield numbers_of(sets[:size]), answers

    def _estimated(self, design: SampledDesign, key: int, sets: Ints, answers: Floats, calls: int) -> Moments:
        f = answers.reshape(len(answers), -1)
        check_squares(f)
        game = CompletedGame.of(design.size, sets, f)
        rng = np.random.default_rng(streams(self._sampling.seed, key, 2)[1])
        return _fit_of_game(design, game, rng).to_moments(
            answers.shape[1:],
            self._sampling.accuracy,
            control="process",
            units=design.units[:, None],
            calls=calls,
            answers=answers,
        )


def _fit_of_game(design: SampledDesign, game: CompletedGame, rng: np.random.Generator) -> LeastSquares:
    """Moments of a design whose states are the sets of a game."""
    states = design.states(1 << design.size)
    assert states is not None  # noqa: S101 - there are few
    _, probability, weights = states
    d, outputs = weights.shape[0], game.f.shape[1]
    (coef, errors), (mean, _) = game.estimates(weights), game.estimates(probability[None])
    _, surrogate_errors = game.estimates((probability + design.departure @ weights)[None])
    gamma = design.gamma(coef)
    explained = (coef * gamma).sum(axis=0)

    def shares_of(tables: Floats) -> Floats:
        """Shares of each feature in Var_w f, and their sum, (d + 1, t)."""
        coef, centred = weights @ tables, tables - probability @ tables
        total = probability @ centred**2
        parts = coef * design.gamma(coef)
        constant = is_constant(total, np.abs(tables).max(axis=0))
        shares = np.where(constant, 0.0, parts / np.where(constant, 1.0, total))
        return np.vstack([shares, np.where(constant, 1.0, shares.sum(axis=0))])

    ratios = [game.ratios(shares_of, k, rng) for k in range(outputs)]
    shares, share_errors = (np.stack(its, axis=1) for its in zip(*ratios, strict=True))
    varies = ~is_constant(explained, np.abs(game.f).max(axis=0)) & (shares[-1] > 0)
    return LeastSquares(
        mean=mean[0],
        coef=coef,
        gamma=gamma,
        coef_errors=errors,
        # of which coefficients explain the share that is R²
        variance=np.where(varies, explained / np.where(varies, shares[-1], 1.0), 0.0),
        surrogate_errors=surrogate_errors[0],
        fidelity_errors=share_errors[-1],
        share_errors=share_errors[:-1],
        noise=np.zeros((d, outputs)),
        n_unlike=count_unlike(game.f),
        effective_clusters=np.full(outputs, np.inf),
        effective=np.array(np.inf),
        answers_differ=np.asarray((np.ptp(game.f, axis=0) > 0).all()),
    )


def completed_account(game: CompletedGame, prediction: Floats, d: int) -> RowContributions:
    """Contributions to a prediction (k,)."""
    states = ExchangeableDesign(Coalitions.of(d)).states(1 << d)
    assert states is not None  # noqa: S101 - there are few
    values, errors = replace(game, f=game.f - prediction, means=game.means - prediction).estimates(states[2])
    unknown, nothing = np.full(values.shape, np.nan), np.zeros(prediction.size)
    return account_from(prediction, values, errors, unknown, unknown, nothing, calls=0)
