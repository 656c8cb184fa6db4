"""Explainers side by side: the same rows, draws and measures; in the terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from limes._arrays import ROUNDING
from limes._checks import require
from limes._explanation.drawing import Card, Printable, write_text
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


@dataclass(frozen=True, eq=False)
class Comparison(Printable):
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
    _widest: ClassVar[int] = 110

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
            name for name, gap in behind.items() if not gap.mean > 2 * np.nan_to_num(gap.error) + ROUNDING
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
        return require("pandas", "to_frame()").DataFrame(list(self.lines()))

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a self-contained page, and write it to ``path`` if there is one."""
        return write_text(
            "<!doctype html><html lang=en><meta charset=utf-8><title>Explainers compared</title>"
            f"<style>body{{margin:24px}}</style>{self._repr_html_()}</html>\n",
            path,
        )

    def _card(self) -> Card:
        return Card(
            title="Explainers compared",
            columns=("measure", "better", *self.scores),
            rows=[self._row(measure) for measure in self.measures],
            remarks=(_CAPTION, *(f"{name}: {_MEANING[name]}" for name in self.measures if name in _MEANING)),
        )

    def _row(self, measure: str) -> list[str]:
        best, scores = self.best(measure), {name: s[measure] for name, s in self.scores.items()}
        better = next(iter(scores.values())).better
        return [measure, better, *(_cell(score, best=name in best) for name, score in scores.items())]


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
    bins, both = Bins(task), {"output": output, "rng": rng}

    def faithfulness(_: Explain, once: Any) -> dict[str, Score]:
        around: dict[str, Any] = {"draws": draws, **both}
        removal = curves(once, task, **both)
        return {
            "fidelity, removal": fidelity(once, task, **around),
            "fidelity, bins": fidelity(once, task, neighbourhood=bins, **around),
            "infidelity": infidelity(once, task, **around),
            "deletion area": removal.deletion_area,
            "insertion area": removal.insertion_area,
        }

    def over_seeds(explain: Explain, _: Any) -> dict[str, Score]:
        repeated = stability(explain, task, runs=runs, k=k, **both)
        return {
            "VSI": repeated.vsi,
            "CSI": repeated.csi,
            "Jaccard, seeds": repeated.jaccard,
            "spread, seeds": repeated.spread,
        }

    def over_noise(explain: Explain, _: Any) -> dict[str, Score]:
        near = stability(explain, task, runs=runs, k=k, noise=noise, **both)
        largest = sensitivity(explain, task, radius=noise, draws=runs, **both)
        return {"Jaccard, noise": near.jaccard, "max-sensitivity": largest}

    steps = (faithfulness, over_seeds, over_noise)
    scores: dict[str, dict[str, Score]] = {name: {} for name in explainers}
    with progress_bar(len(explainers) * len(steps), "evaluating", unit="steps", shown=progress) as bar:
        for name, explain in explainers.items():
            once = explain(task.X, rng)
            for step in steps:
                scores[name] |= step(explain, once)
                bar.update()
    return Comparison(scores)


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


# Differences are taken row by row
_CAPTION = "Mean over rows ± its standard error. *: the best is ahead by no more than two errors."


def _cell(score: Score, *, best: bool) -> str:
    text = f"{score.mean:.3f} ± {score.error:.3f}" if np.isfinite(score.mean) else "-"
    return f"{text} {'*' if best else ' '}"


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
