r"""Contributions of a function of a table from few answers, by the estimate that inputs have.

A row keeps the columns S of the explained row ξ and draws the others: its answer is v(S) = E f(ξ on S, Z
elsewhere) and noise. Sets are drawn as those of units are (``set_estimates.py``), each with its draw Z, so
that what a readable model g leaves of the answers estimates its contributions without bias, noise and all:

    φ_j ≈ γ_j + λ_j ρ_j,    ρ_j = (1/n) Σ_i within_s / q_s (z_ij - r_i/d) (f_i - g_i).

Some rows keep nothing: base = E g + the mean of f - g there, or the mean over a background whose answers are
known. What all together miss f(ξ) - base by is shared by the columns.

A model g has functions of columns, which see a value and whether it was kept (``game_controls.py``), because
a drawn value is known, and noise to sets alone. Each is fitted to all parts of the rows but one in turn:

- a ridge, and the LASSO, of all functions but kinks, and the LASSO of all functions;
- the LASSO of these with products of functions of two leading columns;
- a Gaussian process with products of all pairs of columns.

g is the convex combination that leaves least of the held-out answers, as for inputs (``set_controls.py``).
Against one other row there is nothing to draw, and the models of sets are those of inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING, Bools, Floats, Ints, are_complements
from limes._explainers.budget import LEAST_ROWS
from limes._explainers.set_controls import SHARES, ProcessOfPairs, convex, lasso, parts_of, ridge
from limes._explainers.set_estimates import EstimateOfSets, drawn_sets, influence_of
from limes._sampling.controls.control import evenly_spread
from limes._sampling.least_squares import student_factors
from limes._shapley.enumerated import enumerated, enumerated_indices
from limes._shapley.exact import RowContributions
from limes._shapley.game_controls import (
    ColumnFunctions,
    Game,
    GameLaw,
    IndependentDraws,
    OccurringDraws,
    SumOfPairs,
    likely_columns,
)
from limes._shapley.permutations import PermutationSampler, least_walked
from limes._shapley.sampled_pairs import WITHOUT_ROWS, SampledPairs
from limes._shapley.set_sampler import SetSampler, row_weights, scaled, wide_error_of_mean
from limes._shapley.starts import DrawnStarts
from limes._threads import one_blas_thread
from limes.exceptions import InputError
from limes.models._calling.caller import Calls, paced_calls
from limes.models._calling.counts import AnswerCount

# Calls below which this is better than pairs of sets with a control each: a number a column, within bounds
_A_COLUMN, _LEAST_BORDER, _MOST_BORDER = 40, 96, 440
# Rows that are all asked about, at most
_MOST_STATES = 512
# Share of the rows that keep nothing
_FOR_BASE = 1 / 6
# Such rows that show their variance
_SEVERAL = 5
# Columns whose functions are fitted, at most, and whose products are; and most products
_COLUMNS, _LEADING, _PRODUCTS = 100, 6, 160
# Rows that were answered before which models are fitted to, at most, and rows that all pairs are fitted to
_BEFORE, _MOST_OF_PAIRS = 256, 512
# Scales of functions: indicators of kept columns are ±1/2, and kinks follow lines
_KEPT, _KINK = 2.0, 0.5

_TINY = np.finfo(np.float64).tiny


def contributions_at(
    walks: PermutationSampler,
    law: GameLaw,
    prediction: Floats,
    before: DrawnStarts | None,
    spent: int,
    *,
    is_current: bool,
) -> RowContributions:
    """Contributions at the law's row by calls, given f there (k,); ``spent`` calls were made before."""
    sampling, columns = walks.sampling, np.flatnonzero(law.varies)
    most, border = sampling.max_calls - spent, _border(columns.size)
    tally = AnswerCount()
    with tally.counting(), one_blas_thread():
        calls = _calls(walks, most)

        def ask(x: Floats) -> Floats:
            if walks.check is not None and not is_current:
                walks.check()
            return np.asarray(calls.one_pass(calls)(x))

        account = None
        if sampling.is_function:
            account = enumerated(law, prediction, ask, min(most, _MOST_STATES))
        if account is None and columns.size > 1 and most < border:
            least = LEAST_ROWS - isinstance(law, OccurringDraws)
            if most < least:
                raise InputError(
                    f"{max(most, 0):,} calls are left for contributions, which need {least}: "
                    f"{walks.advice(least - most)}"
                )
            account = _FewRows(walks, law, prediction, before, most, columns).account(ask)
    if account is None:
        return SetSampler(walks).at(law, prediction, before, spent, is_current=is_current)
    return replace(account, calls=np.array([tally.rows]))


def enumerated_pairs_at(walks: PermutationSampler, law: GameLaw, prediction: Floats) -> SampledPairs | None:
    """Exact pairs of a function whose game has few rows; None where it has more."""
    calls = _calls(walks, walks.sampling.max_calls)

    def ask(x: Floats) -> Floats:
        if walks.check is not None:
            walks.check()
        return np.asarray(calls.one_pass(calls)(x))

    most = min(walks.sampling.max_calls, _MOST_STATES)
    indices = enumerated_indices(law, prediction, ask, most)
    return None if indices is None else SampledPairs(indices, np.zeros_like(indices))


def pairs_at(walks: PermutationSampler, law: GameLaw, prediction: Floats) -> SampledPairs:
    """Pairs of contributions at the law's row by few calls, given f there (k,)."""
    sampling, columns = walks.sampling, np.flatnonzero(law.varies)
    if law.starts.omitted is not None:
        raise InputError(WITHOUT_ROWS)
    with one_blas_thread():
        calls = _calls(walks, sampling.max_calls)
        if walks.check is not None:
            walks.check()
        game = _FewRows(walks, law, prediction, None, sampling.max_calls, columns)
        return game.pairs(calls.one_pass(calls))


def _calls(walks: PermutationSampler, most: int) -> Calls:
    """Calls of the model about at most this many rows."""
    sampling = walks.sampling
    make = paced_calls if sampling.is_function else Calls
    # what random answers have in common within a call must differ between parts
    batch = sampling.rows_a_call(max(1, most // 32))
    return make(walks.predict, batch_size=batch, retry=sampling.retry, is_function=sampling.is_function)


def _border(columns: int) -> int:
    return max(min(max(_A_COLUMN * columns, _LEAST_BORDER), _MOST_BORDER), least_walked(columns))


class _Fits(NamedTuple):
    """Sums of functions and of their products, by penalties: a of them, of k outputs."""

    answers: Floats  # at held-out rows, (a, n, k)
    coef: Floats  # (a, P, k)
    level: Floats  # (a, k)
    pairs: list[tuple[Ints, Floats]]  # of each output: functions (q, 2), coefficients (a, q)


@dataclass(frozen=True, eq=False)
class _Training:
    """Values of functions at rows (m, P) with answers (m, k), and at held-out rows."""

    values: Floats
    answers: Floats
    held: Floats
    functions: ColumnFunctions

    @cached_property
    def fitted(self) -> Ints:
        """The functions that are fitted: of columns which these answers follow, if there are many."""
        column = self.functions.column
        places = likely_columns(self.values, column, self.answers, _COLUMNS)
        return np.flatnonzero(np.isin(column, places))

    @cached_property
    def lines(self) -> Ints:
        """The same without kinks."""
        return self.fitted[~self.functions.is_kink[self.fitted]]

    @cached_property
    def lassos(self) -> tuple[Floats, Floats]:
        """LASSOs of these, also those that leading products are chosen by."""
        return lasso(self.values[:, self.lines], self.answers)

    def sums(self, its: Ints, coef: Floats, level: Floats) -> _Fits:
        """Fits (a, p, k) of some functions."""
        whole = np.zeros((len(coef), self.values.shape[1], coef.shape[2]))
        whole[:, its] = coef
        none = (np.zeros((0, 2), dtype=np.int64), np.zeros((len(coef), 0)))
        return _Fits(level[:, None] + self.held[:, its] @ coef, whole, level, [none] * coef.shape[2])


def _ridge_of_lines(its: _Training) -> _Fits:
    scale = np.where(its.functions.is_kept[its.lines], _KEPT, 1.0)
    slopes, level = ridge(its.values[:, its.lines] * scale, its.answers)
    return its.sums(its.lines, (scale[:, None] * slopes)[None], level[None])


def _lasso_of_lines(its: _Training) -> _Fits:
    return its.sums(its.lines, *its.lassos)


def _lasso_of_all(its: _Training) -> _Fits:
    return its.sums(its.fitted, *lasso(its.values[:, its.fitted], its.answers))


def _lasso_of_products(its: _Training) -> _Fits:
    functions, x = its.functions, its.values[:, its.lines]
    first, level = its.lassos
    column = functions.column[its.lines]
    parts = []
    for k in range(its.answers.shape[1]):
        size = np.abs(first[len(SHARES) // 2 : len(SHARES), :, k]).sum(axis=0)
        order = np.argsort(-np.bincount(column, size, minlength=functions.columns.size), kind="stable")
        its_pairs = _products_of(functions, order[:_LEADING])
        both, held = (v[:, its_pairs[:, 0]] * v[:, its_pairs[:, 1]] for v in (its.values, its.held))
        middle = len(SHARES) // 2
        rest = its.answers[:, k] - level[middle, k] - x @ first[middle, :, k]
        some = _following(both, rest)
        both, held, its_pairs = both[:, some], held[:, some], its_pairs[some]
        coef, of_k = lasso(np.concatenate([x, both], axis=1), its.answers[:, k : k + 1])
        sums = its.sums(its.lines, coef[:, : its.lines.size], of_k)
        of_pairs = coef[:, its.lines.size :, 0]
        answers = sums.answers + (of_pairs @ held.T)[:, :, None]
        parts.append(sums._replace(answers=answers, pairs=[(its_pairs, of_pairs)]))
    answers, coef, level = (
        np.concatenate(each, axis=-1) for each in zip(*(p[:3] for p in parts), strict=True)
    )
    return _Fits(answers, coef, level, [part.pairs[0] for part in parts])


def _products_of(functions: ColumnFunctions, columns: Ints) -> Ints:
    """Pairs of functions of two of these columns, (q, 2)."""
    its = functions.multiplies[np.isin(functions.column[functions.multiplies], columns)]
    pairs = its[np.stack(np.triu_indices(its.size, 1), axis=1)]
    return np.asarray(pairs[functions.column[pairs[:, 0]] != functions.column[pairs[:, 1]]])


def _following(products: Floats, rest: Floats) -> Ints:
    """Places of the products (n, q) that a rest (n,) follows most."""
    away = products - products.mean(axis=0)
    size = np.sqrt((away**2).sum(axis=0))
    follows = np.abs(away.T @ rest) / np.maximum(size, _TINY)
    return np.sort(np.argsort(-follows, kind="stable")[:_PRODUCTS])


_KINDS: tuple[Callable[[_Training], _Fits], ...] = (
    _ridge_of_lines,
    _lasso_of_lines,
    _lasso_of_all,
    _lasso_of_products,
)


class _Mean(NamedTuple):
    """The mean over all fits of one kind, of an output."""

    answers: Floats  # at held-out rows, (n,)
    sum: SumOfPairs


def _mean_of(functions: ColumnFunctions, fits: list[_Fits], part: Ints, f: Floats, output: int) -> _Mean:
    """Fits without each part, with the penalty that predicts an output f (n,) of held-out rows best."""
    answers = np.empty((len(fits[0].answers), f.size))
    for i, fit in enumerate(fits):
        answers[:, part == i] = fit.answers[:, :, output]
    best = int(((f - answers) ** 2).sum(axis=1).argmin())
    coef, level = (np.mean([its[best, ..., output] for its in each], axis=0) for each in _coefs(fits))
    pairs, of_pairs = zip(*(fit.pairs[output] for fit in fits), strict=True)
    chosen = [its[best] / len(fits) for its in of_pairs]
    products = np.concatenate(pairs), np.concatenate(chosen)[:, None]
    return _Mean(answers[best], SumOfPairs(functions, coef[:, None], np.atleast_1d(level), *products))


def _coefs(fits: list[_Fits]) -> tuple[list[Floats], list[Floats]]:
    return [fit.coef for fit in fits], [fit.level for fit in fits]


# -- all pairs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _PairsOfColumns:
    """The process with covariance 1 + Σ_j κ_j + ratio Σ_jl κ_j κ_l, κ_j of a column's functions."""

    functions: ColumnFunctions
    values: Floats  # (n, P)
    process: ProcessOfPairs = field(default_factory=ProcessOfPairs)

    @cached_property
    def _scale(self) -> Floats:
        its = self.functions
        return np.where(its.is_kept, _KEPT, np.where(its.is_kink, _KINK, 1.0))

    @cached_property
    def _some(self) -> Ints:
        """The rows that it is fitted to, evenly spread if there are many."""
        return np.arange(len(self.values))[evenly_spread(len(self.values), _MOST_OF_PAIRS)]

    def _of_column(self, j: int, x: Floats) -> Floats:
        """κ_j of values (m, P) and the rows that it is fitted to, (m, q)."""
        its = self.functions.column == j
        return np.asarray((x[:, its] * self._scale[its] ** 2) @ self.values[np.ix_(self._some, its)].T)

    def _sums(self, x: Floats) -> tuple[Floats, Floats]:
        """Σ_j κ_j, and Σ_{j<l} κ_j κ_l."""
        total, squares = np.zeros((2, len(x), self._some.size))
        for j in range(self.functions.columns.size):
            its = self._of_column(j, x)
            total, squares = total + its, squares + its**2
        return total, (total**2 - squares) / 2.0

    @cached_property
    def _kernels(self) -> tuple[Floats, Floats, float, float]:
        """Both of all rows, (n, q), in units of their mean variances, and these units."""
        both = self._sums(self.values)
        first, second = (float(np.trace(its[self._some])) / self._some.size or 1.0 for its in both)
        return both[0] / first, both[1] / second, first, second

    def fit(self, held: Ints, f: Floats) -> tuple[Floats, Floats, Floats]:
        """Answers to held rows (h, k), levels (k,), and weights (q, k), by answers f (n, k) to others."""
        single, double, *_ = self._kernels
        fitted = np.flatnonzero(~np.isin(self._some, held))
        rows, weights = self._some[fitted], np.zeros((self._some.size, f.shape[1]))
        at, at_held = np.ix_(rows, fitted), np.ix_(held, fitted)
        level, weights[fitted] = self.process.fit(1.0 + single[at], double[at], f[rows])
        answers = self.process.answers(1.0 + single[at_held], double[at_held], level, weights[fitted])
        return answers, level, weights

    def indices(self, output: int, weights: Floats) -> Floats:
        """Shapley interaction indices of two columns, (m, m), of weights (q,)."""
        ratio, functions = self.process.ratios[output] / self._kernels[3], self.functions
        at_row, drawn, m = functions.at_row[None], functions.drawn, functions.columns.size
        away = [self._of_column(j, at_row)[0] - self._of_column(j, drawn) for j in range(m)]
        indices, of_rows = np.zeros((m, m)), functions.law.weights[:, None] * weights
        for j in range(m):
            for i in range(j):
                indices[i, j] = indices[j, i] = ratio * float((of_rows * away[i] * away[j]).sum())
        return indices

    def game(self, output: int, level: float, weights: Floats) -> Game:
        """The game of weights (q,) of the rows that it is fitted to."""
        *_, unit, of_pairs = self._kernels
        ratio = self.process.ratios[output] / of_pairs
        at_row, drawn = self.functions.at_row[None], self.functions.drawn
        kept, beside = self._sums(at_row)[0][0], self._sums(drawn)
        base = level + (1.0 + beside[0] / unit + ratio * beside[1]) @ weights
        values, alone, last = np.zeros((3, len(drawn), self.functions.columns.size))
        for j in range(self.functions.columns.size):
            its, other = self._of_column(j, at_row)[0], self._of_column(j, drawn)
            away, of_kept, of_drawn = its - other, kept - its, beside[0] - other
            single = away / unit
            values[:, j] = (single + 0.5 * ratio * away * (of_kept + of_drawn)) @ weights
            alone[:, j] = (single + ratio * away * of_drawn) @ weights
            last[:, j] = (single + ratio * away * of_kept) @ weights
        return Game(base[:, None], values[..., None], alone[..., None], last[..., None])


# -- the account ---------------------------------------------------------------------------------------------


class _Fitted(NamedTuple):
    """A model g that is fitted without each part of the rows: its rest of them, and its game."""

    rest: Floats  # what it leaves of rows that it does not know, (n, k)
    base: Floats  # at each row of the background, (R, k)
    values: Floats  # (R, m, k)
    alone: Floats
    last: Floats
    indices: Callable[[], Floats]  # interaction indices of two columns, (m, m, k)


class _Drawn(NamedTuple):
    """Rows x, of which ``kept`` are the explained row's; the sets z of the first with their weights."""

    x: Floats
    kept: Bools
    z: Floats
    weights: Floats
    f: Floats  # answers in units (n, k), to x, to rows before, and to the row
    unit: Floats  # (k,)


class _Base(NamedTuple):
    """E f and its error, (k,) each."""

    value: Floats
    errors: Floats


@dataclass(frozen=True, eq=False)
class _FewRows:
    """The account of one row, and all that it is computed from."""

    walks: PermutationSampler
    law: GameLaw
    prediction: Floats  # (k,)
    before: DrawnStarts | None
    most: int
    columns: Ints  # that vary

    def account(self, ask: Callable[[Floats], Floats]) -> RowContributions:
        its, has_complement = self._answered(ask, self._stream())
        account = self._of_answers(its)
        return account.with_complement() if has_complement else account

    def pairs(self, ask: Callable[[Floats], Floats]) -> SampledPairs:
        """Pairs of contributions, by other sets than the account's."""
        its, has_complement = self._answered(ask, self._stream().spawn(1)[0])
        indices, errors = self._indices(its)
        if has_complement:
            indices, errors = (
                np.concatenate([sign * number, number], axis=-1)
                for sign, number in ((-1.0, indices), (1.0, errors))
            )
        d, its_columns = self.law.row.size, np.ix_(self.columns, self.columns)
        both = np.zeros((2, d, d, indices.shape[-1]))
        both[0][its_columns], both[1][its_columns] = indices, errors
        return SampledPairs(*both)

    def _answered(self, ask: Callable[[Floats], Floats], rng: np.random.Generator) -> tuple[_Drawn, bool]:
        """Rows that were drawn, with answers, and whether the first output is one less the second."""
        law = self.law
        for_base = 0
        if isinstance(law, IndependentDraws):
            for_base = min(max(1, round(_FOR_BASE * self.most)), self.most - LEAST_ROWS + 1)
        z, weights = drawn_sets(rng, self.most - for_base, self.columns.size, 0)
        kept = np.zeros((self.most, law.row.size), dtype=np.bool_)
        kept[: len(z), self.columns] = z > 0
        x = np.where(kept | ~law.varies, law.row, law.draw(rng, self.most))
        answers = np.asarray(ask(x)).reshape(self.most, -1)
        every = np.concatenate([answers, self._before[1], self.prediction[None]])
        first = int(are_complements(every))
        return _Drawn(x, kept, z, weights, *scaled(every[:, first:])), bool(first)

    def _stream(self) -> np.random.Generator:
        return np.random.default_rng(self.walks.stream(self.law.row).spawn(2)[1])

    @cached_property
    def _before(self) -> tuple[Floats, Floats]:
        """Rows that keep nothing, with answers: those of a background, or of coefficients."""
        law, before = self.law, self.before
        if isinstance(law, OccurringDraws):
            before = DrawnStarts(law.starts.background, law.starts.answers)
        if before is None:
            return np.zeros((0, law.row.size)), np.zeros((0, self.prediction.size))
        some = evenly_spread(len(before.z), _BEFORE)
        return before.z[some], np.asarray(before.answers).reshape(len(before.z), -1)[some]

    def _indices(self, drawn: _Drawn) -> tuple[Floats, Floats]:
        """Interaction indices (m, m, k), and the errors of what the matrix of pairs has of them.

        Σ_S ± v(S) / ((m - 1) C(m - 2, |S - {i, j}|)) has + where i and j are both kept or both drawn. A
        set of r columns was drawn with probability q_r / C(m, r); none and all count 1 / (m - 1) each.
        """
        x, kept, z, weights, f, unit = drawn
        law, m, prediction, n = self.law, self.columns.size, f[-1], len(z)
        fitted = self._fitted(x, kept, f, n)
        base = self._base(fitted, f, unit, n)
        weighed = row_weights(law, fitted.values)
        of_base = weighed @ fitted.base
        of_ends = base.value + prediction - 2.0 * of_base - np.einsum("r,rmk->k", weighed, fitted.values)
        i, j = np.triu_indices(m, 1)
        size = z.sum(axis=1)
        hidden = m - size
        # weights are m / (r s q_r)
        influence = np.where(z[:, i] == z[:, j], 0.0, -weights[:, None])
        for sign, count, other in ((1.0, size, hidden), (0.0, hidden, size)):
            alike = np.divide(weights * other, count - 1.0, out=np.zeros(n), where=count > 1)
            influence += np.where((z[:, i] == sign) & (z[:, j] == sign), alike[:, None], 0.0)
        rest, unlike = fitted.rest[:n], np.concatenate([f[: len(x)], f[-1:]]).var(axis=0)
        gamma = fitted.indices()[i, j] + of_ends / (m - 1.0)
        estimate = EstimateOfSets.of_numbers(gamma, rest, influence, unlike)
        values, of_pairs = estimate.values, 0.5 * estimate.errors()
        sums = 0.5 * ((i[:, None] == np.arange(m)) + (j[:, None] == np.arange(m)))
        of_rows = estimate.errors(sums)
        spread = self.walks.sampling.spread / unit
        noise = np.hypot(base.errors, np.sqrt(2.0) * spread)
        indices, errors = np.zeros((2, m, m, unit.size))
        indices[i, j] = indices[j, i] = values * unit
        errors[i, j] = errors[j, i] = np.hypot(of_pairs, 0.5 * noise / (m - 1.0)) * unit
        diagonal = np.arange(m)
        errors[diagonal, diagonal] = np.hypot(of_rows, 0.5 * noise) * unit
        return indices, errors

    def _of_answers(self, drawn: _Drawn) -> RowContributions:
        """The account by answers to the rows that were drawn."""
        x, kept, z, weights, f, unit = drawn
        law, m, prediction = self.law, self.columns.size, f[-1]
        fitted = self._fitted(x, kept, f, len(z))
        base = self._base(fitted, f, unit, len(z))
        weighed = row_weights(law, fitted.values)
        gamma, alone, last = (np.einsum("r,rmk->mk", weighed, its) for its in fitted[2:5])
        rest, unlike = fitted.rest[: len(z)], np.concatenate([f[: len(x)], f[-1:]]).var(axis=0)
        its = EstimateOfSets.of_rest(gamma, rest, influence_of(z, weights), prediction - base.value, unlike)
        values, errors = its.values, np.hypot(its.errors(), base.errors / m)
        values[np.abs(values) <= DIFFERENCE_ROUNDING * np.abs(f).max(axis=0)] = 0.0
        if (omitted := law.starts.omitted) is not None:
            away = np.einsum("r,rmk->mk", weighed, (fitted.values - gamma) ** 2)
            of_omitted = _widened(omitted.effective) * np.sqrt(omitted.share * away / omitted.effective)
            errors = np.hypot(errors, of_omitted)
        errors = np.hypot(errors, law.rounding * np.abs(values).max(initial=0.0))
        spread = self.walks.sampling.spread / unit
        # what the values were moved by, they were moved by alone and last, too
        moved = values - gamma
        numbers = np.zeros((4, law.row.size, unit.size))
        numbers[:, self.columns] = values, np.hypot(errors, spread / m), alone + moved, last + moved
        values, errors, alone, last = numbers * unit
        its_base = self.prediction[self.prediction.size - unit.size :] - values.sum(axis=0)
        whole = its_base, values, errors, alone, last, np.array(0), np.hypot(base.errors, spread) * unit
        return RowContributions(*(np.asarray(number)[None] for number in whole))

    def _fitted(self, x: Floats, kept: Bools, f: Floats, sets: int) -> _Fitted:
        n, functions = len(x), ColumnFunctions(self.law, self.columns)
        none = np.zeros((len(self._before[0]), x.shape[1]), dtype=np.bool_)
        values = np.concatenate(
            [functions(x, kept), functions(self._before[0], none), functions.at_row[None]]
        )
        count = min(parts_of(n), sets)
        part = np.concatenate([np.arange(sets), np.arange(n - sets)]) % count
        fits: list[list[_Fits]] = [[] for _ in _KINDS]
        process, by_process = _PairsOfColumns(functions, values), np.empty((n, f.shape[1]))
        levels, duals = [], []
        for i in range(count):
            held = np.flatnonzero(part == i)
            rows = np.setdiff1d(np.arange(len(values)), held)
            training = _Training(values[rows], f[rows], values[held], functions)
            for each, kind in zip(fits, _KINDS, strict=True):
                each.append(kind(training))
            by_process[held], level, dual = process.fit(held, f)
            levels.append(level)
            duals.append(dual)
        rest, games = np.empty((n, f.shape[1])), []
        sums, shares_of_process = list[SumOfPairs](), list[float]()
        level, dual = np.mean(levels, axis=0), np.mean(duals, axis=0)
        for o in range(f.shape[1]):
            means = [_mean_of(functions, each, part, f[:n, o], o) for each in fits]
            predicted = np.stack([*(mean.answers for mean in means), by_process[:, o]], axis=1)
            *shares, of_process = convex(predicted, f[:n, o])
            rest[:, o] = f[:n, o] - predicted @ [*shares, of_process]
            sums.append(_joined(functions, shares, [mean.sum for mean in means]))
            shares_of_process.append(of_process)
            games.append(_sum(sums[o].game(), of_process, process.game(o, level[o], dual[:, o])))

        def indices() -> Floats:
            each = [
                its.indices()[..., 0] + share * process.indices(o, dual[:, o])
                for o, (its, share) in enumerate(zip(sums, shares_of_process, strict=True))
            ]
            return np.stack(each, axis=-1)

        base, values, alone, last = (np.concatenate(each, axis=-1) for each in zip(*games, strict=True))
        return _Fitted(rest, base, values, alone, last, indices)

    def _base(self, fitted: _Fitted, f: Floats, unit: Floats, sets: int) -> _Base:
        law, n = self.law, len(fitted.rest)
        if isinstance(law, OccurringDraws):
            answers = law.starts.answers[:, -unit.size :]
            errors = np.zeros(unit.size)
            if (omitted := law.starts.omitted) is not None:
                errors = _widened(omitted.effective) * np.sqrt(omitted.base[-unit.size :])
            return _Base(law.weights @ answers / unit, errors / unit)
        of_base, every = fitted.rest[sets:], fitted.rest
        mean = row_weights(law, fitted.base) @ fitted.base + of_base.mean(axis=0)
        # others show the variance of few, which may be the larger one where nothing is kept
        errors = wide_error_of_mean(every) * np.sqrt(n / len(of_base))
        if len(of_base) >= _SEVERAL:
            errors = np.maximum(errors, wide_error_of_mean(of_base))
        else:
            errors = errors * np.sqrt(2.0)
        # a row that was not drawn may be one that g does not explain
        return _Base(mean, np.sqrt(errors**2 + f.var(axis=0) / n**2))


def _widened(effective: float) -> Floats:
    """The factor on errors that as many rows show."""
    return student_factors(np.array(max(effective - 1.0, 1.0)))


def _joined(functions: ColumnFunctions, shares: list[float], sums: list[SumOfPairs]) -> SumOfPairs:
    """The sum of shares of sums, each product once."""
    coef = np.sum([p * its.coef for p, its in zip(shares, sums, strict=True)], axis=0)
    level = np.sum([p * its.intercept for p, its in zip(shares, sums, strict=True)], axis=0)
    of_pairs = np.concatenate([p * its.of_pairs for p, its in zip(shares, sums, strict=True)])
    every = np.concatenate([its.pairs for its in sums])
    pairs, place = np.unique(every, axis=0, return_inverse=True)
    whole = np.zeros((len(pairs), 1))
    np.add.at(whole, place.reshape(-1), of_pairs)
    on = whole[:, 0] != 0
    return SumOfPairs(functions, coef, level, pairs[on], whole[on])


def _sum(game: Game, share: float, other: Game) -> Game:
    return Game(*(a + share * b for a, b in zip(game, other, strict=True)))
