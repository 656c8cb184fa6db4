r"""The facts under which rows of a table keep a prediction: a search from fact to fact, under anchors' law.

A row b of the table, and a value c_j of each literal's cell, give one neighbour for every set S of facts,

    z_j = c_j  for j in S where b lies in another cell,      z_j = b_j  elsewhere,

so that sets are compared on the same m rows. P(S) is the mean loss. Two rows (b, S) and (b, S') are the same
where the facts that b lacks are: for a fact that b has, the answer is there already. These answers also say,
without a call, how a set does with one more fact in the rows that have it. The facts that do best are added
to the best sets of one fact less, and tried on the rows themselves: all on a part of them, and the better
half each time on twice as many.

It is the search of the law of whole rows, and of that of independent columns where facts are so many that
few draws have them all. Ribeiro, Singh and Guestrin 2018 compare sets by confidence bounds of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from limes._arrays import Floats, Ints
from limes._rules.neighbourhood import ColumnDraws, TableDraws, having
from limes._rules.precision import Facts, SearchResult

# Sets that grow, facts that each of them tries, sets that are tried on all rows at least, and the share of
# the rows on which all are tried first
_WIDTH, _TRIED, _LAST, _FIRST = 4, 8, 8, 1 / 8
# Rows for which the set without the fact counts, in what rows that have it say of a fact
_PRIOR = 4.0
# Digits of errors in which sets are alike
_DIGITS = 12

Scored: TypeAlias = list[tuple[float, Facts]]


class TableFactSample:
    """Rows of a table, and values of a row's cells, by which facts of the row are chosen.

    ``losses`` takes rows (m, columns) and returns their losses (m,).
    """

    is_complete = False

    def __init__(
        self,
        near: ColumnDraws | TableDraws,
        losses: Callable[[Floats], Floats],
        candidates: Ints,
        *,
        rows: int,
        rng: np.random.Generator,
    ) -> None:
        self._near, self._losses, self._candidates = near, losses, candidates
        self._flips, self._rows = near.draw(rng, rows)
        self._values = near.values_of(rng, rows)
        # losses of the first rows, as many as were tried
        self._tried: dict[Facts, Floats] = {}
        self._nodes = 0
        none = self._error((), rows)
        # by the number of facts, the best sets first
        self._levels: list[Scored] = [[(none, ())]]

    @property
    def size(self) -> int:
        return len(self._rows)

    def best(self, k: int, enough: float = np.inf) -> SearchResult:  # noqa: ARG002 - all sets have the same rows
        """Return the best sets of at most k facts that the search tried on all rows."""
        columns = len(np.unique(self._near.varying[self._candidates]))
        while len(self._levels) <= min(k, columns):
            self._levels.append(self._grown(self._levels[-1]))

        def rank(entry: tuple[float, Facts]) -> tuple[float, int, float, Facts]:
            """For sets alike the smaller is better, then the one that more rows of the table have."""
            error, facts = entry
            share = self._near.share(np.array(facts, dtype=np.int64))
            return round(error, _DIGITS), len(facts), -share, facts

        sets = sorted((its for level in self._levels[: k + 1] for its in level), key=rank)
        return SearchResult(tuple(sets), sets[0][0] if k == 0 else 0.0, self._nodes)

    def _grown(self, sets: Scored) -> Scored:
        """Return the best sets of one fact more, tried on all rows."""
        parents: dict[Facts, Facts] = {}
        for _, facts in sets[:_WIDTH]:
            for j in self._promising(facts):
                parents.setdefault(tuple(sorted((*facts, j))), facts)
        self._nodes += len(parents)
        racing, number = list(parents), max(2, int(np.ceil(_FIRST * self.size)))
        while True:
            scored = sorted((self._error(facts, number, parents[facts]), facts) for facts in racing)
            if number == self.size:
                break
            half = max(_LAST, -(-len(scored) // 2))
            racing, number = [facts for _, facts in scored[:half]], min(2 * number, self.size)
        self._tried = {facts: self._tried[facts] for _, facts in scored[:_WIDTH]}
        return scored

    def _promising(self, facts: Facts) -> list[int]:
        """Return the facts that do best beside ``facts`` in the rows that have them anyway."""
        columns = self._near.varying[list(facts)]
        others = self._candidates[~np.isin(self._near.varying[self._candidates], columns)]
        losses, has = self._tried[facts], ~self._flips[:, others]
        mean = (losses @ has + _PRIOR * losses.mean()) / (has.sum(axis=0) + _PRIOR)
        return [int(j) for j in others[np.argsort(mean, kind="stable")[:_TRIED]]]

    def _error(self, facts: Facts, number: int, parent: Facts | None = None) -> float:
        """Mean loss of the first rows with these facts; what was tried before is not asked again."""
        before = self._tried.get(facts, np.zeros(0))
        if number > before.size:
            new = slice(before.size, number)
            flips = self._flips[new]
            losses = np.empty(number - before.size)
            lacks = np.ones(losses.size, dtype=np.bool_)
            if parent is not None:  # the same rows where they have the one fact more
                (added,) = set(facts) - set(parent)
                lacks = flips[:, added]
                losses[~lacks] = self._tried[parent][new][~lacks]
            if lacks.any():
                rows = having(
                    self._near, facts, self._rows[new][lacks], flips[lacks], self._values[new][lacks]
                )
                losses[lacks] = self._losses(rows)
            self._tried[facts] = np.concatenate([before, losses])
        return float(self._tried[facts][:number].mean())
