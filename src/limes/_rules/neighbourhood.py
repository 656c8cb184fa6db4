r"""Neighbourhoods of literals: which literals flip around an instance, and which rows that makes.

A literal is true or false, +1 or -1. With s = z∘x (+1 kept, -1 flipped), where all literals flip alike,

    E s_j = ρ,     Cov(s) = κ 11ᵀ + a I,

and sparse explanations need nothing else of a law. There are two such laws:

- ``FlipLaw``, P(z) ∝ exp(-σ · #flips): the d literals flip independently, with probability q =
  e^{-σ}/(1 + e^{-σ}). ρ = 1 - 2q = tanh(σ/2), a = 4q(1 - q), κ = 0;
- ``CountLaw``, P(#flips = j) ∝ exp(-σj): the number of flips is drawn, and then which literals they are.

and two kinds of rows:

- ``LiteralFlips``: the model takes rows of ±1 itself, and a flip changes one entry (the 2025 paper);
- ``ColumnChanges``: a literal means "this column keeps its value"; where it flips, the column takes a
  background value of another bin, so that a row is never impossible (a column in two bins, or in none).

Under the first law both are product designs, LIME's with bin weights and bandwidth ν = 1/√(2σ). So the exact
expectations of readable models apply, and with z_j = (1 + s_j)/2, Γ_j = Cov(z_j, f):

    g_j = E[s_j f] = 2 Γ_j + ρ E f.

Two other neighbourhoods are those of anchors (Ribeiro, Singh and Guestrin 2018). Nothing of the row is kept
but the facts S that are to hold; a fact is the cell of a column, and its column takes values of that cell:

- ``ColumnDraws``: all columns follow the table's marginals, independently, and z_S lies in the cells. So
  literal j holds with the probability p_j of its cell (``OwnLaw``: ρ_j = 2p_j - 1, a_j = 4p_j(1 - p_j),
  κ = 0);
- ``TableDraws``: z is a row of the table, of which the columns of S that lie in other cells take values of
  theirs, each on its own. Columns stay as dependent as they are in the table. It is one law for each S, and
  none of these is another one given facts: no sample of one of them serves all S. A fact may also be one side
  of a cut, "income > 70".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, gammaln

from limes._arrays import Bools, Floats, Ints
from limes._functions import Function
from limes._threads import LRUCache
from limes.designs._column import IndicatorColumn
from limes.designs._marginals import Atoms, Levels, Marginal, marginal
from limes.designs._product import ProductDesign
from limes.exceptions import InputError

# Numbers of a literal that does not hold, and of one that does
SIGNS = (-1.0, 1.0)
# Rows processed at once: their signs, and the rows, stay in the processor's cache
_BLOCK = 1 << 17
# Functions whose means over a column's values are cached: those of the parts of a model
_FUNCTIONS = 16
# Cells of a column that stays or changes, their log masses, and the law over cells where it changes
_TWO_CELLS, _EVEN = Levels(np.arange(2.0)), np.full(2, np.log(0.5))
_FIRST, _SECOND = np.zeros(1, dtype=np.int64), np.array([[0.0, 1.0]])
# With a larger spread the probability of a flip is below 1e-200, and its products vanish
_LARGEST_SPREAD = 460.0


@dataclass(frozen=True)
class FlipLaw:
    """d literals, each flipped with probability q = e^{-σ}/(1 + e^{-σ}).

    Koriche, Lagniez and Tran 2025, section 7.1. (Its normaliser is that of σ times the number of flips.)
    """

    size: int  # number of literals d
    spread: float  # σ ≥ 0; at 0 all rows are equally likely

    def __post_init__(self) -> None:
        _check_law(self.size, self.spread)

    @property
    def flip(self) -> float:
        return float(expit(-self.spread))

    @property
    def away(self) -> float:
        return 2.0 * self.flip  # 1 - ρ

    @property
    def correlation(self) -> float:
        return float(np.tanh(self.spread / 2))  # ρ = E s_j

    @property
    def variance(self) -> float:
        return 4.0 * self.flip * float(expit(self.spread))  # a

    @property
    def shared(self) -> float:
        return 0.0  # κ

    def pattern(self, flipped: Ints, size: int) -> Floats:
        """Return the probability that of ``size`` literals exactly some chosen ones flip, by their number."""
        q = self.flip
        return np.asarray(q**flipped * (1.0 - q) ** (size - flipped))

    def chance(self, flips: Bools, positions: Ints) -> Floats:
        """Return the probability that the literals at ``positions`` flip as in each row of ``flips``."""
        return self.pattern(flips.sum(axis=1), positions.size)

    def elsewhere(self, rng: np.random.Generator, flipped: Ints, rest: Ints) -> Bools:
        """Draw which literals of ``rest`` flip, if ``flipped`` of the others do, (draws, rest)."""
        return self.flips(rng, flipped.size)[:, rest]

    def flips(self, rng: np.random.Generator, rows: int) -> Bools:
        """Draw which literals flip, (rows, d).

        A random byte decides whether a uniform number is below q; only if the byte is the integer part of
        256 q, one time in 256, another number decides.
        """
        count = rows * self.size
        bits = rng.integers(0, 2**64, size=-(-count // 8), dtype=np.uint64)
        byte = bits.view(np.uint8)[:count]
        edge = int(256 * self.flip)
        flips = byte < edge
        undecided = np.flatnonzero(byte == edge)
        flips[undecided] = rng.random(undecided.size) < 256 * self.flip - edge
        return flips.reshape(rows, self.size)


@dataclass(frozen=True)
class CountLaw:
    r"""d literals, of which j flip with probability p_j ∝ e^{-σj}, and which j is a uniform draw.

        1 - ρ = (2/d) Σ_j j p_j,    a = 4 P(of two the first alone flips),    (1 - ρ)² + κ = 4 P(both flip).

    Another reading of Koriche et al. 2025, section 7.1: a program that draws the number of flips first.
    """

    size: int  # number of literals d
    spread: float  # σ ≥ 0; at 0 all numbers of flips are equally likely

    def __post_init__(self) -> None:
        _check_law(self.size, self.spread)

    @cached_property
    def counts(self) -> Floats:
        """Probability of each number of flips, (d + 1,)."""
        weights = np.exp(-self.spread * np.arange(self.size + 1))
        return np.asarray(weights / weights.sum())

    @cached_property
    def away(self) -> float:
        return float(2.0 * self.counts @ np.arange(self.size + 1) / self.size)

    @property
    def correlation(self) -> float:
        return 1.0 - self.away

    @cached_property
    def variance(self) -> float:
        if self.size == 1:  # no two literals share anything
            return self.away * (2.0 - self.away)
        flips, pairs = np.arange(self.size + 1), self.size * (self.size - 1)
        return float(4.0 * self.counts @ (flips * (self.size - flips)) / pairs)

    @cached_property
    def shared(self) -> float:
        if self.size == 1:
            return 0.0
        flips, pairs = np.arange(self.size + 1), self.size * (self.size - 1)
        # 2 (1 - ρ) - a - (1 - ρ)² loses its digits where flips are rare
        return float(4.0 * self.counts @ (flips * (flips - 1)) / pairs) - self.away**2

    def pattern(self, flipped: Ints, size: int) -> Floats:
        """Return the probability that of ``size`` literals exactly some chosen ones flip, by their number."""
        table = np.exp(self._jointly(size)).sum(axis=1)
        return np.asarray(table[flipped])

    def chance(self, flips: Bools, positions: Ints) -> Floats:
        """Return the probability that the literals at ``positions`` flip as in each row of ``flips``."""
        return self.pattern(flips.sum(axis=1), positions.size)

    def elsewhere(self, rng: np.random.Generator, flipped: Ints, rest: Ints) -> Bools:
        """Draw which literals of ``rest`` flip, if ``flipped`` of the others do, (draws, rest)."""
        counts, jointly = np.zeros(flipped.size, dtype=np.int64), self._jointly(self.size - rest.size)
        for number in np.unique(flipped):
            chosen = flipped == number
            weights = np.exp(jointly[number] - jointly[number].max())
            counts[chosen] = rng.choice(rest.size + 1, size=chosen.sum(), p=weights / weights.sum())
        return _uniform_sets(rng, counts, rest.size)

    def _jointly(self, size: int) -> Floats:
        """Log-probability of a pattern of ``size`` literals and m flips elsewhere, (size + 1, others + 1)."""
        others = np.arange(self.size - size + 1)
        flips = np.arange(size + 1)[:, None] + others
        chosen = _log_choose(others[-1], others) - _log_choose(self.size, flips)
        with np.errstate(divide="ignore"):
            return np.asarray(chosen + np.log(self.counts)[flips])

    def flips(self, rng: np.random.Generator, rows: int) -> Bools:
        """Draw which literals flip, (rows, d)."""
        return _uniform_sets(rng, rng.choice(self.size + 1, size=rows, p=self.counts), self.size)


@dataclass(frozen=True, eq=False)
class OwnLaw:
    """d literals that flip independently, with probabilities that may differ."""

    flip: Floats  # q_j, (d,), between 0 and 1

    @property
    def size(self) -> int:
        return self.flip.size

    @property
    def away(self) -> Floats:
        return 2.0 * self.flip  # 1 - ρ_j

    @property
    def correlation(self) -> Floats:
        return 1.0 - self.away  # ρ_j = E s_j

    @property
    def variance(self) -> Floats:
        return 4.0 * self.flip * (1.0 - self.flip)  # a_j

    @property
    def shared(self) -> float:
        return 0.0  # κ

    def chance(self, flips: Bools, positions: Ints) -> Floats:
        """Return the probability that the literals at ``positions`` flip as in each row of ``flips``."""
        q = self.flip[positions]
        return np.asarray(np.where(flips, q, 1.0 - q).prod(axis=1))

    def elsewhere(self, rng: np.random.Generator, flipped: Ints, rest: Ints) -> Bools:
        """Draw which literals of ``rest`` flip, whatever the others do, (draws, rest)."""
        return np.asarray(rng.random((flipped.size, rest.size)) < self.flip[rest])

    def flips(self, rng: np.random.Generator, rows: int) -> Bools:
        """Draw which literals flip, (rows, d)."""
        return np.asarray(rng.random((rows, self.size)) < self.flip)


Law: TypeAlias = FlipLaw | CountLaw | OwnLaw
FLIP_LAWS: Mapping[str, type[FlipLaw] | type[CountLaw]] = {"literal": FlipLaw, "count": CountLaw}


def _check_law(size: int, spread: float) -> None:
    if size < 1:
        raise InputError("a neighbourhood needs at least one literal")
    if isinstance(spread, bool) or not 0 <= spread <= _LARGEST_SPREAD:
        raise InputError(
            f"spread must be a number from 0 to {_LARGEST_SPREAD:g}, got {spread!r}; 0 is the widest "
            "neighbourhood, larger ones stay closer to the instance"
        )


def _log_choose(n: int, k: Ints) -> Floats:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def _uniform_sets(rng: np.random.Generator, counts: Ints, size: int) -> Bools:
    """Draw sets of these numbers of elements among ``size``, uniformly, (sets, size).

    Elements are added one by one, a repeated one again; of more than half the complement is drawn.
    """
    sets, fewer = np.zeros((counts.size, size), dtype=np.bool_), np.minimum(counts, size - counts)
    for step in range(int(fewer.max(initial=0))):
        rows = np.flatnonzero(fewer > step)
        while rows.size:
            element = rng.integers(size, size=rows.size)
            added = ~sets[rows, element]
            sets[rows[added], element[added]] = True
            rows = rows[~added]
    sets[counts > fewer] ^= True
    return sets


@dataclass(frozen=True, eq=False)
class LiteralFlips:
    """Rows are the literals themselves: literal j takes its other value where it flips."""

    instance: Floats  # x, (d,), of -1 and +1
    spread: float  # σ ≥ 0
    law_of: type[FlipLaw] | type[CountLaw] = FlipLaw
    values: tuple[float, float] = SIGNS  # of a literal that does not hold, and of one that does

    def __post_init__(self) -> None:
        object.__setattr__(self, "instance", checked_signs(self.instance))
        self.law  # noqa: B018 - checks the spread

    @cached_property
    def law(self) -> FlipLaw | CountLaw:
        return self.law_of(self.instance.size, self.spread)

    @property
    def decided_by_flips(self) -> bool:
        return True

    @property
    def varying(self) -> Ints:
        return np.arange(self.instance.size)

    @property
    def column_values(self) -> tuple[Floats, ...]:
        return (np.array(self.values),) * self.instance.size

    @cached_property
    def design(self) -> ProductDesign:
        """Columns of two points that flip independently; those with the same sign share a coordinate."""
        places, flips = np.array(self.values), FlipLaw(self.instance.size, self.spread)
        law = marginal(Levels(places), [1.0, 1.0], [(Atoms(places, np.ones(2)), np.arange(2))])
        coordinates = {sign: _two_cells(law, int(sign > 0), flips) for sign in SIGNS}
        return ProductDesign(tuple(coordinates[sign] for sign in self.instance.tolist()))

    def rows(self, flips: Bools, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        z = np.empty(flips.shape)
        height = max(1, _BLOCK // self.law.size)
        for start in range(0, len(flips), height):
            block = slice(start, start + height)
            np.multiply(1 - 2 * flips[block].view(np.int8), self.instance, out=z[block])
        return with_values(z, self.values)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Bools, Floats]:
        """Draw which literals flip, (count, d), and the rows."""
        flips = self.law.flips(rng, count)
        return flips, self.rows(flips, rng)

    def clause(self, facts: int) -> str:
        return _keeping(self.law, facts, "literals")


@dataclass(frozen=True, eq=False)
class OtherValues:
    """Values of a column outside a cell, or inside: the background's values there, all equally likely.

    Rows with the same cell share one such object, and the means that it caches.
    """

    values: Floats  # the values, with repetitions; empty for a column that has no other cell
    _means: LRUCache[Any, Floats] = field(default_factory=lambda: LRUCache(_FUNCTIONS))

    @property
    def size(self) -> int:
        return self.values.size

    @cached_property
    def atoms(self) -> Atoms:
        places, counts = np.unique(self.values, return_counts=True)
        return Atoms(places, counts / self.values.size)

    @cached_property
    def owners(self) -> Ints:
        """Cells of a column's law: 0 for the instance's value, 1 for each other value."""
        return np.append(0, np.ones(self.atoms.value.size, dtype=np.int64))

    def means(self, function: Function) -> Any:
        return self._means.get(function, lambda: self.atoms.expect(function).sum(axis=1))


@dataclass(frozen=True, eq=False)
class ChangingColumn(IndicatorColumn):
    """A column whose cell 0 is the instance's value, and cell 1 holds its other values."""

    value: Floats = field(default_factory=lambda: np.zeros(1))
    others: OtherValues = field(default_factory=lambda: OtherValues(np.zeros(0)))

    def basis(self, function: Function) -> Floats:
        """E[g | z = 1] and E[g | z = 0], the means over other values, which are cached."""
        return np.stack([function(self.value)[:, 0], self.others.means(function)], axis=1)[:, None]


@dataclass(frozen=True, eq=False)
class ColumnChanges:
    """A literal a column: it keeps the instance's value, or takes a background value of another bin."""

    values: Floats  # the instance, (columns,)
    # for each column the background's values in other bins than the instance's; empty for a column
    # that never changes
    others: Sequence[OtherValues]
    spread: float  # σ ≥ 0
    law_of: type[FlipLaw] | type[CountLaw] = FlipLaw

    @cached_property
    def law(self) -> FlipLaw | CountLaw:
        return self.law_of(len(self.varying), self.spread)

    @cached_property
    def varying(self) -> Ints:
        """Columns that can change, (d,): one literal each."""
        return np.array([j for j, other in enumerate(self.others) if other.size], dtype=np.int64)

    @cached_property
    def decided_by_flips(self) -> bool:
        return all(self.others[j].atoms.value.size == 1 for j in self.varying)

    @property
    def instance(self) -> Floats:
        return np.ones(len(self.varying))  # every literal is true of the instance

    @property
    def column_values(self) -> tuple[Floats, ...]:
        pairs = zip(self.values, self.others, strict=True)
        return tuple(np.append(other.values, value) for value, other in pairs)

    @cached_property
    def design(self) -> ProductDesign:
        """All columns, under independent flips; columns that cannot change are points."""
        pairs, flips = zip(self.values, self.others, strict=True), FlipLaw(len(self.varying), self.spread)
        return ProductDesign(tuple(_stays_or_changes(value, other, flips) for value, other in pairs))

    def rows(self, flips: Bools, rng: np.random.Generator) -> Floats:
        rows = np.tile(self.values, (len(flips), 1))
        others = [self.others[j].values for j in self.varying]
        sizes = np.array([other.size for other in others])
        row, literal = np.nonzero(flips)
        drawn = (rng.random(row.size) * sizes[literal]).astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        rows[row, self.varying[literal]] = np.concatenate(others)[starts[literal] + drawn]
        return rows

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Bools, Floats]:
        """Draw which columns change, (count, d), and the rows."""
        flips = self.law.flips(rng, count)
        return flips, self.rows(flips, rng)

    def clause(self, facts: int) -> str:
        return _keeping(self.law, facts, "columns")


def _keeping(law: FlipLaw | CountLaw, facts: int, noun: str) -> str:
    """Write how many of the other literals neighbours keep, given that some hold."""
    others = law.size - facts
    if others <= 0:
        return ""
    none = np.zeros(1, dtype=np.int64)
    kept = float((law.pattern(none, facts + 1) / law.pattern(none, facts))[0])
    return f"neighbours keep {kept:.0%} of the {'other ' if facts else ''}{noun}"


@dataclass(frozen=True, eq=False)
class ColumnDraws:
    """All columns take values of a table independently: inside the row's cell where the literal holds.

    A literal is a column that has values outside. No cell is without a value of the table.
    """

    values: Floats  # the row, (columns,)
    inside: Sequence[OtherValues]
    outside: Sequence[OtherValues]  # empty for a column whose values all lie in the row's cell

    @cached_property
    def varying(self) -> Ints:
        """Columns that are literals, (d,)."""
        return np.array([j for j, other in enumerate(self.outside) if other.size], dtype=np.int64)

    @cached_property
    def law(self) -> OwnLaw:
        sizes = [(self.inside[j].size, self.outside[j].size) for j in self.varying.tolist()]
        return OwnLaw(np.array([outside / (inside + outside) for inside, outside in sizes]))

    @property
    def instance(self) -> Floats:
        return np.ones(len(self.varying))  # every literal is true of the row

    @property
    def column_values(self) -> tuple[Floats, ...]:
        triples = zip(self.values, self.inside, self.outside, strict=True)
        return tuple(np.concatenate([its.values, other.values, [x]]) for x, its, other in triples)

    @cached_property
    def decided_by_flips(self) -> bool:
        return all(its.atoms.value.size <= 1 for its in (*self.inside, *self.outside) if its.size)

    @cached_property
    def design(self) -> ProductDesign:
        """All columns, under the table's marginals; the feature is whether a value lies in the row's cell."""
        flip = dict(zip(self.varying.tolist(), self.law.flip.tolist(), strict=True))
        return ProductDesign(
            tuple(
                _inside_or_outside(its, other, flip.get(j, 0.0))
                for j, (its, other) in enumerate(zip(self.inside, self.outside, strict=True))
            )
        )

    def rows(self, flips: Bools, rng: np.random.Generator) -> Floats:
        rows = np.empty((len(flips), self.values.size))
        for j, its in enumerate(self.inside):
            rows[:, j] = rng.choice(its.values, len(flips))
        for place, j in enumerate(self.varying.tolist()):
            lacks = flips[:, place]
            rows[lacks, j] = rng.choice(self.outside[j].values, int(lacks.sum()))
        return rows

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Bools, Floats]:
        """Draw which literals do not hold, (count, d), and the rows."""
        flips = self.law.flips(rng, count)
        return flips, self.rows(flips, rng)

    def values_of(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw values of each literal's cell, (count, d)."""
        return np.stack([rng.choice(self.inside[j].values, count) for j in self.varying], axis=1)

    def share(self, facts: Ints) -> float:
        """Return the probability that facts, by their positions, hold."""
        return float(np.prod(1.0 - self.law.flip[facts]))

    def clause(self, facts: int) -> str:
        other = "every other column" if facts else "every column"
        return f"neighbours take {other} from the table independently"


@dataclass(frozen=True, eq=False)
class TableDraws:
    """Rows of a table; the columns of facts that a row lacks take values of the table that have them.

    A literal is a fact of one column that some rows lack; of a column's, a rule has one at most. No fact is
    without a value of the table.
    """

    values: Floats  # the row, (columns,)
    matrix: Floats  # the table, (n, columns)
    varying: Ints  # the column of each literal, (d,), ascending
    holds: Bools  # where literals hold in the table, (n, d)
    inside: Sequence[Floats]  # the column's values of which each literal holds
    texts: Sequence[str]
    cells: Sequence[Bools]  # the cells of the column of which each literal holds

    @property
    def decided_by_flips(self) -> bool:
        return False

    @property
    def instance(self) -> Floats:
        return np.ones(len(self.varying))  # every literal is true of the row

    @property
    def column_values(self) -> tuple[Floats, ...]:
        return tuple(np.append(self.matrix[:, j], x) for j, x in enumerate(self.values))

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Bools, Floats]:
        """Draw rows of the table, and which literals do not hold there, (count, d)."""
        chosen = rng.integers(len(self.matrix), size=count)
        return ~self.holds[chosen], self.matrix[chosen]

    def values_of(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw values of which each literal holds, (count, d)."""
        return np.stack([rng.choice(its, count) for its in self.inside], axis=1)

    def have(self, facts: Ints) -> Bools:
        """Return in which rows of the table facts, by their positions, hold, (n,)."""
        return np.asarray(self.holds[:, facts].all(axis=1))

    def share(self, facts: Ints) -> float:
        """Return the share of the table's rows in which facts hold."""
        return float(self.have(facts).mean())

    def clause(self, facts: int) -> str:
        with_facts = ", with values of the facts' bins where they lack them" if facts else ""
        return f"neighbours are rows of the table{with_facts}"


def having(
    near: ColumnDraws | TableDraws, facts: Iterable[int], rows: Floats, flips: Bools, values: Floats
) -> Floats:
    """Return rows in which facts, by their positions, hold: by these values where they do not."""
    changed = rows.copy()
    for place in facts:
        lacks = flips[:, place]
        changed[lacks, near.varying[place]] = values[lacks, place]
    return changed


# Neighbourhoods of one law, of which rows with facts are a part
FlippingLiterals: TypeAlias = LiteralFlips | ColumnChanges | ColumnDraws
LiteralNeighbourhood: TypeAlias = FlippingLiterals | TableDraws
TABLE_DRAWS: Mapping[str, type[ColumnDraws] | type[TableDraws]] = {
    "background": TableDraws,
    "marginals": ColumnDraws,
}


def checked_signs(instance: ArrayLike) -> Floats:
    row = np.array(instance, dtype=np.float64)
    if row.ndim != 1 or row.size == 0:
        raise InputError(f"an instance is one row of literals, got shape {row.shape}")
    wrong = np.flatnonzero(np.abs(row) != 1.0)
    if wrong.size:
        raise InputError(
            f"literal {wrong[0]} of the instance is {row[wrong[0]]}; literals are -1 or +1: use "
            "limes.Literals to make them from a table, or values=(0, 1) if the model takes 0 and 1"
        )
    row.setflags(write=False)
    return row


def with_values(signs: Floats, values: tuple[float, float]) -> Floats:
    """Return rows of -1 and +1 in the numbers that the model takes."""
    low, high = values
    return signs if values == SIGNS else np.where(signs > 0, high, low)


def _two_cells(marginal: Marginal, cell: int, law: FlipLaw) -> IndicatorColumn:
    """Return a column of two cells that leaves the instance's cell with probability q."""
    stays, leaves = np.array([1.0 - law.flip]), np.array([law.flip])
    return IndicatorColumn(marginal, np.array([cell]), stays, leaves, np.zeros(1), np.eye(2)[[1 - cell]])


def _stays_or_changes(value: float, others: OtherValues, flips: FlipLaw) -> IndicatorColumn:
    """Return a column whose cell 0 has the instance's value and cell 1 the others."""
    stays = Atoms(np.array([value]), np.ones(1))
    if not others.size:
        law = marginal(Levels(np.zeros(1)), [1.0], [(stays, np.zeros(1, dtype=np.int64))])
        return IndicatorColumn.of(law, _FIRST)
    # assembled without the checks of `marginal`, which take longer than all else of a row
    law = Marginal(_TWO_CELLS, _EVEN, (stays, others.atoms), others.owners)
    leaves = np.array([flips.flip])
    return ChangingColumn(
        law, _FIRST, 1.0 - leaves, leaves, np.zeros(1), _SECOND, value=stays.value, others=others
    )


@dataclass(frozen=True, eq=False)
class SplitColumn(IndicatorColumn):
    """A column whose cell 0 has the table's values in the row's cell, and cell 1 all others."""

    inside: OtherValues = field(default_factory=lambda: OtherValues(np.zeros(0)))
    outside: OtherValues = field(default_factory=lambda: OtherValues(np.zeros(0)))

    def basis(self, function: Function) -> Floats:
        """E[g | z = 1] and E[g | z = 0], both cached."""
        return np.stack([self.inside.means(function), self.outside.means(function)], axis=1)[:, None]


def _inside_or_outside(inside: OtherValues, outside: OtherValues, flip: float) -> IndicatorColumn:
    """Return a column of the table's marginal law that leaves the row's cell with probability ``flip``."""
    its = inside.atoms
    owners = np.zeros(its.value.size, dtype=np.int64)
    if not outside.size:
        return IndicatorColumn.of(marginal(Levels(np.zeros(1)), [1.0], [(its, owners)]), _FIRST)
    owners = np.concatenate([owners, np.ones(outside.atoms.value.size, dtype=np.int64)])
    law = Marginal(_TWO_CELLS, np.log([1.0 - flip, flip]), (its, outside.atoms), owners)
    stays, leaves = np.array([1.0 - flip]), np.array([flip])
    return SplitColumn(law, _FIRST, stays, leaves, np.zeros(1), _SECOND, inside=inside, outside=outside)
