"""Explainers side by side: the same rows, draws and measures; in the terminal and as a page."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._threads import progress_bar
from limes.evaluate._measures import (
    Bins,
    Curves,
    Explain,
    curves,
    fidelity,
    infidelity,
    sensitivity,
    stability,
)
from limes.evaluate._task import EvaluationTask, Score, check_task
from limes.exceptions import InputError

if TYPE_CHECKING:
    from rich.table import Table


# Differences below this count as 0
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of several explainers.

    Parameters
    ----------
    scores
        ``scores[explainer][measure]``.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> score = limes.evaluate.Score("fidelity", np.array([0.5]), "higher")
    >>> limes.evaluate.Comparison({"mine": {"fidelity": score}}).best("fidelity")
    frozenset({'mine'})
    """

    scores: Mapping[str, Mapping[str, Score]]

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures, in their order."""
        return tuple(next(iter(self.scores.values())))

    def best(self, measure: str) -> frozenset[str]:
        """Return the winner by a ``measure``, and those it beats by no more than two standard errors.

        The difference is taken row by row, as all explainers have the same rows.
        """
        finite = {name: s[measure] for name, s in self.scores.items() if np.isfinite(s[measure].mean)}
        if not finite:
            return frozenset()
        sign = 1.0 if next(iter(finite.values())).better == "higher" else -1.0
        winner = max(finite.values(), key=lambda score: sign * score.mean)
        behind = {
            name: Score(name, sign * (winner.rows - score.rows), "lower") for name, score in finite.items()
        }
        return frozenset(
            name for name, gap in behind.items() if not gap.mean > 2 * np.nan_to_num(gap.error) + _ROUNDING
        )

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield a dict for each measure and explainer: measure, better, explainer, mean, error, best."""
        for measure in self.measures:
            best = self.best(measure)
            for name, scores in self.scores.items():
                score = scores[measure]
                yield {
                    "measure": measure,
                    "better": score.better,
                    "explainer": name,
                    "mean": score.mean,
                    "error": score.error,
                    "best": name in best,
                }

    def to_frame(self) -> Any:
        """Return a pandas data frame, a line a measure and explainer."""
        from limes._checks import require

        return require("pandas", "to_frame()").DataFrame(list(self.lines()))

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a self-contained page, and write it to ``path`` if there is one."""
        text = (
            "<!doctype html><html lang=en><meta charset=utf-8><title>Explainers compared</title>"
            f"<style>body{{margin:24px}}</style>{self._repr_html_()}</html>\n"
        )
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _repr_html_(self) -> str:
        return f"<style>{_STYLE}</style>{_html_table(self)}"

    def __rich__(self) -> Table:
        return _terminal_table(self)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=StringIO(), force_terminal=False, color_system=None, width=110)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())


def compare(
    explainers: Mapping[str, Explain],
    task: EvaluationTask,
    *,
    runs: int = 5,
    k: int = 5,
    noise: float = 0.1,
    draws: int = 1000,
    output: Any = None,
    rng: int = 0,
    progress: bool = True,
) -> Comparison:
    """Compare explainers by all measures that need only their values.

    Parameters
    ----------
    explainers
        Name -> (X, seed) -> an explanation of all rows of X, as :func:`stability` accepts it.
    task
        Model, rows, background.
    runs, k
        See :func:`stability`.
    noise
        See :func:`stability`; also the radius of :func:`sensitivity`, in standard deviations.
    draws
        Rows drawn around each row.
    output
        Output of the explanations, if they have several.
    rng
        Seed.
    progress
        Show a progress bar.

    Raises
    ------
    InputError
        If there is no explainer, or an explanation does not have the task's shape.

    Examples
    --------
    >>> background = np.random.default_rng(0).normal(size=(200, 2))
    >>> task = EvaluationTask.of(lambda x: 2 * x[:, 0] - x[:, 1], background, [[1.0, 1.0]])
    >>> explainers = {"slopes": lambda X, seed: X * [2.0, -1.0], "zeros": lambda X, seed: 0 * X}
    >>> comparison = compare(explainers, task, k=1, draws=100, progress=False)
    >>> comparison.scores["zeros"]["infidelity"].mean
    1.0
    """
    if not hasattr(explainers, "items") or not explainers:
        raise InputError("there are no explainers to compare: pass a name and a function (X, seed) of each")
    check_task(task)
    settings = _Settings(task, Bins(task), runs, k, noise, draws, output, rng)
    scores: dict[str, dict[str, Score]] = {name: {} for name in explainers}
    with progress_bar(len(explainers) * len(_STEPS), "evaluating", unit="steps", shown=progress) as bar:
        for name, explain in explainers.items():
            once = explain(task.X, rng)
            for step in _STEPS:
                scores[name] |= step(settings, explain, once)
                bar.update()
    return Comparison(scores)


@dataclass(frozen=True, eq=False)
class _Settings:
    """The task and the options, the same for all explainers."""

    task: EvaluationTask
    bins: Bins
    runs: int
    k: int
    noise: float
    draws: int
    output: Any
    rng: int


def _faithfulness(s: _Settings, _: Explain, once: Any) -> dict[str, Score]:
    options: dict[str, Any] = {"draws": s.draws, "output": s.output, "rng": s.rng}
    both = curves(once, s.task, output=s.output, rng=s.rng)
    return {
        "fidelity, removal": fidelity(once, s.task, **options),
        "fidelity, bins": fidelity(once, s.task, neighbourhood=s.bins, **options),
        "infidelity": infidelity(once, s.task, **options),
        "deletion area": both.deletion_area,
        "insertion area": both.insertion_area,
    }


def _over_seeds(s: _Settings, explain: Explain, _: Any) -> dict[str, Score]:
    runs = stability(explain, s.task, runs=s.runs, k=s.k, output=s.output, rng=s.rng)
    return {"VSI": runs.vsi, "CSI": runs.csi, "Jaccard, seeds": runs.jaccard, "spread, seeds": runs.spread}


def _over_noise(s: _Settings, explain: Explain, _: Any) -> dict[str, Score]:
    options: dict[str, Any] = {"output": s.output, "rng": s.rng}
    near = stability(explain, s.task, runs=s.runs, k=s.k, noise=s.noise, **options)
    largest = sensitivity(explain, s.task, radius=s.noise, draws=s.runs, **options)
    return {"Jaccard, noise": near.jaccard, "max-sensitivity": largest}


_STEPS: tuple[Callable[[_Settings, Explain, Any], dict[str, Score]], ...] = (
    _faithfulness,
    _over_seeds,
    _over_noise,
)


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


def _terminal_table(comparison: Comparison) -> Table:
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
