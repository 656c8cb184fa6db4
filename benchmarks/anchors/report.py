"""The page of ``benchmarks.anchors``."""

from __future__ import annotations

from typing import Any

import numpy as np


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    cases = result["cases"]
    about = (
        f"Machine: {result['machine']}. {len(cases[0]['anchor']['facts'])} rows a table; means over rows. "
        f"Errors are shares of another class: of {result['drawn']:,} rows of anchors' law, and of the "
        "table's own rows with the facts; coverage is the share of these. Seconds are of one thread of the "
        "processor; limes reads the forest, or asks it as a function."
    )
    names = [
        "table",
        "columns",
        "facts of anchor",
        "error of anchor",
        "limes, as many facts",
        "lower, equal",
        "table's own rows: anchor",
        "limes",
        "coverage of anchor",
        "limes",
        "seconds of anchor",
        "limes",
        "limes asks",
        "calls of anchor",
        "limes asks",
    ]
    same = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|", *map(_same, cases)]
    names = [
        "table",
        "anchor: facts",
        "rows whose error is at most the promise",
        "limes: facts",
        "rows certified",
        "of these, error at most the promise",
        "seconds",
    ]
    promise = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    promise += [_promise(case, result["promise"]) for case in cases]
    header = f"Both promise an error of {result['promise']:.0%} at most:"
    return "\n".join([about, "", *same, "", header, "", *promise, "", _verdict(cases)])


def _mean(values: list[float | None]) -> float:
    return float(np.mean([value for value in values if value is not None]))


def _same(case: dict[str, Any]) -> str:
    anchor, same, called = case["anchor"], case["same size"], case["asked"]
    difference = np.array(same["error"]) - np.array(anchor["error"])
    cells = [
        case["table"],
        case["columns"],
        f"{_mean(anchor['facts']):.1f}",
        f"{_mean(anchor['error']):.3f}",
        f"{_mean(same['error']):.3f}",
        f"{np.mean(difference < 0):.0%}, {np.mean(difference == 0):.0%}",
        f"{_mean(anchor['disagree']):.3f}",
        f"{_mean(same['disagree']):.3f}",
        f"{_mean(anchor['coverage']):.1%}",
        f"{_mean(same['coverage']):.1%}",
        f"{_mean(anchor['seconds']):.2f}",
        f"{_mean(same['seconds']):.2f}",
        f"{_mean(called['seconds']):.2f}",
        f"{_mean(anchor['calls']):,.0f}",
        f"{_mean(called['calls']):,.0f}",
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


def _promise(case: dict[str, Any], most: float) -> str:
    anchor, limes = case["anchor"], case["promise"]
    kept, errors = np.array(limes["kept"]), np.array(limes["error"])
    cells = [
        case["table"],
        f"{_mean(anchor['facts']):.1f}",
        f"{np.sum(np.array(anchor['error']) <= most)} of {len(kept)}",
        f"{_mean(limes['facts']):.1f}",
        f"{kept.sum()} of {len(kept)}",
        f"{np.sum(errors[kept] <= most)} of {kept.sum()}",
        f"{_mean(limes['seconds']):.2f}",
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


def _verdict(cases: list[dict[str, Any]]) -> str:
    lower = all(_mean(case["same size"]["error"]) <= _mean(case["anchor"]["error"]) for case in cases)
    faster = all(_mean(case["asked"]["seconds"]) < _mean(case["anchor"]["seconds"]) for case in cases)
    return (
        f"Goals: with as many facts an error that is no larger on any table: {_word(lower)}; less time on "
        f"each, also where the forest is asked: {_word(faster)}."
    )


def _word(reached: bool) -> str:
    return "reached" if reached else "**missed**"
