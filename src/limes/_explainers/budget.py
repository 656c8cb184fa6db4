"""How the answers that a call may ask for are split: ``max_calls`` bounds them all.

One input or one row asks for

- its prediction, and checks: whether what was read agrees, whether the model is a function;
- the sets or rows that coefficients rest on, which rows of a table share in a pool;
- what contributions need beside these.

*Inputs* draw sets that serve both (``_expectations/coalitions.py``): nothing is split. *Tables* leave half of
what checks do not take to contributions, whose walks ask about other rows than a pool: the pool, or a row's
own draws, has the other half, and walks what is left. Where that is too little for walks, or contributions
are not wanted, the pool has it all. The split depends on options and columns alone, so that a row's numbers
do not depend on the rows beside it: no row rests on more than ``max_calls`` answers, shared or its own.

What is told is what `Tally` counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from limes._expectations.coalitions import SubsetCalls, coalitions
from limes._expectations.sampled import FEWEST
from limes.designs._exchangeable import ExchangeableDesign
from limes.exceptions import InputError

# Share of the calls for the mean answer over a background, with all hidden
_BASE_SHARE = 1 / 16


@dataclass(frozen=True)
class InputBudget:
    """The calls of one input: of a text, an image, a series, several inputs."""

    most: int  # max_calls
    asked: int  # answers to the whole input, and for checks
    items: int = 1  # answers that one set costs
    is_function: bool = True
    is_drawn: bool = False  # whether each answer has an item of a background
    has_account: bool = True  # whether the same sets are to serve contributions

    @property
    def left(self) -> int:
        """Sets that may be asked about, beside the one that hides nothing."""
        return max(0, (self.most - self.asked) // self.items)

    @property
    def states(self) -> int:
        """Sets that may be enumerated; the answer to the whole input is one of them."""
        return self.left + 1

    def check(self, d: int) -> None:
        if self.left < FEWEST:
            raise InputError(
                f"max_calls={self.most} is too few to estimate {d} coefficients; use at least "
                f"{self.asked + FEWEST * self.items}"
            )

    def split(self, d: int) -> SubsetCalls | None:
        """The calls of sets that serve coefficients and contributions; None where they serve one alone."""
        return self._split(self.left, d, shared=True) if self.has_account else None

    def drawn(self, design: ExchangeableDesign, spent: SubsetCalls) -> ExchangeableDesign:
        """The law of such sets."""
        others = coalitions(design.size, alone=spent.alone and self.is_function)
        return ExchangeableDesign.between([design, others])

    def rest(self, d: int, calls: int) -> SubsetCalls:
        """Contributions from what coefficients with so many ``calls`` have left; InputError if too little."""
        left, least = self.left - calls, SubsetCalls.least(is_function=self.is_function)
        spent = self._split(left, d, shared=False)
        if spent is None:
            shares = " (with contributions='auto' they share the calls)" if not self.has_account else ""
            raise InputError(
                f"max_calls={self.most} is too few for contributions of {d} features, for which {left:,} "
                f"calls are left; use at least {self.most + (least - left) * self.items}{shares}"
            )
        return spent

    def _split(self, calls: int, d: int, *, shared: bool) -> SubsetCalls | None:
        share = _BASE_SHARE if self.is_drawn else 0.0
        return SubsetCalls.split(calls, d, is_function=self.is_function, share=share, shared=shared)
