"""Medians over cases against limes's goals, and the cases in which limes is worse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# Times lower than lime's mean squared error, in the median over cases, by calls
GOALS = {"256": None, "1024": 5.0, "4096": 8.0}
# Standard errors by which a ratio must differ from 1 to count as different
_CERTAIN = 2.0

HEAD = "| calls | median | lowest | highest | goal | | median against `lime` without its penalty | lowest |"


def text(cases: list[dict]) -> str:
    """Markdown."""
    lines = [HEAD, "|---" * 8 + "|", *(_line(cases, n, goal) for n, goal in GOALS.items())]
    return "\n".join(lines) + "\n\n" + " ".join(_worse(cases))


def ratios(cases: list[dict], n: str, who: str) -> np.ndarray:
    """``who``'s mean squared error over limes's, one a case and bandwidth."""
    return np.array([case["calls"][n]["ratio"][who]["value"] for case in cases])


def _line(cases: list[dict], n: str, goal: float | None) -> str:
    result, plain = (ratios(cases, n, who) for who in ("lime", "lime, no penalty"))
    median = np.median(result)
    verdict = "" if goal is None else "reached" if median >= goal else "**missed**"
    goal_text = "" if goal is None else f">= {goal:g}"
    return (
        f"| {int(n):,} | {median:.3g} | {result.min():.3g} | {result.max():.3g} | {goal_text} | {verdict} "
        f"| {np.median(plain):.3g} | {plain.min():.3g} |"
    )


def _worse(cases: list[dict]) -> Iterator[str]:
    """In which cases limes is worse than ``lime``, or than least squares of its samples."""
    for who in ("lime", "lime, no penalty"):
        names = [
            f"{case['case']}, {case['bandwidth']}√d, {n} calls "
            f"({_ratio_text(case['calls'][n]['ratio'][who])})"
            for case in cases
            for n in GOALS
            if case["calls"][n]["ratio"][who]["value"] < 1
        ]
        yield f"Worse than {who} in: {'; '.join(names)}." if names else f"Never worse than {who}."


def _ratio_text(ratio: dict[str, float]) -> str:
    certain = 1 - ratio["value"] > _CERTAIN * ratio["error"]
    return f"{ratio['value']:.2f} ± {ratio['error']:.2f}{'' if certain else ', not certain'}"
