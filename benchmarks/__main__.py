"""``python -m benchmarks``: run all, write results/*.json, the pictures, and the tables of README.md."""

from benchmarks.speed import report, run

report.write(run.measure())
