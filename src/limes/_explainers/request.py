"""What a call asks for, made at the door: it goes with the work, so that nothing else is computed.

A reading that was not asked for is computed when it is read, from what is kept of the call, and changes
nothing that another call says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

# In the call; in the call where they take calls of the model, else when they are first shown; only when they
# are read
When = Literal["now", "shown", "read"]


@dataclass(frozen=True)
class Request:
    """The readings that are asked for of some rows or of one input."""

    contributions: When
    coefficients: bool = True

    @classmethod
    def of_option(cls, contributions: str | bool) -> Self:
        """The request of a call, by the explainer's option "auto", True or False."""
        if contributions == "auto":
            return cls("shown")
        return cls("now" if contributions else "read")

    @property
    def may_ask(self) -> bool:
        """Whether contributions may take calls of the model."""
        return self.contributions != "read"


# Contributions, and no coefficients
ACCOUNT = Request("now", coefficients=False)
