"""limes, one row a call."""

from benchmarks.speed.limes_exact import ANSWERS, PACKAGE, prepare  # noqa: F401

NAME = "limes, one row a call"
ROWS = 1
