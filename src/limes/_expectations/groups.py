r"""Columns that interact, as one factor of a product: E_w e^{zF}, F being all that they add to the margin.

F is constant on the cells of a grid, but for the parts of single columns, so that with masses of cells under
the two functionals of each column (``designs/_column.py``), m_j[a] = mean(1[a]) and
c_j[a] = contrast(1[a]),

    mean = Σ_{a,b,...} m_1[a] m_2[b] ... e^{zF(a,b,...)},    contrast_j = the same with c_j in place of m_j.

Columns are summed out one after the other (``models/forms/_linked.py``). The message of a step, what
remains, depends on the row by the cells of the columns summed out so far, and is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.tabulated import ColumnTerm, NodeGroup, finite_functionals
from limes._functions import Density, Function, by_category, texture
from limes._threads import LRUCache
from limes.designs._column import RangedColumn
from limes.designs._gaussian import GaussianPieces
from limes.designs._marginals import Marginal
from limes.exceptions import InputError, ModelError
from limes.models.forms._linked import (
    Elimination,
    Margin,
    StepInteraction,
    columns_of,
    functions_of,
    steps_of_groups,
)
from limes.models.forms._links import Complexes

# Messages cached for each table of a background, and their bytes
_MESSAGES, _BYTES = 1 << 20, 1 << 25

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Pieces:
    """1[cuts[i - 1] < x <= cuts[i]], 1[x > all of them], and 1[x is NaN]: functions of one column."""

    cuts: Floats

    def which(self, x: Floats) -> Ints:
        return np.where(np.isnan(x), self.cuts.size + 1, np.searchsorted(self.cuts, x, side="left"))

    @property
    def points(self) -> Floats:
        return np.append(self.cuts, [np.inf, np.nan])

    def __call__(self, x: Floats) -> Floats:
        return np.asarray(np.arange(self.cuts.size + 2)[:, None] == self.which(x), dtype=np.float64)

    def integrate(self, density: Density) -> Floats:
        ends = np.concatenate([[-np.inf], self.cuts, [np.inf]])
        masses = density.interval(ends[:-1], ends[1:])
        return np.concatenate([masses, np.zeros((1, masses.shape[1]))])


class _Axis:
    """One column of a group: its cells, and what it adds to K margins by itself."""

    def __init__(
        self,
        place: int,
        function: Function | None,
        loading: Floats,
        interactions: Sequence[Function],
        column: RangedColumn,
    ) -> None:
        values = _values(column.marginal)
        read = list(interactions) if function is None else [function, *interactions]
        if values is None:
            _check_steps(place, read)
        pieces = _pieces(read, values)
        means, contrasts = finite_functionals(place, column, pieces)
        masses = np.concatenate([means, contrasts])
        used = np.flatnonzero(masses.any(axis=0))
        # a point beyond all cuts is no value in a lookup: it has mass where the law has
        points = pieces.points[used]
        coarse = _pieces(interactions, values)
        cells, cell = np.unique(coarse.which(points), return_inverse=True)
        order = np.argsort(cell, kind="stable")
        self._masses = masses[:, used[order]]
        self._starts = np.searchsorted(cell[order], np.arange(cells.size))
        self.points = points[
            order[self._starts]
        ]  # one value of each of the A cells that interactions tell apart
        alone = np.zeros((loading.shape[1], points.size))
        if function is not None:
            alone = loading.T @ function(points[order])
        if not np.isfinite(alone).all():
            raise ModelError(f"the margin has no finite value somewhere in column {place}")
        # bounds (K,) of what the column adds by itself
        self._alone, self.lower, self.upper = alone, alone.min(axis=1), alone.max(axis=1)

    def weights(self, nodes: Complexes, owner: Ints) -> tuple[Complexes, Floats]:
        """Functionals of e^{zf - offset} 1[cell], (2V, N, A), means before contrasts; and the offsets."""
        waves, offsets = _waves(nodes, self._alone[owner])
        rows = [np.add.reduceat(waves * mass, self._starts, axis=1) for mass in self._masses]
        return np.stack(rows), offsets


class Group:
    """Columns that interact, in K margins."""

    def __init__(
        self, steps: Sequence[Elimination], axes: Sequence[_Axis], interactions: Sequence[StepInteraction]
    ) -> None:
        # the columns in the order in which they are summed out
        self.steps, self._axes = steps, axes
        self.places = np.array([step.column for step in steps])
        position = {step.column: i for i, step in enumerate(steps)}
        points = {step.column: axis.points for step, axis in zip(steps, axes, strict=True)}
        # for each step the earlier steps whose messages it multiplies, and all columns summed out by then
        self.children: list[list[int]] = [[] for _ in steps]
        self.below: list[tuple[int, ...]] = []
        self._tables: list[Floats | None] = []
        for i, step in enumerate(steps):
            self.below.append((i, *(j for child in self.children[i] for j in self.below[child])))
            if step.scope:
                self.children[position[step.scope[-1]]].append(i)
            first = [each for each in interactions if min(position[j] for j in each.columns) == i]
            self._tables.append(_table(step, first, points) if first else None)
        parts = [table.reshape(len(table), -1) for table in self._tables if table is not None]
        self.lower = sum(axis.lower for axis in axes) + sum(part.min(axis=1) for part in parts)
        self.upper = sum(axis.upper for axis in axes) + sum(part.max(axis=1) for part in parts)

    def tables(
        self, groups: Sequence[NodeGroup], derive: Callable[[Complexes, Complexes, Floats], T]
    ) -> GroupTables[T]:
        """Return lookups of means (P, N), contrasts (P, g, N) and offsets (N,), converted to a T."""
        nodes = np.concatenate([nodes for nodes, _ in groups])
        owner = np.repeat(np.arange(len(groups)), [nodes.size for nodes, _ in groups])
        weighted = [axis.weights(nodes, owner) for axis in self._axes]
        offsets = np.sum([offset for _, offset in weighted], axis=0)
        waves: list[Complexes | None] = []
        for table in self._tables:
            wave = None
            if table is not None:
                flat, offset = _waves(nodes, table.reshape(len(table), -1)[owner])
                wave, offsets = flat.reshape(nodes.size, *table.shape[1:]), offsets + offset
            waves.append(wave)
        return GroupTables(self, [w for w, _ in weighted], waves, offsets, derive)


def _table(
    step: Elimination, interactions: Sequence[StepInteraction], points: Mapping[int, Floats]
) -> Floats:
    """Sum of interactions on the cells of a step's columns, (K, A of its scope, A of its column)."""
    axes = (*step.scope, step.column)
    total: Floats | float = 0.0
    for each in interactions:
        values = np.moveaxis(each.table([points[j] for j in each.columns]), -1, 0)
        order = sorted(range(len(each.columns)), key=lambda a: axes.index(each.columns[a]))
        shape = [points[j].size if j in each.columns else 1 for j in axes]
        total = total + values.transpose(0, *(1 + a for a in order)).reshape(len(values), *shape)
    return np.asarray(total)


class _Summed(NamedTuple):
    """The result of a step for one pattern and N nodes."""

    message: Complexes  # the sum, (N, A of each column in the scope)
    around: Complexes  # product of the messages over the column alone, (N, A)
    # product of the interactions and of the messages over several columns, (N, A of the scope, A)
    table: Complexes | None


class GroupTables(Generic[T]):
    """Sums of one group for N nodes with offsets (N,); a pattern consists of the laws of its columns."""

    def __init__(
        self,
        group: Group,
        weights: Sequence[Complexes],
        waves: Sequence[Complexes | None],
        offsets: Floats,
        derive: Callable[[Complexes, Complexes, Floats], T],
    ) -> None:
        self._group, self._weights, self._waves = group, weights, waves
        self.offsets, self._derive = offsets, derive
        self._steps: LRUCache[tuple[int, ...], _Summed] = LRUCache(_MESSAGES, _BYTES)

    def at(self, index: Ints) -> tuple[Ints, T]:
        patterns, which = np.unique(index[:, self._group.places], axis=0, return_inverse=True)
        # one pattern and one shape at a time: the bits do not depend on the other rows
        contrasts = np.array([self._contrasts(pattern) for pattern in patterns.tolist()])
        means = np.array([self._summed(len(p) - 1, p).message for p in patterns.tolist()])
        return which.ravel(), self._derive(means, contrasts, self.offsets)

    def _summed(self, i: int, pattern: list[int]) -> _Summed:
        key = (i, *(pattern[j] for j in self._group.below[i]))
        return self._steps.get(key, lambda: self._sum_out(i, pattern), self._bytes)

    def _bytes(self, summed: _Summed) -> int:
        shared = summed.table is None or any(summed.table is wave for wave in self._waves)
        return sum(part.nbytes for part in summed[: 2 if shared else 3] if part is not None)

    def _sum_out(self, i: int, pattern: list[int]) -> _Summed:
        weight = self._weights[i][pattern[i]]
        around, table = self._around(i, pattern), self._table(i, pattern)
        weight = weight * around
        if table is None:
            return _Summed(weight.sum(axis=1), around, None)
        flat = table.reshape(len(table), -1, table.shape[-1])
        return _Summed((flat @ weight[:, :, None]).reshape(table.shape[:-1]), around, table)

    def _around(self, i: int, pattern: list[int], but: int | None = None) -> Complexes:
        """The product of the messages over column i alone, except one child's."""
        product = np.ones(self._weights[i].shape[1:], dtype=np.complex128)
        for child in self._group.children[i]:
            if child != but and len(self._group.steps[child].scope) == 1:
                product = product * self._summed(child, pattern).message
        return product

    def _table(self, i: int, pattern: list[int], but: int | None = None) -> Complexes | None:
        """The product of interactions and of messages over several columns, except one child's."""
        table, step = self._waves[i], self._group.steps[i]
        for child in self._group.children[i]:
            scope = self._group.steps[child].scope
            if child == but or len(scope) == 1:
                continue
            message = self._summed(child, pattern).message
            sizes = iter(message.shape[1:])
            axes = (*step.scope, step.column)
            message = message.reshape(len(message), *(next(sizes) if j in scope else 1 for j in axes))
            table = message if table is None else table * message
        return table

    def _contrasts(self, pattern: list[int]) -> Complexes:
        """Contrasts of all columns, (g, N)."""
        nodes, last = self.offsets.size, len(pattern) - 1
        contrasts = np.empty((len(pattern), nodes), dtype=np.complex128)
        # factor of each step's message, (N, A of each column in its scope)
        factors = {last: np.ones(nodes, dtype=np.complex128)}
        for i in range(last, -1, -1):
            summed, factor = self._summed(i, pattern), factors.pop(i)
            along = factor.reshape(nodes, 1, -1)
            if summed.table is not None:
                along = along @ summed.table.reshape(nodes, -1, summed.table.shape[-1])
            weights = self._weights[i]
            change = weights[pattern[i] + len(weights) // 2]
            contrasts[i] = (change * summed.around * along[:, 0]).sum(axis=1)
            for child in self._group.children[i]:
                factors[child] = self._factor(i, child, pattern, factor, along[:, 0])
        return contrasts

    def _factor(
        self, i: int, child: int, pattern: list[int], factor: Complexes, along: Complexes
    ) -> Complexes:
        """The factor of a child's message, from the factor of its parent's."""
        weight = self._weights[i][pattern[i]]
        step, scope = self._group.steps[i], self._group.steps[child].scope
        if len(scope) == 1:
            return np.asarray(along * weight * self._around(i, pattern, but=child))
        axes = (*step.scope, step.column)
        around = (weight * self._around(i, pattern)).reshape(len(weight), *(1,) * len(step.scope), -1)
        product = factor[..., None] * around
        others = self._table(i, pattern, but=child)
        product = product if others is None else product * others
        away = tuple(1 + a for a, j in enumerate(axes) if j not in scope)
        return np.asarray(product.sum(axis=away))


def factors_of(margin: Margin, laws: Sequence[RangedColumn], outputs: slice) -> list[ColumnTerm | Group]:
    """The factors of E e^{zS} for some of a margin's outputs; a group of too many cells is refused."""
    terms = [
        (f, loading[:, outputs])
        for f, loading in zip(margin.terms.functions, margin.terms.loadings, strict=True)
    ]
    interactions = [replace(each, coef=each.coef[:, outputs]) for each in margin.interactions]
    axes = {j: _Axis(j, *terms[j], functions_of(interactions, j), laws[j]) for j in columns_of(interactions)}
    columns = ColumnTerm.of_all(
        {
            j: (function, loading)
            for j, (function, loading) in enumerate(terms)
            if function is not None and loading.any() and j not in axes
        },
        laws,
    )
    groups = steps_of_groups(interactions, {j: axis.points.size for j, axis in axes.items()})
    return [*columns, *(_group(steps, axes, interactions) for steps in groups)]


def _group(
    steps: Sequence[Elimination], axes: Mapping[int, _Axis], interactions: Sequence[StepInteraction]
) -> Group:
    columns = [step.column for step in steps]
    return Group(steps, [axes[j] for j in columns], [e for e in interactions if e.columns[0] in columns])


def _waves(nodes: Complexes, values: Floats) -> tuple[Complexes, Floats]:
    """e^{zv - offset} of values (N, A), and the offsets, the largest Re zv."""
    exponents = nodes[:, None] * values
    offsets = exponents.real.max(axis=1)
    return np.exp(exponents - offsets[:, None]), offsets


def _values(law: Marginal) -> Floats | None:
    """The values that a column takes, ascending, without NaN; None where it has a density."""
    if any(isinstance(measure, GaussianPieces) for measure in law.measures):
        return None
    values = np.unique(np.concatenate([m.value[m.weight > 0] for m in law.measures]))  # type: ignore[union-attr]
    return np.asarray(values[~np.isnan(values)])


def _pieces(functions: Sequence[Function], values: Floats | None) -> _Pieces:
    """The pieces on which functions are constant: between breaks, or the values that a column takes."""
    steps = [texture(function) for function in functions]
    if values is not None and not all(
        step.constant and not by_category(f) for step, f in zip(steps, functions, strict=True)
    ):
        return _Pieces(values)
    return _Pieces(np.unique(np.concatenate([step.breaks for step in steps])))


def _check_steps(place: int, functions: Sequence[Function]) -> None:
    for function in functions:
        if by_category(function):
            raise InputError(
                f"the model looks up the categories of column {place}, but the background takes it as a "
                "number: name it in categorical="
            )
        if not texture(function).constant:
            raise InputError(
                f"column {place} interacts with others, and what it adds by itself is not constant between "
                "breaks: such sums have no exact expectation where the column has a density"
            )
