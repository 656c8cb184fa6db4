"""What a user gets when an explanation is cut short: the error, and all that was known by then."""

from __future__ import annotations

from limes.exceptions import Interrupted, ModelError
from limes.explanation import Explanation

# Texts or images that were cut short, of which answers are kept
UNFINISHED = 16

_GO_ON = "calls made so far are kept: the same call goes on from them"


def cut_short(cause: BaseException | None, partial: Explanation | None, rows: int) -> BaseException:
    """The error to raise, with the explanation of the rows that are known."""
    done = 0 if partial is None else len(partial)
    known = f"{done} of {rows} rows are known in part or whole (in this error's partial)"
    if isinstance(cause, ModelError):
        error = ModelError(f"{cause}; {known}; {_GO_ON}", batch=cause.batch)
        error.partial = partial
        return error
    return Interrupted(f"stopped: {known}; {_GO_ON}", partial)
