"""Cohorts of rows side by side: mean sizes of features, a bar for each cohort."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limes._explanation.selection import by_size
from limes._explanation.view import is_probability, output_title
from limes._explanation.wording import count, number, shorten
from limes._show.axes import COLOURS, Canvas, legend, name_lines, plain_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from limes._diagnostics.summary import Cohort
    from limes._explanation import Explanation

# Height of the bars of a feature together
_TOGETHER = 0.78


def cohort_bars(
    one: Explanation, cohorts: Sequence[Cohort], of: str, max_features: int, canvas: Canvas
) -> Axes:
    """Draw mean |β| of each cohort; features by the largest of any cohort."""
    sizes = np.stack([cohort.mean_abs for cohort in cohorts])
    order = by_size(sizes.max(axis=0))[:max_features]
    axes = canvas.line_axes(one, max_features, height=0.3 + 0.1 * len(cohorts))
    height, at = _TOGETHER / len(cohorts), np.arange(len(order))
    is_percent = of == "contributions" and is_probability(one)
    for i, cohort in enumerate(cohorts):
        levels = [f"{100.0 * its:.0f} %" if is_percent else number(its, 3) for its in _levels(cohort, of)]
        stated = " from usual ".join(levels)
        axes.barh(
            at + (i - 0.5 * (len(cohorts) - 1)) * height,
            cohort.mean_abs[order],
            height=0.9 * height,
            color=COLOURS[i % len(COLOURS)],
            label=f"{shorten(cohort.name, 34)}: {count(cohort.rows, 'row')}, {stated}",
            zorder=2,
        )
    name_lines(axes, [canvas.feature(one.feature_names[j]) for j in order.tolist()])
    plain_frame(axes, 9)
    if is_percent:
        axes.xaxis.set_major_formatter(lambda value, _: number(100.0 * value, 6))
    points = ", percentage points" if is_percent else ""
    axes.set_xlabel(canvas.with_unit(f"mean |{of[:-1]}| of a cohort{points}"), fontsize=9)
    # below the axis: bars may fill the whole picture
    legend(
        axes, loc="upper left", bbox_to_anchor=(0.0, -0.35 / (0.5 + len(order) * (0.3 + 0.1 * len(cohorts))))
    )
    canvas.write_title(axes, f"{shorten(output_title(one, 0), 36)}, {count(len(one), 'row')} by cohort")
    return axes


def _levels(cohort: Cohort, of: str) -> tuple[float, ...]:
    return (cohort.prediction, cohort.base) if of == "contributions" else (cohort.prediction,)
