r"""Neighbourhoods of literals: literals flip independently, all with the same probability.

A literal is true or false, +1 or -1. Around the instance x the law is P(z) ∝ exp(-σ · #flips), that is: the d
literals flip independently with probability q = e^{-σ}/(1 + e^{-σ}). With s = z∘x (+1 kept, -1 flipped),

    E s_j = ρ = 1 - 2q = tanh(σ/2),     E[s sᵀ] = ρ² 11ᵀ + a I,     a = 1 - ρ² = 4q(1 - q),

and sparse explanations need nothing else of the law. There are two cases:

- ``LiteralFlips``: the model takes rows of ±1 itself, and a flip changes one entry (the 2025 paper);
- ``ColumnChanges``: a literal means "this column keeps its value"; where it flips, the column takes a
  background value of another bin, so that a row is never impossible (a column in two bins, or in none).

Both are product designs, LIME's with bin weights and bandwidth ν = 1/√(2σ). So the exact expectations
of readable models apply, and with z_j = (1 + s_j)/2, Γ_j = Cov(z_j, f):

    g_j = E[s_j f] = 2 Γ_j + ρ E f.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from limes._arrays import Bools, Floats, Ints
from limes._functions import Function
from limes._threads import LRUCache
from limes.designs._column import IndicatorColumn
from limes.designs._marginals import Atoms, Levels, Marginal, marginal
from limes.designs._product import ProductDesign
from limes.exceptions import InputError

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
        if self.size < 1:
            raise InputError("a neighbourhood needs at least one literal")
        if isinstance(self.spread, bool) or not 0 <= self.spread <= _LARGEST_SPREAD:
            raise InputError(
                f"spread must be a number from 0 to {_LARGEST_SPREAD:g}, got {self.spread!r}; 0 makes all "
                "rows equally likely, larger ones stay closer to the instance"
            )

    @property
    def flip(self) -> float:
        return float(expit(-self.spread))

    @property
    def correlation(self) -> float:
        return float(np.tanh(self.spread / 2))  # ρ = E s_j

    @property
    def variance(self) -> float:
        return 4.0 * self.flip * float(expit(self.spread))  # of s_j: 4q(1 - q)

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


@dataclass(frozen=True, eq=False)
class LiteralFlips:
    """Rows are the literals themselves: z_j = -x_j where literal j flips."""

    instance: Floats  # x, (d,), of -1 and +1
    spread: float  # σ ≥ 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "instance", checked_signs(self.instance))
        self.law  # noqa: B018 - checks the spread

    @cached_property
    def law(self) -> FlipLaw:
        return FlipLaw(self.instance.size, self.spread)

    @property
    def decided_by_flips(self) -> bool:
        return True

    @property
    def varying(self) -> Ints:
        return np.arange(self.instance.size)

    @property
    def column_values(self) -> tuple[Floats, ...]:
        return (np.array([-1.0, 1.0]),) * self.instance.size

    @cached_property
    def design(self) -> ProductDesign:
        """Columns of two points; all with the same sign at the instance share one coordinate."""
        places = np.array([-1.0, 1.0])
        law = marginal(Levels(places), [1.0, 1.0], [(Atoms(places, np.ones(2)), np.arange(2))])
        coordinates = {sign: _two_cells(law, int(sign > 0), self.law) for sign in (-1.0, 1.0)}
        return ProductDesign(tuple(coordinates[sign] for sign in self.instance.tolist()))

    def rows(self, flips: Bools, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        z = np.empty(flips.shape)
        height = max(1, _BLOCK // self.law.size)
        for start in range(0, len(flips), height):
            block = slice(start, start + height)
            np.multiply(1 - 2 * flips[block].view(np.int8), self.instance, out=z[block])
        return z


@dataclass(frozen=True, eq=False)
class OtherValues:
    """Values of a column outside a cell: the background's values elsewhere, all equally likely.

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

    @cached_property
    def law(self) -> FlipLaw:
        return FlipLaw(len(self.varying), self.spread)

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
        """All columns; columns that cannot change are points."""
        pairs = zip(self.values, self.others, strict=True)
        return ProductDesign(tuple(_stays_or_changes(value, other, self.law) for value, other in pairs))

    def rows(self, flips: Bools, rng: np.random.Generator) -> Floats:
        rows = np.tile(self.values, (len(flips), 1))
        others = [self.others[j].values for j in self.varying]
        sizes = np.array([other.size for other in others])
        row, literal = np.nonzero(flips)
        drawn = (rng.random(row.size) * sizes[literal]).astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        rows[row, self.varying[literal]] = np.concatenate(others)[starts[literal] + drawn]
        return rows


LiteralNeighbourhood: TypeAlias = LiteralFlips | ColumnChanges


def checked_signs(instance: ArrayLike) -> Floats:
    row = np.array(instance, dtype=np.float64)
    if row.ndim != 1 or row.size == 0:
        raise InputError(f"an instance is one row of literals, got shape {row.shape}")
    wrong = np.flatnonzero(np.abs(row) != 1.0)
    if wrong.size:
        raise InputError(
            f"literal {wrong[0]} of the instance is {row[wrong[0]]}; literals are -1 or +1: "
            "use limes.Literals to make them from a table"
        )
    row.setflags(write=False)
    return row


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
