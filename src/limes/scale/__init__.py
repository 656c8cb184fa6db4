"""Tables of any length: one function explains a piece, engines distribute it, and finished parts are kept.

`explain_frame` is a function from a frame to a frame, each row by itself; so a table may be cut anywhere.
"""

from limes.scale._changes import RowChange, row_changes
from limes.scale._frames import explain_frame
from limes.scale._summary import RunComparison, compare_runs, summarize

__all__ = ["RowChange", "RunComparison", "compare_runs", "explain_frame", "row_changes", "summarize"]
