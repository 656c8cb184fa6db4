"""The waterfall of one row: from the base, or the intercept, to the prediction, a step a feature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.view import CHANGE_OF_USUAL, OutputView, contributions, slope_facts
from limes._explanation.wording import count, signed_column
from limes._show.axes import Canvas, error_bars, ink, sign_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from limes._explanation import Explanation

_MARKS: dict[str, Any] = {"color": "#777777", "linewidth": 1.0, "zorder": 3}
_REST = "#a8842c"  # the step that no coefficient explains


@dataclass(frozen=True)
class WaterfallStep:
    """A line of a waterfall: from one value to another, or a level where both are the same."""

    name: str
    start: float
    end: float
    colour: str = ""  # "": a level, a value of the model or of the surrogate
    text: str = ""  # "": its number, with the decimals of all others
    marks: tuple[float, ...] = ()  # other sizes of the step
    reach: float = 0.0  # of its error bar

    @property
    def size(self) -> float:
        return self.end - self.start


def account_steps(view: OutputView, max_features: int, canvas: Canvas, *, ends: bool) -> list[WaterfallStep]:
    shown = view.lines[:max_features]
    texts, (base, prediction, _) = view.account_texts(shown)
    at = view.base or 0.0
    where = view.where.removeprefix("is ").removeprefix("with ")
    steps = [WaterfallStep(where, at, at, text=base)]
    names = [canvas.condition(replace(line, condition=line.holds)) for line in shown]
    shares = [line.share for line in shown]
    for i, size in enumerate(view.shares(shown)):
        share = shares[i] if i < len(shares) else None
        marks, reach = ((), 0.0) if share is None else (share.ends if ends else (), share.reach)
        name = names[i] if i < len(names) else view.others(shown)
        steps.append(WaterfallStep(name, at, at + size, sign_colour(size), texts[i][0], marks, reach))
        at += size
    end = "change of the prediction" if view.where == CHANGE_OF_USUAL else "prediction"
    return [*steps, WaterfallStep(end, view.prediction, view.prediction, text=prediction)]


def surrogate_steps(
    one: Explanation, view: OutputView, max_features: int, canvas: Canvas
) -> list[WaterfallStep]:
    (sizes,), (at,) = (numbers.tolist() for numbers in contributions(one))
    lacking = {line.feature for line in view.lines if line.data == "missing"}
    steps = [
        WaterfallStep("surrogate at the means" if slope_facts(one).keys() - lacking else "intercept", at, at)
    ]
    parts = [(sizes[line.position], line) for line in view.lines if not np.isnan(line.value)]
    parts.sort(key=lambda pair: -abs(pair[0]))
    for size, line in parts[:max_features]:
        steps.append(WaterfallStep(canvas.condition(line), at, at + size, sign_colour(size)))
        at += size
    if len(parts) > max_features:
        rest = count(len(parts) - max_features, "smaller one")
        steps.append(WaterfallStep(rest, at, view.surrogate, sign_colour(view.surrogate - at)))
    return [
        *steps,
        WaterfallStep("surrogate", view.surrogate, view.surrogate),
        WaterfallStep("not captured", view.surrogate, view.prediction, _REST),
        WaterfallStep("prediction", view.prediction, view.prediction),
    ]


def draw_steps(axes: Axes, steps: list[WaterfallStep]) -> None:
    ends = [step.start + size for step in steps for size in (0.0, step.size, *step.marks)]
    ends += [step.end + side * step.reach for step in steps for side in (-1, 1)]
    low, high = min(ends), max(ends)
    room = (high - low) or 1.0
    # sums and what is added to them have the same decimals, by the largest that is added
    added = max((abs(step.size) for step in steps if step.colour), default=0.0)
    shown = [step.size if step.colour else step.end for step in steps]
    texts = signed_column(shown, significant=3, size=added or None)
    for i, (step, text) in enumerate(zip(steps, texts, strict=True)):
        if step.colour:
            axes.barh(i, step.size, left=step.start, height=0.66, color=step.colour, zorder=2)
            marks = [step.start + mark for mark in step.marks]
            # below the bar: across it is where error bars are
            axes.hlines([i + 0.42] * bool(marks), min(marks, default=0.0), max(marks, default=0.0), **_MARKS)
            if step.reach:
                error_bars(axes, [step.end], [i], xerr=[step.reach], elinewidth=1.1, capsize=2.5)
        else:
            axes.plot([step.end] * 2, [i - 0.36, i + 0.36], color=ink(), linewidth=3.0, zorder=3)
        if i + 1 < len(steps):
            axes.plot([step.end] * 2, [i, i + 1], color=ink(), linewidth=0.6, alpha=0.5, zorder=1)
        written = step.text or (text if step.colour else text.removeprefix("+"))
        weight = "normal" if step.colour else "bold"
        x = step.start + max(0.0, step.size + step.reach, *step.marks) + 0.02 * room
        axes.text(x, i, written, va="center", fontsize=9, fontweight=weight, zorder=4)
    axes.set_xlim(low - 0.04 * room, high + 0.2 * room)
