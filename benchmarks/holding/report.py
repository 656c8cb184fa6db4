"""Tables of what was measured, for its page."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.holding.run import METHODS


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    wide, goal = result["wide"], result["goal"]
    slowest, middle = max(wide["seconds"]), float(np.median(wide["seconds"]))
    reached = "reached" if slowest <= goal else "reached in the median" if middle <= goal else "**missed**"
    names = ["table", "rows", "facts", *METHODS, "lower than anchor, equal", "than least squares, equal"]
    names += ["calls of anchor", "holds", "seconds of anchor", "holds"]
    flip = 1 / (1 + np.exp(result["spread"]))
    about = (
        "Rows to which anchor gives a fact, of 50; medians over rows. Errors are the share of rows of "
        "another class; of regressions the mean distance from the prediction, in standard deviations of the "
        f"answers. Columns flip with probability {flip:.2f}. Seconds are of one thread of the processor."
    )
    of_wide = (
        f"{wide['facts']} of {wide['columns']} facts, a forest that is read: median {middle:.2f} s, slowest "
        f"{slowest:.2f} s, {np.mean(wide['proved']):.0%} proved; goal {goal:g} s: {reached}."
    )
    table = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|", *map(_line, result["cases"])]
    return "\n".join([f"Machine: {result['machine']}. {about}\n", *table, f"\n{of_wide}"])


def _line(case: dict[str, Any]) -> str:
    errors = {name: np.array(case[name]["error"]) for name in METHODS}
    beside = []
    for name in ("anchor", "least squares"):
        lower, same = errors["holds"] < errors[name], errors["holds"] == errors[name]
        beside.append(f"{lower.mean():.0%}, {same.mean():.0%}")
    medians = [f"{np.median(errors[name]):.3f}" for name in METHODS]
    spent = [
        f"{np.median(case[name][what]):{form}}"
        for what, form in (("calls", ",.0f"), ("seconds", ".2f"))
        for name in ("anchor", "holds")
    ]
    cells = [case["table"], len(case["facts"]), f"{np.median(case['facts']):.0f}", *medians, *beside, *spent]
    return "| " + " | ".join(map(str, cells)) + " |"
