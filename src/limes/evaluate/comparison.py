"""Explainers side by side: the same rows, the same draws, the same measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.evaluate.faithfulness import curves, fidelity, infidelity
from limes.evaluate.neighbourhoods import Bins
from limes.evaluate.report import fragment, page, terminal_table
from limes.evaluate.score import Score
from limes.evaluate.stability import Explain, sensitivity, stability
from limes.evaluate.task import Task
from limes.exceptions import InputError

if TYPE_CHECKING:
    from rich.table import Table as RichTable


# Differences below this are none
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of several explainers: ``scores[explainer][measure]``."""

    scores: Mapping[str, Mapping[str, Score]]

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures, in their order."""
        return tuple(next(iter(self.scores.values())))

    def best(self, measure: str) -> frozenset[str]:
        """Explainers that the winner does not beat by more than two standard errors of the difference.

        The difference is taken row by row, as all explainers meet the same rows.
        """
        known = {name: s[measure] for name, s in self.scores.items() if np.isfinite(s[measure].mean)}
        if not known:
            return frozenset()
        sign = 1.0 if next(iter(known.values())).better == "higher" else -1.0
        winner = max(known.values(), key=lambda score: sign * score.mean)
        behind = {
            name: Score(name, sign * (winner.rows - score.rows), "lower") for name, score in known.items()
        }
        return frozenset(
            name for name, gap in behind.items() if not gap.mean > 2 * np.nan_to_num(gap.error) + _ROUNDING
        )

    def lines(self) -> Iterator[dict[str, Any]]:
        """One a measure and explainer: measure, better, explainer, mean, error, best."""
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
        from limes._optional import require

        return require("pandas", "to_frame()").DataFrame(list(self.lines()))

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a self-contained page, and write it to ``path`` if given."""
        text = page(self)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _repr_html_(self) -> str:
        return fragment(self)

    def __rich__(self) -> RichTable:
        return terminal_table(self)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=StringIO(), force_terminal=False, color_system=None, width=110)
        with console.capture() as captured:
            console.print(terminal_table(self))
        return "\n".join(line.rstrip() for line in captured.get().splitlines())


def compare(
    explainers: Mapping[str, Explain],
    task: Task,
    *,
    runs: int = 5,
    k: int = 5,
    noise: float = 0.1,
    draws: int = 1000,
    output: Any = None,
    rng: int = 0,
    progress: bool = True,
) -> Comparison:
    """Judge explainers by all measures that need no more than their values.

    Parameters
    ----------
    explainers
        Name -> (X, seed) -> an explanation of all rows of X, as :func:`stability` takes it.
    task
        Model, rows, background.
    runs, k
        Of :func:`stability`.
    noise
        Its noise, and the radius of :func:`sensitivity`, in standard deviations.
    draws
        Rows drawn around each row.
    output
        Of the explanations, if they have several.
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
    >>> task = Task.of(lambda x: 2 * x[:, 0] - x[:, 1], background, [[1.0, 1.0]])
    >>> explainers = {"slopes": lambda X, seed: X * [2.0, -1.0], "zeros": lambda X, seed: 0 * X}
    >>> found = compare(explainers, task, k=1, draws=100, progress=False)
    >>> found.scores["zeros"]["infidelity"].mean
    1.0
    """
    if not explainers:
        raise InputError("there are no explainers to compare: give a name and a function (X, seed) of each")
    from tqdm.auto import tqdm

    asked = _Asked(task, Bins(task), runs, k, noise, draws, output, rng)
    scores: dict[str, dict[str, Score]] = {name: {} for name in explainers}
    with tqdm(total=len(explainers) * len(_STEPS), desc="evaluating", disable=not progress) as bar:
        for name, explain in explainers.items():
            once = explain(task.X, rng)
            for step in _STEPS:
                scores[name] |= step(asked, explain, once)
                bar.update()
    return Comparison(scores)


@dataclass(frozen=True, eq=False)
class _Asked:
    """What all explainers are asked for."""

    task: Task
    bins: Bins
    runs: int
    k: int
    noise: float
    draws: int
    output: Any
    rng: int


def _told(asked: _Asked, _: Explain, once: Any) -> dict[str, Score]:
    shared: dict[str, Any] = {"draws": asked.draws, "output": asked.output, "rng": asked.rng}
    return {
        "fidelity, removal": fidelity(once, asked.task, **shared),
        "fidelity, bins": fidelity(once, asked.task, neighbourhood=asked.bins, **shared),
        "infidelity": infidelity(once, asked.task, **shared),
    }


def _ordered(asked: _Asked, _: Explain, once: Any) -> dict[str, Score]:
    found = curves(once, asked.task, output=asked.output, rng=asked.rng)
    return {"deletion area": found.deletion_area, "insertion area": found.insertion_area}


def _repeated(asked: _Asked, explain: Explain, _: Any) -> dict[str, Score]:
    found = stability(explain, asked.task, runs=asked.runs, k=asked.k, output=asked.output, rng=asked.rng)
    return {
        "VSI": found.vsi,
        "CSI": found.csi,
        "Jaccard, seeds": found.jaccard,
        "spread, seeds": found.spread,
    }


def _moved(asked: _Asked, explain: Explain, _: Any) -> dict[str, Score]:
    shared: dict[str, Any] = {"output": asked.output, "rng": asked.rng}
    near = stability(explain, asked.task, runs=asked.runs, k=asked.k, noise=asked.noise, **shared)
    largest = sensitivity(explain, asked.task, radius=asked.noise, draws=asked.runs, **shared)
    return {"Jaccard, noise": near.jaccard, "max-sensitivity": largest}


_Step = Callable[[_Asked, Explain, Any], dict[str, Score]]
_STEPS: tuple[_Step, ...] = (_told, _ordered, _repeated, _moved)
