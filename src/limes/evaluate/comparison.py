"""Explainers side by side: the same rows, the same draws, the same measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.evaluate.faithfulness import Bins, curves, fidelity, infidelity
from limes.evaluate.repetition import Explain, sensitivity, stability
from limes.evaluate.report import fragment, page, terminal_table
from limes.evaluate.task import EvaluationTask, Score
from limes.exceptions import InputError

if TYPE_CHECKING:
    from rich.table import Table as RichTable


# Differences below this count as 0
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
        """Return explainers that the winner does not beat by more than two standard errors of the difference.

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
        from limes._optional import require

        return require("pandas", "to_frame()").DataFrame(list(self.lines()))

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a self-contained page, and write it to ``path`` if there is one."""
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
        Name -> (X, seed) -> an explanation of all rows of X, as :func:`stability` takes it.
    task
        Model, rows, background.
    runs, k
        As for :func:`stability`.
    noise
        As for :func:`stability`, and the radius of :func:`sensitivity`, in standard deviations.
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
    if not explainers:
        raise InputError("there are no explainers to compare: pass a name and a function (X, seed) of each")
    from tqdm.auto import tqdm

    settings = _Settings(task, Bins(task), runs, k, noise, draws, output, rng)
    scores: dict[str, dict[str, Score]] = {name: {} for name in explainers}
    with tqdm(total=len(explainers) * len(_STEPS), desc="evaluating", disable=not progress) as bar:
        for name, explain in explainers.items():
            once = explain(task.X, rng)
            for step in _STEPS:
                scores[name] |= step(settings, explain, once)
                bar.update()
    return Comparison(scores)


@dataclass(frozen=True, eq=False)
class _Settings:
    """EvaluationTask and options, the same for all explainers."""

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
