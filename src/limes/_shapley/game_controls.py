r"""Functions of a game whose Shapley values are exact, of which controls of a black box are made.

A column has either the explained row's value ξ_j, *kept*, or a *drawn* one. A control is

    g = c + Σ_j u_j + Σ_jl v_j v_l + r,

u_j and v_j functions of a column that also see whether the value was kept: an indicator of that, the column,
kinks at quantiles, indicators of values. Their contributions are

    φ_j(u_j) = u_j(ξ) - E u_j,    φ_j(v_j v_l) = ½ E (v_j(ξ) - v_j)(v_l(ξ) + v_l),

and the rest r is a kernel regression on the columns, whose products of bumps have those of ``exact.py``, or
boosted trees. Coefficients have normal priors with a variance for each group of functions, which follow from
the answers (MacKay 1992; Tipping 2001): groups that explain nothing get none, so that a function of few
columns has a control of few columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._expectations.forest import ForestExpectation
from limes._sampling.controls.control import PENALTIES
from limes._sampling.controls.tables import tree_control
from limes._shapley.interventional import against
from limes._shapley.starts import OccurringStarts, ProductStarts, in_slices, same
from limes.designs._column import ColumnOfLaws
from limes.designs._marginals import Atoms, BinCells
from limes.designs._product import ProductFamily

# Values of a density that its mean is taken over, of each piece
_VALUES = 1024
# Numbers up to which each value has an indicator, and most indicators of a column
_FEW_VALUES, _MOST_LEVELS = 6, 12
# Quantiles with kinks; the middle one is in products of columns, too
_KINKS, _MIDDLE = (0.2, 0.5, 0.8), 0.5
# Columns that have functions at most, and products of two of these: those that residuals follow most
_MOST_COLUMNS, _MOST_PAIRS = 48, 40
# Steps by which variances of groups are learnt, the change that ends them, and shares of the answers'
# variance that are rounding
_STEADY = 0.05
_STEPS, _NO_VARIANCE, _LEAST_NOISE = 25, 1e-7, 1e-10
# Centres of the kernel, its widths, and rows that these are chosen by
_CENTRES, _WIDTHS, _CHOOSING = 600, (0.6, 1.0, 1.6, 2.5), 192
_PENALTIES = PENALTIES[2::2]
# Rows whose distances from these are held at once: 20 MB
_BLOCK = 4096
# Trees, leaves of each, and learning rate
_TREES = 30, 6, 0.3
# Numbers of a table of bumps, at most
_BUMPS = 1 << 23
# Most columns that bumps are products of
_MOST_BUMPS = 40


class Game(NamedTuple):
    """Numbers of a game by row of the background, (R, ...); R = 1 where columns are independent."""

    base: Floats  # (R, k)
    values: Floats  # (R, d, k)
    alone: Floats  # (R, d, k)
    last: Floats  # (R, d, k)

    def plus(self, other: Game) -> Game:
        return Game(*(a + b for a, b in zip(self, other, strict=True)))

    def split(self, count: int) -> list[Game]:
        """Games of as many equal shares of the outputs."""
        return [Game(*its) for its in zip(*(np.split(its, count, axis=-1) for its in self), strict=True)]


@dataclass(frozen=True, eq=False)
class IndependentDraws:
    """Columns of a product law around a row (d,)."""

    row: Floats
    starts: ProductStarts
    family: ProductFamily

    @cached_property
    def varies(self) -> Bools:
        return self.starts.varies(self.row)

    @cached_property
    def numeric(self) -> Bools:
        return np.array([isinstance(law.cells, BinCells) for law in self.starts.design.laws])

    @cached_property
    def _supports(self) -> list[tuple[Floats, Floats, bool]]:
        return [_support_of(column) for column in self.starts.design.coordinates]

    @property
    def rounding(self) -> float:
        """Error of means, as a share of functions."""
        return 0.0 if all(exact for *_, exact in self._supports) else 1.0 / _VALUES**2

    @property
    def weights(self) -> Floats:
        """For the background's rows that games are made at, (R,): means take their place."""
        return np.ones(1)

    def support(self, column: int) -> tuple[Floats, Floats]:
        """Values of a column and their probabilities."""
        return self._supports[column][:2]

    def over(self, column: int, function: Callable[[Floats], Floats]) -> Floats:
        """A column's function, (n,) to (n, q), at the background's rows, or its mean: (R, q)."""
        values, weights = self.support(column)
        return np.asarray(weights @ function(values))[None]

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        # each column has a value in each of as many slices of its law, tails among them
        levels = in_slices(rng, 1, count, self.row.size)[0]
        return self.starts.design.draw(levels)[0]

    def of_forest(self, forest: Any) -> tuple[Floats, Floats]:
        """Base (k,), and contributions, those alone and last, (3, d, k), of trees."""
        x = self.row[None]
        base, sums = ForestExpectation(forest).contributions(self.family, x, self.family.cells(x))
        return base[0], sums[0]


@dataclass(frozen=True, eq=False)
class OccurringDraws:
    """Rows of a background with weights."""

    row: Floats
    starts: OccurringStarts
    family: ProductFamily  # of the background's cells

    rounding = 0.0

    @property
    def weights(self) -> Floats:
        return self.starts.around.weights

    @cached_property
    def varies(self) -> Bools:
        return self.starts.varies(self.row)

    @cached_property
    def numeric(self) -> Bools:
        return np.array([isinstance(law.cells, BinCells) for law in self.family.marginals])

    def support(self, column: int) -> tuple[Floats, Floats]:
        return self.starts.background[:, column], self.weights

    def over(self, column: int, function: Callable[[Floats], Floats]) -> Floats:
        return np.asarray(function(self.starts.background[:, column]))

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        below = np.cumsum(self.weights)
        # one row in each of as many slices of the background
        levels = (rng.permutation(count) + rng.random(count)) / count * below[-1]
        places = np.minimum(np.searchsorted(below, levels, side="right"), len(below) - 1)
        return np.asarray(self.starts.background[places])

    def of_forest(self, forest: Any) -> tuple[Floats, Floats]:
        its = against(forest, self.starts.background)(self.row[None], self.weights[None])
        return its.base[0], np.stack([its.values[0], its.alone[0], its.last[0]])


# Where drawn values come from
GameLaw: TypeAlias = IndependentDraws | OccurringDraws


def _support_of(column: ColumnOfLaws) -> tuple[Floats, Floats, bool]:
    """Values and probabilities of a column's law, and whether it has no others."""
    law, mass = column.marginal, column.probability
    values, weights, exact = list[Floats](), list[Floats](), True
    levels = (np.arange(_VALUES) + 0.5) / _VALUES
    for measure, owners in zip(law.measures, law.split(law.owners), strict=True):
        weight = measure.weight * mass[owners]
        if isinstance(measure, Atoms):
            values.append(np.asarray(measure.value, dtype=np.float64))
            weights.append(weight)
            continue
        for piece in np.flatnonzero(weight > 0).tolist():
            exact = False
            values.append(measure.quantile(np.full(_VALUES, piece), levels))
            weights.append(np.full(_VALUES, weight[piece] / _VALUES))
    weight = np.concatenate(weights)
    return np.concatenate(values), weight / weight.sum(), exact


# -- functions of single columns -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ColumnFunctions:
    """Functions of some columns, whose values have mean 0 and deviation 1 where these are drawn.

    The first of a column is the indicator of a kept value, at which a drawn one is 0.
    """

    law: GameLaw
    columns: Ints  # (m,)

    @cached_property
    def _each(self) -> list[_OfColumn]:
        return [_OfColumn.of(self.law, j) for j in self.columns.tolist()]

    @cached_property
    def column(self) -> Ints:
        """The column of each function, by its place among all that are used, (p,)."""
        return np.concatenate([np.full(1 + its.size, i) for i, its in enumerate(self._each)])

    @cached_property
    def is_kept(self) -> Bools:
        """Which functions are indicators of kept values, (p,)."""
        return np.concatenate([[True] + [False] * its.size for its in self._each])

    @cached_property
    def is_kink(self) -> Bools:
        """Which functions are kinks, (p,)."""
        return np.concatenate(
            [np.repeat([False, True], [1 + its.size - its.knots.size, its.knots.size]) for its in self._each]
        )

    @cached_property
    def multiplies(self) -> Ints:
        """Functions that products of columns are made of."""
        return np.flatnonzero(np.concatenate([[True, *its.multiplies] for its in self._each]))

    def __call__(self, x: Floats, kept: Bools) -> Floats:
        """Values (n, p) at rows, of which ``kept`` (n, d) are the explained row's."""
        parts = []
        for j, its in zip(self.columns.tolist(), self._each, strict=True):
            parts += [kept[:, j, None] - 0.5, its(x[:, j])]
        return np.concatenate(parts, axis=1)

    @cached_property
    def at_row(self) -> Floats:
        x = self.law.row[None]
        return np.asarray(self(x, np.ones_like(x, dtype=np.bool_))[0])

    @cached_property
    def drawn(self) -> Floats:
        """Values at the background's rows, or their means, (R, p)."""
        rows, parts = self.law.weights.size, []
        for j, its in zip(self.columns.tolist(), self._each, strict=True):
            parts += [np.full((rows, 1), -0.5), self.law.over(j, its)]
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class _OfColumn:
    levels: Floats  # values with an indicator; NaN stands for all that are missing
    knots: Floats  # of kinks; none of a column that has no line
    is_line: bool
    center: float = 0.0
    unit: float = 1.0
    mean: Floats = field(default_factory=lambda: np.zeros(0))
    deviation: Floats = field(default_factory=lambda: np.zeros(0))
    multiplies: list[bool] = field(default_factory=list)

    @property
    def size(self) -> int:
        return self.levels.size + (1 + self.knots.size) * self.is_line

    @classmethod
    def of(cls, law: GameLaw, column: int) -> _OfColumn:
        values, weights = law.support(column)
        missing = np.isnan(values)
        numbers, mass = values[~missing], weights[~missing]
        distinct, place = np.unique(numbers, return_inverse=True)
        share = np.bincount(place, mass, minlength=distinct.size)
        absent = np.full(int(0 < missing.sum() < missing.size or np.isnan(law.row[column])), np.nan)
        if not law.numeric[column] or distinct.size <= _FEW_VALUES:
            often = np.argsort(-share, kind="stable")[1 : 1 + _MOST_LEVELS]
            bare = cls(np.append(distinct[np.sort(often)], absent), np.zeros(0), is_line=False)
            return bare._standardised(law, column, [True] * bare.size)
        below = np.cumsum(share)
        knots = distinct[np.searchsorted(below, np.array(_KINKS) * below[-1]).clip(0, distinct.size - 1)]
        center = float(np.average(distinct, weights=share))
        unit = float(np.sqrt(np.average((distinct - center) ** 2, weights=share))) or 1.0
        bare = cls(absent, knots, is_line=True, center=center, unit=unit)
        middle = [knot == _MIDDLE for knot in _KINKS]
        return bare._standardised(law, column, [True] * absent.size + [True, *middle])

    def _standardised(self, law: GameLaw, column: int, multiplies: list[bool]) -> _OfColumn:
        values, weights = law.support(column)
        raw = self._raw(values)
        mean = weights @ raw
        deviation = np.sqrt(weights @ (raw - mean) ** 2)
        deviation = np.where(deviation > 0, deviation, 1.0)
        return _OfColumn(
            self.levels, self.knots, self.is_line, self.center, self.unit, mean, deviation, multiplies
        )

    def _raw(self, x: Floats) -> Floats:
        parts = [same(x[:, None], self.levels).astype(np.float64)]
        if self.is_line:
            # what is missing is at the middle
            steps = np.where(np.isnan(x), 0.0, (x - self.center) / self.unit)[:, None]
            parts += [steps, np.maximum(steps - (self.knots - self.center) / self.unit, 0.0)]
        return np.concatenate(parts, axis=1)

    def __call__(self, x: Floats) -> Floats:
        return np.asarray((self._raw(x) - self.mean) / self.deviation)


# -- coefficients --------------------------------------------------------------------------------------------


def group_regression(x: Floats, groups: Ints, y: Floats) -> tuple[Floats, Floats]:
    """Coefficients (p, k) and intercepts (k,) of answers (n, k) by columns (n, p), of groups 0, 1, ...

    The prior variance of a group, and the noise, are those of the largest evidence, by MacKay's steps.
    """
    n, k = y.shape
    center, mean = x.mean(axis=0), y.mean(axis=0)
    size = y.std(axis=0)
    target = (y - mean) / np.where(size > 0, size, 1.0)
    away = x - center
    gram, product = away.T @ away, away.T @ target
    count = np.bincount(groups)
    prior = np.where(count > 0, 1.0 / np.maximum(count, 1) / max(1, count.size), 0.0)
    noise, coef = 0.5, np.zeros((x.shape[1], k))
    total = float((target**2).sum())
    for _ in range(_STEPS):
        last = np.append(prior, noise)
        live = np.flatnonzero(prior[groups] > _NO_VARIANCE)
        coef = np.zeros_like(coef)
        if not live.size or not total:
            break
        root, of_group = np.sqrt(prior[groups[live]]), groups[live]
        normal = root[:, None] * gram[np.ix_(live, live)] * root / noise
        normal[np.diag_indices_from(normal)] += 1.0
        spread = _inverse(normal)
        coef[live] = root[:, None] * (spread @ (root[:, None] * product[live])) / noise
        decided = 1.0 - np.diag(spread)
        squares = np.bincount(of_group, (coef[live] ** 2).mean(axis=1), minlength=prior.size)
        effective = np.bincount(of_group, decided, minlength=prior.size)
        prior = np.divide(squares, effective, out=np.zeros_like(squares), where=effective > _NO_VARIANCE)
        rest = total - 2.0 * (coef * product).sum() + (coef * (gram @ coef)).sum()
        freedom = k * max(n - decided.sum(), 0.1 * n)
        noise = max(float(rest) / freedom, _LEAST_NOISE)
        now = np.append(prior, noise)
        if (np.abs(now - last) <= _STEADY * np.maximum(now, _STEADY * now.max())).all():
            break
    coef = coef * size
    return coef, mean - center @ coef


def _inverse(matrix: Floats) -> Floats:
    """The inverse of a symmetric matrix whose eigenvalues are 1 or larger, but for rounding."""
    try:
        return np.asarray(np.linalg.inv(matrix))
    except np.linalg.LinAlgError:  # eigenvalues too far apart
        values, vectors = np.linalg.eigh(matrix)
        return np.asarray(vectors / np.maximum(values, 1.0) @ vectors.T)


@dataclass(frozen=True, eq=False)
class SumOfPairs:
    """Functions of single columns, and products of two."""

    functions: ColumnFunctions
    coef: Floats  # (p, k)
    intercept: Floats
    pairs: Ints  # (q, 2)
    of_pairs: Floats  # (q, k)

    @classmethod
    def fit(cls, functions: ColumnFunctions, values: Floats, y: Floats) -> tuple[SumOfPairs, SumOfPairs]:
        """Fit answers (n, k) by functions at rows (n, p): a sum of columns, and one with products."""
        # a column's indicator of kept values is a group by itself
        groups = 2 * functions.column + functions.is_kept
        coef, intercept = group_regression(values, groups, y)
        none = np.zeros((0, 2), dtype=np.int64)
        additive = cls(functions, coef, intercept, none, np.zeros((0, y.shape[1])))
        pairs = _likely_pairs(functions, values, y - intercept - values @ coef)
        if not len(pairs):
            return additive, additive
        used = np.flatnonzero(coef.any(axis=1)) if coef.any() else np.arange(len(coef))
        both = np.concatenate([values[:, used], values[:, pairs[:, 0]] * values[:, pairs[:, 1]]], axis=1)
        names = np.concatenate([groups[used], groups.max() + 1 + np.arange(len(pairs))])
        fitted, intercept = group_regression(both, np.unique(names, return_inverse=True)[1], y)
        coef = np.zeros_like(coef)
        coef[used] = fitted[: used.size]
        return additive, cls(functions, coef, intercept, pairs, fitted[used.size :])

    @property
    def importance(self) -> Floats:
        single, double = np.abs(self.coef).sum(axis=1), np.abs(self.of_pairs).sum(axis=1)
        columns, count = self.functions.column, self.functions.columns.size
        total = np.bincount(columns, single, minlength=count)
        for side in (0, 1):
            total = total + np.bincount(columns[self.pairs[:, side]], double, minlength=count)
        return np.asarray(total, dtype=np.float64)

    def predict(self, values: Floats) -> Floats:
        """Values (n, k) where the functions are (n, p)."""
        products = values[:, self.pairs[:, 0]] * values[:, self.pairs[:, 1]]
        return np.asarray(self.intercept + values @ self.coef + products @ self.of_pairs)

    def changes(self, values: Floats) -> Floats:
        """The most that one column changes where the functions are (n, p), in a tenth of the rows, (k,)."""
        functions = self.functions
        away, owners = functions.at_row - values, np.eye(functions.columns.size)[functions.column]
        first, second = self.pairs.T
        largest = np.zeros(self.intercept.size)
        for o in range(largest.size):
            each = (away * self.coef[:, o]) @ owners
            for i, beside in ((first, second), (second, first)):
                each += (away[:, i] * values[:, beside] * self.of_pairs[:, o]) @ owners[i]
            most = np.sort(np.abs(each).max(axis=1, initial=0.0))
            largest[o] = most[-max(1, len(most) // 10) :].mean()
        return largest

    def indices(self) -> Floats:
        """Shapley interaction indices of two columns, (m, m, k): a product changes by both of its changes."""
        functions, (first, second) = self.functions, self.pairs.T
        away = functions.at_row - functions.drawn
        both = functions.law.weights @ (away[:, first] * away[:, second])
        m = functions.columns.size
        indices = np.zeros((m, m, self.intercept.size))
        columns = functions.column[first], functions.column[second]
        np.add.at(indices, columns, both[:, None] * self.of_pairs)
        return indices + indices.swapaxes(0, 1)

    def game(self) -> Game:
        functions = self.functions
        kept, drawn = functions.at_row, functions.drawn
        away = kept - drawn
        sizes = (len(drawn), functions.columns.size, self.intercept.size)
        values, alone, last = (np.zeros(sizes) for _ in range(3))
        owners = np.zeros((functions.columns.size, kept.size))
        owners[functions.column, np.arange(kept.size)] = 1.0
        values += np.einsum("mp,rp,pk->rmk", owners, away, self.coef, optimize=True)
        alone += values
        last += values
        first, second = self.pairs.T
        for i, beside in ((first, second), (second, first)):
            move = owners[:, i]
            for total, other in (
                (values, 0.5 * (kept[beside] + drawn[:, beside])),
                (alone, drawn[:, beside]),
                (last, np.broadcast_to(kept[beside], drawn[:, beside].shape)),
            ):
                total += np.einsum("mq,rq,qk->rmk", move, away[:, i] * other, self.of_pairs, optimize=True)
        base = self.intercept + drawn @ self.coef + (drawn[:, first] * drawn[:, second]) @ self.of_pairs
        return Game(base, values, alone, last)


def _likely_pairs(functions: ColumnFunctions, values: Floats, rest: Floats) -> Ints:
    """Products of two columns' functions that residuals (n, k) follow most, (q, 2)."""
    its = functions.multiplies
    some, of_column = values[:, its], functions.column[its]
    size = np.sqrt((some**2).T @ some**2)
    follows = np.zeros(size.shape)
    for residual in (rest - rest.mean(axis=0)).T:
        norm = np.sqrt(residual @ residual)
        if norm > 0:
            follows += np.abs((some * residual[:, None]).T @ some) / np.where(size > 0, size * norm, np.inf)
    follows[of_column[:, None] >= of_column] = 0.0
    top = np.argsort(-follows, axis=None, kind="stable")[:_MOST_PAIRS]
    top = top[follows.reshape(-1)[top] > 0]
    return its[np.stack(np.unravel_index(top, follows.shape), axis=1)].reshape(-1, 2)


# -- what columns do together --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bumps:
    """A kernel regression: Σ_i a_i ∏_j exp(-(x_j - c_ij)² / 2)."""

    law: GameLaw
    columns: Ints
    center: Floats  # (m,), and scales, by which columns are divided
    scale: Floats
    centres: Floats  # (n, m)
    coef: Floats  # (n, k)
    intercept: Floats

    @classmethod
    def without_each(
        cls, law: GameLaw, columns: Ints, x: Floats, targets: Sequence[Floats], parts: Sequence[Bools]
    ) -> Bumps:
        """Fit targets (n, k), each without one part of the rows (n,); outputs stand side by side.

        With H = (K + penalty)⁻¹ the coefficients a = H y become a - H_B (H_BB)⁻¹ a_B without the rows B.
        The width and the penalty are those that predict single rows best which are left out.
        """
        some = _evenly(len(x), _CENTRES)
        x, parts = x[some], [out[some] for out in parts]
        mean = np.concatenate([y[some][~out].mean(axis=0) for y, out in zip(targets, parts, strict=True)])
        y = np.concatenate([y[some] for y in targets], axis=1) - mean
        middle, unit = _middles(law, columns)
        few = _evenly(len(x), _CHOOSING)
        scales = [unit * each * np.sqrt(columns.size) for each in _WIDTHS]
        errors = [_errors(_steps(x[few][:, columns], middle, its), y[few]) for its in scales]
        width, penalty = np.unravel_index(np.argmin(errors), np.shape(errors))
        scale = scales[width]
        points = _steps(x[:, columns], middle, scale)
        inverse = np.linalg.inv(_kernel(points, points) + _PENALTIES[penalty] * np.eye(len(points)))
        coef, k = inverse @ y, y.shape[1] // len(parts)
        for i, out in enumerate(parts):
            its = slice(i * k, (i + 1) * k)
            coef[:, its] -= inverse[:, out] @ np.linalg.solve(inverse[np.ix_(out, out)], coef[out, its])
        return cls(law, columns, middle, scale, points, coef, mean)

    def predict(self, x: Floats) -> Floats:
        blocks = [x[start : start + _BLOCK, self.columns] for start in range(0, len(x), _BLOCK)]
        steps = [_steps(some, self.center, self.scale) for some in blocks]
        return np.concatenate([self.intercept + _kernel(its, self.centres) @ self.coef for its in steps])

    def game(self) -> Game:
        at_row = _steps(self.law.row[None, self.columns], self.center, self.scale)
        # columns first: products of neighbours are quick
        kept = np.exp(-0.5 * (at_row - self.centres) ** 2).T[:, None]
        drawn = np.stack([self._drawn(i) for i in range(self.columns.size)])
        away = kept - drawn
        nodes, shares = np.polynomial.legendre.leggauss(max(1, -(-self.columns.size // 2)))
        ends = []
        for t in (0.0, *(0.5 * (1.0 + nodes)), 1.0):
            mixed = t * kept + (1.0 - t) * drawn
            others = np.ones_like(mixed)
            np.cumprod(mixed[:-1], axis=0, out=others[1:])
            others[:-1] *= np.cumprod(mixed[:0:-1], axis=0)[::-1]
            others *= away
            ends.append(self._over_rows(others) @ self.coef)
        values = sum(0.5 * w * each for w, each in zip(shares, ends[1:-1], strict=True))
        base = self.intercept + self._over_rows(drawn.prod(axis=0)[None])[:, 0] @ self.coef
        return Game(base, np.asarray(values), ends[0], ends[-1])

    def _over_rows(self, numbers: Floats) -> Floats:
        """Numbers (m, R, n) of the background's rows, (R, m, n), or their mean, if no row was left out."""
        if self.law.starts.omitted:
            return numbers.transpose(1, 0, 2)
        return np.asarray(self.law.weights @ numbers)[None]

    def _drawn(self, i: int) -> Floats:
        def bumps(x: Floats) -> Floats:
            steps = _steps(x[:, None], self.center[i : i + 1], self.scale[i : i + 1])
            return np.asarray(np.exp(-0.5 * (steps - self.centres[:, i]) ** 2))

        return self.law.over(int(self.columns[i]), bumps)


def _evenly(count: int, most: int) -> Ints:
    return np.linspace(0, count - 1, min(count, most)).astype(np.int64)


def _errors(points: Floats, y: Floats) -> list[float]:
    """Mean square errors of rows that are left out one by one, of each penalty."""
    sizes, axes = np.linalg.eigh(_kernel(points, points))
    inverse = 1.0 / (np.maximum(sizes, 0.0) + np.array(_PENALTIES)[:, None])
    away = (axes @ (inverse[:, :, None] * (axes.T @ y))) / (inverse @ (axes**2).T)[:, :, None]
    return [float(mean) for mean in (away**2).mean(axis=(1, 2))]


def _middles(law: GameLaw, columns: Ints) -> tuple[Floats, Floats]:
    """Means and deviations of drawn values, (m,) each."""
    each = []
    for j in columns.tolist():
        values, weights = law.support(j)
        its = ~np.isnan(values)
        mass = float(weights[its].sum())
        mean = float(weights[its] @ values[its]) / mass if mass else 0.0
        variance = float(weights[its] @ (values[its] - mean) ** 2) / mass if mass else 0.0
        each.append((mean, np.sqrt(variance) if variance > 0 else 1.0))
    center, unit = np.array(each).reshape(-1, 2).T
    return center, unit


def _steps(x: Floats, center: Floats, scale: Floats) -> Floats:
    return np.where(np.isnan(x), 0.0, (x - center) / scale)


def _kernel(x: Floats, centres: Floats) -> Floats:
    squares = (x**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2.0 * x @ centres.T
    return np.asarray(np.exp(-0.5 * np.maximum(squares, 0.0)))


def bumps_fit(law: GameLaw, columns: Ints) -> bool:
    """Whether contributions of bumps take little memory and time."""
    table = law.weights.size * _CENTRES * columns.size
    return 1 < columns.size <= _MOST_BUMPS and table <= _BUMPS


@dataclass(frozen=True, eq=False)
class BoostedGame:
    """Boosted trees of some columns."""

    law: GameLaw
    columns: Ints
    trees: Any

    @classmethod
    def fit(cls, law: GameLaw, columns: Ints, x: Floats, y: Floats) -> BoostedGame | None:
        if not columns.size:
            return None
        trees = tree_control(None, x, y, columns, _TREES)  # type: ignore[arg-type]
        return cls(law, columns, trees) if hasattr(trees, "forests") else None

    def predict(self, x: Floats) -> Floats:
        return np.asarray(self.trees.predict(x))

    def game(self) -> Game:
        trees, sums, base = self.trees, np.zeros(()), self.trees.intercept
        for forest, direction in zip(trees.forests, trees.directions, strict=True):
            of_base, its = self.law.of_forest(forest)
            base = base + of_base[0] * direction
            sums = sums + its[:, self.columns, :1] * direction
        values, alone, last = sums[:, None]
        return Game(base[None], values, alone, last)


def likely_columns(values: Floats, columns: Ints, y: Floats, most: int = _MOST_COLUMNS) -> Ints:
    """The columns whose functions (n, p) answers (n, k) follow most, if there are more than that."""
    count = int(columns.max(initial=-1)) + 1
    if count <= most:
        return np.arange(count)
    away, rest = values - values.mean(axis=0), y - y.mean(axis=0)
    norm = np.sqrt((away**2).sum(axis=0))
    follows = np.abs(away.T @ rest).max(axis=1) / np.where(norm > 0, norm, np.inf)
    of_column = np.zeros(count)
    np.maximum.at(of_column, columns, follows)
    return np.sort(np.argsort(-of_column, kind="stable")[:most])
