r"""How the columns of a group share its contribution: Owen's value.

A group B enters the game v as a whole. Inside of it, with the other groups H as they are,

    Q(S) = Σ_H |H|! (G - 1 - |H|)! / G! · v(H ∪ S),     S ⊆ B,

is a game of its columns alone, with Q(B) - Q(∅) = φ_B, and its Shapley values share φ_B. The other groups
keep the row's values with probability t, all by themselves, so that Q(S) = ∫₀¹ E_t[f | S kept] dt: a few
nodes t are exact, as for contributions. The columns of B that are not kept have the values of one row of the
background.

References
----------
Owen 1977, "Values of games with a priori unions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING, Bools, Floats, Ints, fingerprint, streams
from limes._functions import BoxesOfTuples, Function
from limes._sampling.least_squares import student_factors
from limes._shapley.exact import interacting, quadrature
from limes._shapley.interventional import shapley
from limes._shapley.sampled_pairs import UNSEEN
from limes._tuples import Tuples
from limes.designs._column import Column, IndicatorColumn, KeptColumn
from limes.designs._marginals import Atoms, Laws, Levels, Marginal
from limes.designs._product import ProductFamily, Rows

# Columns of a group, at most, all of whose sets are computed; of more, orders are drawn
MOST_MEMBERS = 8
# Pairs of orders, one the reverse of the other, that are drawn
_ORDERS = 32
# Key of the stream that draws them, where those of contributions have the row's hash
_KEY = 0x77697468
# Designs that are computed together
_TOGETHER = 32


class Sharing(NamedTuple):
    """Parts of a group's contribution, and their standard errors, (m, k) each, of its m columns."""

    values: Floats
    errors: Floats

    def adding_up_to(self, total: Floats, error: Floats) -> Sharing:
        """The same with the group's contribution (k,) as the sum, which has this standard error.

        What is missing goes to parts by their variances; that of a part does not rise but by the total's.
        """
        weights = self.errors**2
        endless = np.isinf(weights)
        weights = np.where(endless.any(axis=0), endless, weights)
        weights = weights / np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
        values = self.values + weights * (total - self.values.sum(axis=0))
        return Sharing(values, np.hypot(self.errors, weights * error))


@dataclass(frozen=True, eq=False)
class TupleLaws(IndicatorColumn):
    """V laws of a group in one cell, each of P tuples, which have the same weights in all laws."""

    codes: Floats = None  # type: ignore[assignment]  # (V, P), a field after one with a default
    weight: Floats = None  # type: ignore[assignment]  # (P,)

    @classmethod
    def among(cls, codes: Floats, weight: Floats) -> TupleLaws:
        """The laws of tuples with these codes."""
        (v, p), one_cell = codes.shape, Levels(codes[0, :1])
        one = Marginal(one_cell, np.zeros(1), (Atoms(codes[0], weight),), np.zeros(p, dtype=np.int64))
        laws = Laws(one, np.zeros((v, 1)), (Atoms(codes.ravel(), np.tile(weight, v)),))
        column = IndicatorColumn.of(laws, np.zeros(v, dtype=np.int64))
        return cls(**vars(column), codes=codes, weight=weight)

    def basis(self, function: Function) -> Floats:
        means = [
            function.mean(codes, self.weight)
            if isinstance(function, BoxesOfTuples)
            else (function(codes) * self.weight).sum(axis=1)
            for codes in self.codes
        ]
        mean = np.stack(means, axis=1)
        return np.stack([mean, np.zeros_like(mean)], axis=2)

    @cached_property
    def marginal(self) -> Marginal:
        """All tuples that the laws may have."""
        codes = np.unique(self.codes)
        atoms = Atoms(codes, np.full(codes.size, 1.0 / codes.size))
        return Marginal(Levels(codes[:1]), np.zeros(1), (atoms,), np.zeros(codes.size, dtype=np.int64))


def exact_sharing(
    form: Any, expectation: Any, family: ProductFamily, row: Floats, group: int, tuples: Tuples, seed: int
) -> Sharing:
    """How a ``group``'s columns share its contribution at a row (G,), from exact expectations."""
    design = family.at(row)
    law = design.coordinates[group].marginal
    (atoms,) = law.measures
    assert isinstance(atoms, Atoms)  # noqa: S101 - the law of a group
    share = design.coordinates[group].probability[law.owners] * atoms.weight
    drawn, weight = tuples.decode(atoms.value[share > 0.0]), share[share > 0.0]
    kept = tuples.decode(row[[group]])[0]
    t, weights = quadrature(interacting(form))
    inside = weights > 0.0
    t, weights = t[inside], weights[inside]
    others = [
        KeptColumn(column, np.zeros(1, dtype=np.int64), row[[j]], t)
        for j, column in enumerate(design.coordinates)
    ]

    def means(sets: Bools) -> Floats:
        """Q of some sets (S, m) of the columns, (S, k)."""
        with tuples.lend(np.where(sets[:, None], kept, drawn).reshape(-1, kept.size)) as codes:
            laws = TupleLaws.among(codes.reshape(len(sets), -1), weight)
            columns: list[Column] = [*others]
            columns[group] = laws
            index = np.tile(np.tile(np.arange(len(t)), len(sets))[:, None], (1, row.size))
            index[:, group] = np.repeat(np.arange(len(sets)), len(t))
            rows = Rows(None, np.broadcast_to(np.nan, index.shape), index, tuple(columns))
            mean = expectation.at(rows).mean
        return np.asarray(np.einsum("t,stk->sk", weights, mean.reshape(len(sets), len(t), -1)))

    def game(sets: Bools) -> Floats:
        step = max(1, _TOGETHER // len(t))
        return np.concatenate([means(sets[start : start + step]) for start in range(0, len(sets), step)])

    m = kept.size
    if m <= MOST_MEMBERS:
        values = shapley(game(np.array([*product((False, True), repeat=m)])).reshape((*(2,) * m, -1)))[0]
        return Sharing(values, np.zeros_like(values))
    rng = np.random.default_rng(streams(seed, fingerprint(row) ^ _KEY, 1)[0])
    return _over_orders([_of_order(game, order) for order in _orders(rng, m, _ORDERS)])


def drawn_sharing(
    predict: Callable[[Floats], Floats],
    draw: Callable[[np.random.Generator, int], Floats],
    row: Floats,
    group: int,
    tuples: Tuples,
    seed: int,
    calls: int,
) -> Sharing:
    """The same by walks, from at most as many ``calls`` of a function of rows (n, G): `least_shared` or more.

    Other groups keep the row's values with a random probability; then the columns of this one take them, one
    after the other, in a random order and in its reverse.
    """
    kept = tuples.decode(row[[group]])[0]
    m = kept.size
    count = calls // (2 * (m + 1))
    rng = np.random.default_rng(streams(seed, fingerprint(row) ^ _KEY, 1)[0])
    starts = draw(rng, count)
    drawn = tuples.decode(starts[:, group])
    starts = np.where(rng.random(starts.shape) < rng.random((count, 1)), row, starts)
    orders = np.array(_orders(rng, m, count)).reshape(count, 2, m)
    # place of each column in each order: a set has those before it
    places = np.argsort(orders, axis=2)
    sets = places[:, :, None] < np.arange(m + 1)[None, None, :, None]
    values = np.where(sets, kept, drawn[:, None, None])
    with tuples.lend(values.reshape(-1, m)) as codes:
        rows = np.repeat(starts, 2 * (m + 1), axis=0)
        rows[:, group] = codes
        answers = predict(rows).reshape(count, 2, m + 1, -1)
    steps = np.take_along_axis(np.diff(answers, axis=2), places[..., None], axis=2)
    shares = _over_orders([*steps.mean(axis=1)], are_pairs=True)
    # a step that no walk showed: as large as any here, or as answers differ where no column took one
    largest = np.abs(steps).max(axis=(0, 1, 2))
    flat = answers.reshape(-1, answers.shape[-1])
    largest = np.where(largest > 0.0, largest, np.ptp(flat, axis=0))
    quiet = (np.abs(steps) <= DIFFERENCE_ROUNDING * np.abs(flat).max(axis=0)).all(axis=(0, 1))
    unseen = np.where(largest > 0.0, UNSEEN * largest / (2 * count), np.inf)
    return Sharing(shares.values, np.hypot(shares.errors, np.where(quiet, unseen, 0.0)))


def least_shared(columns: int) -> int:
    """Calls without which the shares of a group's columns have no variance: two pairs of walks."""
    return 4 * (columns + 1)


def _orders(rng: np.random.Generator, m: int, pairs: int) -> list[Ints]:
    """Random orders, each followed by its reverse."""
    return [each for order in (rng.permutation(m) for _ in range(pairs)) for each in (order, order[::-1])]


def _of_order(game: Callable[[Bools], Floats], order: Ints) -> Floats:
    """Return what each column adds where it enters after those before it, (m, k)."""
    place = np.argsort(order)
    values = game(place[None] < np.arange(order.size + 1)[:, None])
    return np.asarray(np.diff(values, axis=0)[place])


def _over_orders(each: Sequence[Floats], *, are_pairs: bool = False) -> Sharing:
    """Means over orders and their errors, from those of pairs."""
    pairs = np.stack(each)
    pairs = pairs if are_pairs else pairs.reshape(-1, 2, *pairs.shape[1:]).mean(axis=1)
    errors = pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
    return Sharing(pairs.mean(axis=0), student_factors(np.array(len(pairs) - 1)) * errors)
