"""Nodes that a number passes on inner intervals, unfolded into nodes that compare with one threshold.

"x lies in one of several intervals" takes a threshold at each end, and a copy of the subtree below for each
interval. What is known of x from the nodes above decides many tests below, so that copies shrink as they
multiply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats
from limes.models.read import CannotRead
from limes.models.trees import Forest

# Growth beyond both is refused: it would take longer than sampling
_GROWTH, _ALWAYS_FINE = 20, 300_000


class Alternation(NamedTuple):
    """A test whose answer changes at every cut: left below the first one if ``first_left``."""

    cuts: Floats
    first_left: bool
    missing_left: bool


class _Known(NamedTuple):
    """What the nodes above say of one column: lower < x <= upper, or missing."""

    lower: float = -np.inf
    upper: float = np.inf
    missing: bool = True

    @property
    def number(self) -> bool:
        """Whether x may be a number."""
        return self.lower < self.upper


_ANYTHING = _Known()
_MISSING = _Known(np.inf, -np.inf, True)


class _Piece(NamedTuple):
    lower: float
    upper: float
    left: bool


class _Task(NamedTuple):
    """Something to be written below a new node: an old node, or what is left of an alternation at it."""

    node: int
    known: Mapping[int, _Known]
    parent: int
    is_left: bool
    pieces: tuple[_Piece, ...] | None = None
    missing: bool | None = None  # side of a missing value that is still to be told apart


def unfolded(forest: Forest, alternating: Mapping[int, Alternation]) -> Forest:
    """The forest with its alternating nodes written out.

    Raises
    ------
    CannotRead
        If it would grow too large.
    """
    return _Unfolding(forest, alternating).run()


@dataclass
class _Unfolding:
    forest: Forest
    alternating: Mapping[int, Alternation]
    origin: list[int] = field(default_factory=list)  # the old node that a new one is made from
    threshold: list[float] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    tasks: list[_Task] = field(default_factory=list)

    def run(self) -> Forest:
        old = self.forest
        limit = max(_ALWAYS_FINE, _GROWTH * old.feature.size)
        roots = []
        for root in old.roots.tolist():
            roots.append(len(self.origin))
            self.tasks.append(_Task(root, {}, -1, False))
            while self.tasks:
                self._write(self.tasks.pop())
                if len(self.origin) > limit:
                    raise CannotRead(
                        f"its bins or categories are tested one by one, and the trees would grow from "
                        f"{old.feature.size} to more than {limit} nodes; use ordinal codes"
                    )
        origin = np.array(self.origin)
        return replace(
            old,
            feature=old.feature[origin],
            threshold=np.array(self.threshold),
            left=np.array(self.left),
            right=np.array(self.right),
            missing_left=np.array(self.missing_left, dtype=np.bool_),
            value=old.value[origin],
            roots=np.array(roots),
            set_of=old.set_of[origin],
        )

    def _write(self, task: _Task) -> None:
        if task.pieces is not None:
            self._write_pieces(task)
        elif self.forest.feature[task.node] < 0:
            self._node(task, 0.0, missing_left=False)
        elif task.node in self.alternating:
            self._write_alternation(task)
        else:
            self._write_inner(task)

    def _write_inner(self, task: _Task) -> None:
        """A node as it is, unless what is known decides it."""
        forest, node = self.forest, task.node
        source, cut = int(forest.feature[node]), float(forest.threshold[node])
        missing_left = bool(forest.missing_left[node])
        known = task.known.get(source, _ANYTHING)
        if forest.set_of[node] >= 0:
            self._children(task, cut, missing_left=missing_left, below=known, above=known)
            return
        below = _Known(known.lower, min(known.upper, cut), known.missing and missing_left)
        above = _Known(max(known.lower, cut), known.upper, known.missing and not missing_left)
        if not (above.number or above.missing):
            self.tasks.append(task._replace(node=int(forest.left[node])))
        elif not (below.number or below.missing):
            self.tasks.append(task._replace(node=int(forest.right[node])))
        else:
            self._children(task, cut, missing_left=missing_left, below=below, above=above)

    def _children(self, task: _Task, cut: float, *, missing_left: bool, below: _Known, above: _Known) -> None:
        here = self._node(task, cut, missing_left=missing_left)
        forest, source = self.forest, int(self.forest.feature[task.node])
        sides = ((forest.left, below, True), (forest.right, above, False))
        for child, known, is_left in sides:
            self.tasks.append(_Task(int(child[task.node]), {**task.known, source: known}, here, is_left))

    def _write_alternation(self, task: _Task) -> None:
        test = self.alternating[task.node]
        known = task.known.get(int(self.forest.feature[task.node]), _ANYTHING)
        ends = np.concatenate([[-np.inf], test.cuts, [np.inf]])
        pieces = tuple(
            _Piece(max(low, known.lower), min(high, known.upper), test.first_left ^ bool(k % 2))
            for k, (low, high) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
            if max(low, known.lower) < min(high, known.upper)
        )
        missing = test.missing_left if known.missing else None
        self.tasks.append(task._replace(pieces=pieces, missing=missing))

    def _write_pieces(self, task: _Task) -> None:
        """Tell the first piece from the rest; a missing value goes with the first that has its side."""
        assert task.pieces is not None  # noqa: S101 - the caller asks
        if not task.pieces:
            self._below(task, bool(task.missing), _MISSING)
            return
        first, rest = task.pieces[0], task.pieces[1:]
        together = task.missing is not None and task.missing == first.left
        known = _Known(first.lower, first.upper, together)
        left_over = None if together else task.missing
        if not rest and left_over is None:
            self._below(task, first.left, known)
            return
        here = self._node(task, first.upper if rest else np.inf, missing_left=together)
        self._below(task._replace(parent=here, is_left=True), first.left, known)
        self.tasks.append(task._replace(parent=here, is_left=False, pieces=rest, missing=left_over))

    def _below(self, task: _Task, left: bool, known: _Known) -> None:
        forest, source = self.forest, int(self.forest.feature[task.node])
        child = forest.left[task.node] if left else forest.right[task.node]
        self.tasks.append(_Task(int(child), {**task.known, source: known}, task.parent, task.is_left))

    def _node(self, task: _Task, threshold: float, *, missing_left: bool) -> int:
        here = len(self.origin)
        self.origin.append(task.node)
        self.threshold.append(threshold)
        self.missing_left.append(missing_left)
        self.left.append(-1)
        self.right.append(-1)
        if task.parent >= 0:
            (self.left if task.is_left else self.right)[task.parent] = here
        return here
