"""The goals of limes, and how far it is from them."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.speed import lime_default, limes_exact, limes_one, shap_path
from benchmarks.speed.cases import BOOSTED, FULL_DEPTH, SHALLOW


@dataclass(frozen=True)
class Goal:
    """A goal for a competitor's figure in some cases: at most or at least a number."""

    cases: tuple[str, ...]
    what: str
    competitor: str
    figure: str
    at_most: float | None = None
    at_least: float | None = None

    def reached(self, measured: float) -> float:
        """How many times over; below 1 it is missed."""
        return self.at_most / measured if self.at_most else measured / self.at_least


GOALS = (
    Goal(SHALLOW, "prepares, s", limes_exact.NAME, "prepare_s", at_most=1.0),
    Goal(SHALLOW, "s, one row", limes_one.NAME, "seconds_a_row", at_most=2e-3),
    Goal(SHALLOW, "s a row, 1,000 rows", limes_exact.NAME, "seconds_a_row", at_most=0.25e-3),
    Goal(SHALLOW, "times faster than shap", shap_path.NAME, "times_limes", at_least=40.0),
    Goal(SHALLOW, "times faster than lime", lime_default.NAME, "times_limes", at_least=200.0),
    Goal(BOOSTED, "times faster than shap", shap_path.NAME, "times_limes", at_least=20.0),
    Goal(FULL_DEPTH, "prepares, s", limes_exact.NAME, "prepare_s", at_most=10.0),
    Goal(FULL_DEPTH, "s a row, 1,000 rows", limes_exact.NAME, "seconds_a_row", at_most=10e-3),
)


def text(cases: list[dict]) -> str:
    """Markdown, of the cases that were run."""
    lines = [
        _line(goal, case)
        for goal in GOALS
        for case in cases
        if case["case"] in goal.cases and goal.competitor in case["competitors"]
    ]
    return "\n".join(["| case | limes | goal | measured | |", "|---|---|---|---|---|", *lines])


def _line(goal: Goal, case: dict) -> str:
    measured = case["competitors"][goal.competitor][goal.figure]
    goal_text = f"<= {goal.at_most:g}" if goal.at_most else f">= {goal.at_least:g}"
    over = goal.reached(measured)
    verdict = f"reached, {over:.2g} times over" if over >= 1 else f"**missed by a factor of {1 / over:.2g}**"
    return f"| {case['case']} | {goal.what} | {goal_text} | {measured:.3g} | {verdict} |"
