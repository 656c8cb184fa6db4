"""A comparison of explainers in the terminal and as a page; deletion and insertion curves as a picture."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.evaluate.faithfulness import Curves
from limes.evaluate.task import Score

if TYPE_CHECKING:
    from rich.table import Table

    from limes.evaluate.comparison import Comparison

_MEANING = {
    "fidelity, removal": "share of f's variance explained where features are removed",
    "fidelity, bins": "the same on rows of LIME's law",
    "infidelity": "error about the effect of removal, 1 = zeros",
    "deletion area": "f as the largest values are removed, in standard deviations",
    "insertion area": "f as the largest values are restored",
    "VSI": "strongest features shared by two seeds",
    "CSI": "features whose intervals overlap in two seeds",
    "Jaccard, seeds": "overlap of strongest features over seeds",
    "Jaccard, noise": "the same under a small change of the row",
    "spread, seeds": "distance of two seeds' values, 0 = equal",
    "max-sensitivity": "largest change under a small change of the row",
}


def _cell(score: Score) -> str:
    if not np.isfinite(score.mean):
        return "-"
    return f"{score.mean:.3f} ± {score.error:.3f}"


def terminal_table(comparison: Comparison) -> Table:
    """Return a table with a row for each measure and a column for each explainer."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("measure")
    table.add_column("better")
    for name in comparison.scores:
        table.add_column(name, justify="right")
    for measure in comparison.measures:
        best = comparison.best(measure)
        scores = {name: s[measure] for name, s in comparison.scores.items()}
        cells = [f"{_cell(s)} {'*' if name in best else ' '}" for name, s in scores.items()]
        table.add_row(measure, next(iter(scores.values())).better, *cells)
    table.caption = _CAPTION.format(mark="*")
    return table


def page(comparison: Comparison) -> str:
    """Return a self-contained page."""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Explainers compared</title>"
        f"<style>body{{margin:24px}}</style>{fragment(comparison)}</html>\n"
    )


def fragment(comparison: Comparison) -> str:
    """Return the table with its style."""
    return f"<style>{_STYLE}</style>{_html_table(comparison)}"


def _html_table(comparison: Comparison) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in comparison.scores)
    body = []
    for measure in comparison.measures:
        best = comparison.best(measure)
        cells = "".join(
            f"<td{' class=best' if name in best else ''}>{_cell(scores[measure])}</td>"
            for name, scores in comparison.scores.items()
        )
        better = next(iter(comparison.scores.values()))[measure].better
        about = html.escape(_MEANING.get(measure, ""))
        body.append(
            f"<tr><th>{html.escape(measure)}<small>{about}; {better} is better</small></th>{cells}</tr>"
        )
    return (
        f"<table class=limes-comparison><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
        f"<caption>{_CAPTION.format(mark='Bold')}</caption></table>"
    )


def plot_curves(curves: Mapping[str, Curves], *, ax: Any = None) -> Any:
    """Draw the mean curves of explainers, deletion as lines and insertion dashed; return the axes.

    Parameters
    ----------
    curves
        Curves by explainer.
    ax
        Matplotlib axes; new ones by default.

    Examples
    --------
    >>> flat = Curves(np.zeros((1, 3)), np.ones((1, 3)))
    >>> plot_curves({"limes": flat}).get_xlabel()
    'features removed, or put back'
    """
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6.4, 3.6), layout="constrained").subplots()
    for i, (name, pair) in enumerate(curves.items()):
        steps = np.arange(pair.deletion.shape[1])
        ax.plot(steps, pair.deletion.mean(axis=0), color=f"C{i}", label=f"{name}, deletion")
        ax.plot(steps, pair.insertion.mean(axis=0), "--", color=f"C{i}", label=f"{name}, insertion")
    ax.set_xlabel("features removed, or put back")
    ax.set_ylabel("mean answer, standard deviations")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
    return ax


# Differences are taken row by row
_CAPTION = "Mean over rows ± its standard error. {mark}: the best is ahead by no more than two errors."
_STYLE = """.limes-comparison{border-collapse:collapse;font:14px system-ui,sans-serif}
.limes-comparison th,.limes-comparison td{padding:6px 14px;border-bottom:1px solid #8884;text-align:right}
.limes-comparison tbody th{text-align:left;font-weight:600}
.limes-comparison small{display:block;font-weight:400;opacity:.7}
.limes-comparison td{white-space:nowrap}
.limes-comparison .best{font-weight:700}
.limes-comparison caption{caption-side:bottom;text-align:left;padding:8px 0;opacity:.7}"""
