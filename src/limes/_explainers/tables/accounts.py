"""Contributions of the rows of one call, exact or by walks; their pairs, and how groups share theirs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.moments import REFUSED, admitted
from limes._explainers.budget import LEAST_ROWS
from limes._explainers.tables.few_rows import enumerated_pairs_at, pairs_at
from limes._explanation.fit import WithinGroup
from limes._shapley.exact import RowContributions
from limes._shapley.game_controls import GameLaw
from limes._shapley.pairs import beside_diagonal
from limes._shapley.permutations import ControlVariates, PermutationSampler
from limes._shapley.sampled_pairs import PairSampler, SampledPairs
from limes._shapley.starts import Starts
from limes._shapley.within import Sharing, drawn_sharing, least_shared
from limes._tuples import Tuples
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._explainers.tables.groups import GroupColumn
    from limes._fitting import Fitted


class Accounts(ABC):
    """Contributions of rows, exact or by walks; coefficients."""

    fit: Callable[[], Fitted]
    walks: PermutationSampler | None  # None with method="exact"
    x: Floats  # (n, d)
    predictions: Floats  # (n, ...)
    groups: Mapping[int, GroupColumn]  # columns that are groups, by their positions
    # what the exact contributions of all rows together raised, if they were computed already
    refusal: Exception | None
    # contributions and pairs of single rows by calls of the model, which are not repeated
    _walked: dict[int, RowContributions]
    _paired: dict[int, SampledPairs]

    @cached_property
    def fitted(self) -> Fitted:
        return self.fit()

    @property
    @abstractmethod
    def has_exact(self) -> bool:
        """Whether contributions are exact, but for single rows that are refused."""

    @property
    def calls_a_row(self) -> int:
        """Calls of the model that contributions of a row may take; 0 of a form."""
        return self.walks.sampling.max_calls if self.walks is not None and self.walks.asks else 0

    @abstractmethod
    def _exact_contributions(self, at: Ints) -> RowContributions: ...

    @abstractmethod
    def _exact_indices(self, at: Ints) -> Floats:
        """Shapley interaction indices at rows, (n, d, d, k)."""

    @abstractmethod
    def _walked_to(
        self, row: int, others: ControlVariates | None, *, is_current: bool
    ) -> RowContributions: ...

    def _others(self, rows: Ints) -> Sequence[ControlVariates | None]:
        """Control variates of each row's walks."""
        return [None] * len(rows)

    def contributions(self, rows: Sequence[int], *, is_current: bool = False) -> RowContributions:
        missing = np.array([row for row in dict.fromkeys(rows) if row not in self._walked], dtype=np.int64)
        read = missing if self.has_exact else missing[:0]
        error = self.refusal if read.size == len(self.x) else None
        if self.walks is None and error is not None:
            # method="exact" gives no estimates
            raise error
        if self.walks is None:
            computed = [(read, self._exact_contributions(read))] if read.size else []
        else:
            computed, _ = admitted(read, self._exact_contributions, error)
        exact = np.concatenate([read[:0], *(at for at, _ in computed)])
        parts = [part for _, part in computed]
        if len(parts) == 1 and exact.size == len(rows):
            return parts[0]  # no row was walked, or is asked for twice
        pending = np.setdiff1d(missing, exact)
        for row, others in zip(pending.tolist(), self._others(pending), strict=True):
            self._walked[row] = self._walked_to(row, others, is_current=is_current)
            is_current = True
        walked = np.setdiff1d(rows, exact)
        parts += [self._walked[row] for row in walked.tolist()]
        place = {row: i for i, row in enumerate([*exact.tolist(), *walked.tolist()])}
        return RowContributions.joined(parts).take(np.array([place[row] for row in rows]))

    @abstractmethod
    def _starts(self, row: int) -> Starts:
        """The law that walks at a row begin at."""

    def halved_pairs(self, rows: Sequence[int]) -> tuple[Floats, Floats]:
        """Exact ones, and estimates at rows that are refused, or of all rows where none is exact."""
        at = np.asarray(rows, dtype=np.int64)
        distinct, parts = np.unique(at), list[tuple[Ints, Floats]]()
        if self.has_exact and self.walks is None:
            parts = [(distinct, self._exact_indices(distinct))]
        elif self.has_exact:
            parts, _ = admitted(distinct, self._exact_indices)
        elif self.walks is None:
            raise InputError(NO_PAIRS)
        outputs = self.predictions.reshape(len(self.predictions), -1).shape[1]
        halves, errors = np.zeros((2, len(at), *2 * (self.x.shape[1],), outputs))
        exact = np.zeros(len(at), dtype=np.bool_)
        for read, indices in parts:
            its = np.isin(at, read)
            halves[its] = beside_diagonal(indices)[np.searchsorted(read, at[its])]
            exact |= its
        for i in np.flatnonzero(~exact).tolist():
            assert self.walks is not None  # noqa: S101 - without walks all were read
            row = int(at[i])
            if row not in self._paired:
                self._paired[row] = self._pairs_by_calls(row, PairSampler(self.walks), outputs)
            halves[i] = beside_diagonal(self._paired[row].indices[None])[0]
            errors[i] = self._paired[row].errors
        return halves, errors

    def _pairs_by_calls(self, row: int, sampler: PairSampler, outputs: int) -> SampledPairs:
        x, starts, sampling = self.x[row], self._starts(row), sampler.walks.sampling
        prediction = self.predictions[row].reshape(-1)
        if sampler.walks.asks and sampling.is_function:
            exact = enumerated_pairs_at(sampler.walks, self._law(row), prediction)
            if exact is not None:
                return exact
        columns = int(starts.varies(x).sum())
        if columns < 2 or sampler.affords(columns) or sampling.max_calls < LEAST_ROWS:
            return sampler.at(x, starts, outputs)
        return pairs_at(sampler.walks, self._law(row), prediction)

    @abstractmethod
    def _law(self, row: int) -> GameLaw:
        """The law of drawn rows at a row."""

    def within(self, row: int, column: int) -> WithinGroup:
        """How the columns of a group share its contribution at a row, of all outputs."""
        if column not in self.groups:
            raise InputError("this column is no group: within() shares what a group of groups= contributes")
        group = self.groups[column]
        shared = self._shared(row, column, group.tuples)
        if shared.errors.any():  # of other draws than the contribution
            its = self.contributions([row])
            shared = shared.adding_up_to(its.values[0, column], its.errors[0, column])
        return WithinGroup(tuple(its.name for its in group.columns), *shared)

    @abstractmethod
    def _shared(self, row: int, column: int, tuples: Tuples) -> Sharing: ...

    def _walked_within(self, x: Floats, column: int, tuples: Tuples, starts: Starts) -> Sharing:
        if self.walks is None:
            raise InputError(
                "the group has no exact shares at this row, and method='exact' gives no estimates: use 'auto'"
            )

        def draw(rng: np.random.Generator, count: int) -> Floats:
            return starts.drawing(1, count).draw(rng, count).z

        sampling, least = self.walks.sampling, least_shared(tuples.width)
        if sampling.max_calls < least:
            raise InputError(
                f"shares of {tuples.width} columns of a group need {least:,} calls a row, and max_calls= is "
                f"{sampling.max_calls:,}: {self.walks.advice(least - sampling.max_calls)}"
            )
        if self.walks.check is not None:
            self.walks.check()
        return drawn_sharing(self.walks.predict, draw, x, column, tuples, sampling.seed, sampling.max_calls)

    def exact_contributions(self, rows: Sequence[int]) -> RowContributions | None:
        try:
            return self._exact_contributions(np.array(rows)) if self.has_exact else None
        except REFUSED:
            return None


NO_PAIRS = (
    "the pairs of these contributions have no closed form, and method='exact' gives no estimates: pass "
    "method='auto'; of boosted trees output='margin' has exact ones"
)
