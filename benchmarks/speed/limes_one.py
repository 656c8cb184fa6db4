"""limes, one row a call."""

from benchmarks.speed.limes_exact import prepare  # noqa: F401

NAME = "limes, one row a call"
ROWS = 1
