"""How well surrogates under the joint law fit, and their effects, from the background's answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import Floats, Ints, Objects
from limes._explainers.tables.accounts import Accounts
from limes._explainers.tables.few_rows import contributions_at
from limes._explainers.tables.fits import MOST_EFFECTS, FitNumbers, sampled_fidelities
from limes._explanation.fit import RowEffects
from limes._fidelity.weighted_rows import JointEffects, PairEffect
from limes._sampling.joint import JointExpectation
from limes._shapley.exact import RowContributions
from limes._shapley.game_controls import OccurringDraws
from limes._shapley.interventional import Interventional
from limes._shapley.permutations import ControlVariates, PermutationSampler
from limes._shapley.sampled_pairs import SampledPairs
from limes._shapley.starts import OccurringStarts
from limes._shapley.within import Sharing
from limes._threads import LRUCache
from limes._tuples import Tuples

if TYPE_CHECKING:
    from limes._explainers.tables.groups import GroupColumn
    from limes._fitting import Fitted


@dataclass(frozen=True, eq=False)
class _JointRow:
    """Effects of one row under the joint law, where each is the mean over the rows of its cell."""

    parts: JointEffects
    cells: Ints
    hidden: Floats | None = None

    @property
    def r_squared(self) -> tuple[Floats, Floats]:
        return self.parts.additive

    @cached_property
    def effects(self) -> RowEffects:
        each = zip(*map(self.parts.column, range(self.cells.size)), strict=True)
        values, errors, masses, shares, share_errors = each
        current = self.cells.tolist()
        return RowEffects([*values], [*errors], [*masses], current, np.stack(shares), np.stack(share_errors))


@dataclass(frozen=True, eq=False)
class JointFits(Accounts):
    """Fits of the rows of one call under the joint law, from the answers to the background's rows."""

    expectation: JointExpectation
    texts: Sequence[Objects]  # the columns' cells in words
    x: Floats  # (n, d)
    cells: Ints  # (n, d)
    fit: Callable[[], Fitted]  # the surrogates
    predictions: Floats  # (n, ...)
    walks: PermutationSampler | None
    spent: Ints  # calls that each row rests on already, where one bound is set for all
    groups: Mapping[int, GroupColumn]  # columns that are groups, by their positions
    refusal: Exception | None = None
    _walked: dict[int, RowContributions] = field(default_factory=dict, init=False)
    _paired: dict[int, SampledPairs] = field(default_factory=dict, init=False)
    _effects: LRUCache[bytes, JointEffects] = field(
        default_factory=lambda: LRUCache(MOST_EFFECTS), init=False
    )

    has_curves = True
    is_quick = False

    @property
    def account_seconds(self) -> float:
        exact = self.expectation.interventional
        return 0.0 if exact is None else exact.seconds

    @property
    def pair_seconds(self) -> float:
        exact: Interventional | None = self.expectation.interventional
        return np.inf if exact is None else exact.pair_seconds

    @cached_property
    def _background_cells(self) -> Ints:
        """Cells of the background's rows, (n, d), which the effects of all explained rows share."""
        return self.expectation.family.codes.astype(np.int64)

    def fidelities(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        return sampled_fidelities(self.fitted, rows)

    def additive_numbers(self, rows: Sequence[int]) -> list[FitNumbers]:
        return [(*fit.r_squared, fit.hidden) for fit in self.additive(rows)]

    def additive(self, rows: Sequence[int]) -> list[_JointRow]:
        return [_JointRow(self._at(row), self.cells[row]) for row in rows]

    def pairs(self, row: int, output: int, top: int, columns: Sequence[int]) -> list[PairEffect]:
        several = [j for j in columns if len(self.texts[j]) > 1]
        pairs = [self._at(row).pair(*both) for both in combinations(several, 2)]
        return [p.of_output(output) for p in sorted(pairs, key=lambda p: -p.share[output])[:top]]

    def cell_texts(self, row: int, column: int) -> tuple[str, ...]:  # noqa: ARG002 - the same for all rows
        return tuple(self.texts[column].tolist())

    @property
    def has_exact(self) -> bool:
        return self.expectation.interventional is not None

    def _exact_contributions(self, at: Ints) -> RowContributions:
        exact: Interventional | None = self.expectation.interventional
        assert exact is not None  # noqa: S101 - these rows were not sampled
        return exact.at(self.x[at], self.cells[at])

    def _exact_indices(self, at: Ints) -> Floats:
        exact: Interventional | None = self.expectation.interventional
        assert exact is not None  # noqa: S101 - these rows were not sampled
        return exact.pairs(self.x[at], self.cells[at])

    def _starts(self, row: int) -> OccurringStarts:
        family = self.expectation.family
        around = family.around(self.cells[row])
        return OccurringStarts(family.rows, self.expectation.answers, around, family.omitted)

    def _shared(self, row: int, column: int, tuples: Tuples) -> Sharing:
        return self._walked_within(self.x[row], column, tuples, self._starts(row))

    def _walked_to(self, row: int, others: ControlVariates | None, *, is_current: bool) -> RowContributions:
        assert self.walks is not None  # noqa: S101 - the joint law is never exact
        spent, prediction = int(self.spent[row]), self.predictions[row].reshape(-1)
        if self.walks.asks:
            law = self._law(row)
            return contributions_at(self.walks, law, prediction, None, spent, is_current=is_current)
        starts = self._starts(row)
        return self.walks.at(self.x[row], prediction, starts, others, spent, is_current=is_current)

    def _law(self, row: int) -> OccurringDraws:
        return OccurringDraws(self.x[row], self._starts(row), self.expectation.family.product)

    def _at(self, row: int) -> JointEffects:
        cells = self.cells[row]

        def compute() -> JointEffects:
            counts = [len(texts) for texts in self.texts]
            weights = self.expectation.family.around(cells).weights
            return JointEffects(self._background_cells, counts, weights, self.expectation.answers)

        return self._effects.get(cells.tobytes(), compute)
