"""How the answers that a call may ask for are split: ``max_calls`` bounds them all.

One input or one row asks for

- its prediction, and checks: whether what was read agrees, whether the model is a function;
- the sets or rows that coefficients rest on, which rows of a table share in a pool;
- what contributions need beside these.

*Inputs* draw sets that serve both (``_shapley/coalitions.py``): nothing is split. *Tables* leave half of what
checks do not take to contributions, which ask about other rows than a pool: the pool, or a row's own draws,
has the other half, and contributions what is left; all of it where they alone are asked for. Of few calls
contributions have the first, 8 a column and 96 at most, since coefficients have no finite errors from the
half. Where they are not wanted, the pool has it all. The split depends on options alone, so that a row's
numbers do not depend on the rows beside it: no row rests on more than ``max_calls`` answers, shared or its
own. Of few calls none is for asking once more.

`AnswerCount` counts what is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from limes._arrays import Floats
from limes._explainers.options import SamplingOptions, unasked_calls
from limes._sampling.sampled import FEWEST, Sampling, least_calls
from limes._shapley.coalitions import SubsetCalls, coalitions
from limes._shapley.permutations import least_walked
from limes.designs._exchangeable import LARGEST_ENUMERATION, ExchangeableDesign
from limes.exceptions import InputError
from limes.models._calling.caller import CHECK_CALLS
from limes.models._identity import WITNESSES

# The share of the calls, and the least and most of them, for what is asked once more; of a table the share
# that contributions have, and that a background's rows may have if these are all of them
_AGAIN, _LEAST_AGAIN, _MOST_AGAIN = 1 / 16, 4, 256
_RESERVED, _OCCURRING = 1 / 2, 3 / 4
# Calls that contributions of a table's row have before coefficients have more than the fewest: a number a
# column, at most
_FIRST_A_COLUMN, _FIRST = 8, 96
# Answers of which none is asked for once more; checks of a table's function
_UNWITNESSED, _CHECKS = 16, 2 + CHECK_CALLS
# Rows without which contributions have no variance: two sets of kept columns, and a row that keeps none
LEAST_ROWS = 3
# max_calls below which no row is asked about for the shape of its answer alone
FEW_CALLS = 64
# Share of the calls for the mean answer over a background, with all hidden
_BASE_SHARE = 1 / 16


def least_for_input(d: int) -> int:
    """Least ``max_calls`` with which d coefficients of an input are exact, or fitted together."""
    return 1 + CHECK_CALLS + min((1 << min(d, LARGEST_ENUMERATION)) - 1, least_calls(d))


def least_for_table(columns: int) -> int:
    """The same of a table's row by itself."""
    checks, least = _CHECKS, least_calls(columns)
    options = SamplingOptions(max_calls=checks + least, contributions=False)
    budget = TableBudget(options, columns, checks)
    return budget.least_bound(checks + least, lambda its: its.samples >= least)


@dataclass(frozen=True)
class InputBudget:
    """The calls of one input: of a text, an image, a series, several inputs."""

    most: int  # max_calls
    checks: int  # answers to the whole input, and for checks
    items: int = 1  # answers that one set costs
    is_function: bool = True
    is_drawn: bool = False  # whether each answer has an item of a background
    has_account: bool = True  # whether the same sets are to serve contributions
    answered: int = 0  # sets that checks have answers to, beside the one that hides nothing

    @property
    def _answers(self) -> int:
        """Sets that are answered without the one that hides nothing."""
        return max(0, (self.most - self.checks) // self.items)

    @property
    def witnesses(self) -> int:
        """Sets that are asked about again where contributions are read later; twice if the answers moved."""
        if self._answers < _UNWITNESSED:
            return 0
        return max(1, min(WITNESSES, int(_AGAIN * self._answers) // 4))

    @property
    def sets(self) -> int:
        """Sets that may be drawn, beside the one that hides nothing."""
        return max(0, self._answers - 2 * self.witnesses)

    @property
    def states(self) -> int:
        """Sets that may be enumerated; the answer to the whole input is one of them."""
        return self._answers + 1 + self.answered if self.most >= self.checks else 1

    def fresh(self, first: Floats) -> int:
        """Sets that may be drawn beside the ``first`` ones (m, d), where none is asked again."""
        # of these the one that hides nothing, and some others, are answered
        needed = len(np.unique(first, axis=0)) - self.answered - 1
        return max(0, self._answers - needed)

    def even(self, design: ExchangeableDesign) -> ExchangeableDesign:
        """The law of sets of few features."""
        others = coalitions(design.size, alone=False)
        return ExchangeableDesign.between([design, others]) if self.has_account else design

    def check(self, d: int, *, is_completed: bool) -> None:
        """InputError where sets are too few; ``is_completed`` if a process estimates the others."""
        if self.sets < FEWEST:
            least = SubsetCalls.least(is_function=self.is_function)
            sets = least if self.has_account and not is_completed else FEWEST
            raise InputError(
                f"max_calls={self.most} is too few to estimate {d} coefficients; use at least "
                f"{self._least(d, sets)}"
            )

    def _least(self, d: int, sets: int) -> int:
        """Fewest calls that leave n for ``sets``, or are enough for all."""
        every = (1 << min(d, LARGEST_ENUMERATION)) - 1 - self.answered
        if sets >= _UNWITNESSED:
            sets += 2  # for one that is asked about again
        return self.checks + (min(sets, every) if self.is_function else sets) * self.items

    def split(self, d: int) -> SubsetCalls | None:
        """The calls of sets that serve coefficients and contributions; None where they serve one alone."""
        return self._split(self.sets, d, shared=True) if self.has_account else None

    def drawn(self, design: ExchangeableDesign, spent: SubsetCalls) -> ExchangeableDesign:
        """The law of such sets."""
        others = coalitions(design.size, alone=spent.alone and self.is_function)
        return ExchangeableDesign.between([design, others])

    def rest(self, d: int, calls: int) -> SubsetCalls:
        """Contributions from what coefficients with n ``calls`` leave; InputError if too little."""
        rest, least = self.sets - calls, SubsetCalls.least(is_function=self.is_function)
        spent = self._split(rest, d, shared=False)
        if spent is None:
            alone = self.most + (least - rest) * self.items
            shared = self._least(d, least)
            advice = f"use at least {shared if self.has_account else alone}"
            if not self.has_account:
                advice += f", or {shared} with contributions='auto', by which they share the calls"
            raise InputError(
                f"max_calls={self.most} is too few for contributions of {d} features, for which {rest:,} "
                f"calls are left; {advice}"
            )
        return spent

    def _split(self, calls: int, d: int, *, shared: bool) -> SubsetCalls | None:
        share = _BASE_SHARE if self.is_drawn else 0.0
        return SubsetCalls.split(calls, d, is_function=self.is_function, share=share, shared=shared)


@dataclass(frozen=True)
class TableBudget:
    """The calls of one row of a table, with those that it shares with others."""

    options: SamplingOptions
    columns: int
    checks: int  # answers before any row is explained

    @property
    def most(self) -> int | None:
        """Bound of all answers that a row rests on, if the user sets one."""
        return self.options.max_calls

    @property
    def again(self) -> int:
        """Answers that a call, and who reads contributions later, may ask once more, for all of its rows."""
        if self.most is None:
            return 0
        wanted = max(_LEAST_AGAIN, min(int(_AGAIN * self.most), _MOST_AGAIN))
        return min(wanted, max(0, self._answers - _UNWITNESSED))

    @property
    def witnesses(self) -> int:
        """Rows that a call asks again, as who reads contributions later does; twice where answers moved."""
        return WITNESSES if self.most is None else min(WITNESSES, self.again // 4)

    @property
    def _answers(self) -> int:
        assert self.most is not None  # noqa: S101 - asked where there is a bound
        return max(0, self.most - self._kept_checks - 1)  # one is the prediction

    @property
    def _rest(self) -> int:
        return self._answers - self.again

    @property
    def _kept_checks(self) -> int:
        """Get what checks took: where a form that was read turned out not to be the model, half at most."""
        return self.checks if self.most is None else min(self.checks, max(self.most // 2, _CHECKS))

    @property
    def _reserved(self) -> int:
        """Calls that contributions have at least; 0 where they have too few, or are not wanted."""
        if self.options.contributions is False or self._rest < FEWEST + LEAST_ROWS:
            return 0
        first = min(_FIRST_A_COLUMN * self.columns, _FIRST, self._rest - FEWEST)
        return max(int(_RESERVED * self._rest), first)

    @property
    def samples(self) -> int:
        """Largest pool, and most own draws of a row."""
        return self.options.sampling.max_calls if self.most is None else self._rest - self._reserved

    @property
    def shared(self) -> int:
        """Largest pool."""
        if self.most is not None:
            return self.samples
        its = self.options
        return its.sampling.max_shared if its.has_limits else unasked_calls(self.columns)[0]

    def occurring(self, rows: int) -> int:
        """How many of a background's rows the model is asked about."""
        if self.most is None:
            return rows
        return rows if self._reserved and rows <= _OCCURRING * self._rest else min(rows, self.samples)

    @property
    def walked(self) -> int:
        """Most calls for a row's contributions, less what the row rests on already where a bound is set."""
        if self.most is not None:
            return self._rest
        its = self.options
        return its.sampling.max_calls if its.has_limits else unasked_calls(self.columns)[1]

    @property
    def can_afford_permutations(self) -> bool:
        """Whether contributions have enough calls."""
        return bool(self._reserved) if self.most is not None else least_walked(self.columns) <= self.walked

    def sampling(self, *, is_read: bool) -> Sampling:
        """The sampler's options; a read form answers without calls. InputError where calls are too few."""
        its = self.options.sampling
        if is_read:
            return its
        if self.samples < FEWEST:
            raise InputError(
                f"max_calls={self.most} is too few to estimate {self.columns} coefficients; use at least "
                f"{self._fewest}"
            )
        return replace(its, max_calls=self.samples, max_shared=self.shared)

    def advice(self, missing: int) -> str:
        """Return what to do where contributions miss n calls."""
        if self.most is not None and self.options.contributions is False:
            return (
                f"max_calls={self.most} is used up by coefficients; pass contributions='auto', which leaves "
                "them calls, or a larger max_calls"
            )
        least = self.least_bound((self.most or 0) + missing, lambda budget: budget.can_afford_permutations)
        return f"pass max_calls of at least {least:,}"

    @property
    def _fewest(self) -> int:
        return self.least_bound(self.checks + 1 + FEWEST, lambda budget: budget.samples >= FEWEST)

    def least_bound(self, first: int, holds: Callable[[TableBudget], bool]) -> int:
        """The least ``max_calls``, from ``first`` on, with which something holds."""
        for most in count(first):
            if holds(replace(self, options=replace(self.options, max_calls=most))):
                return most
        raise AssertionError  # count never ends
