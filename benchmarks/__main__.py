"""``python -m benchmarks``: run all, write results/*.json, the pictures, and the tables of README.md."""

from benchmarks.speed import report, run, scaling
from benchmarks.tables import run as tables

tables.write(tables.measure())
report.write(run.measure(), scaling.measure())
