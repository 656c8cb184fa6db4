r"""Agreement of repeated explanations: over seeds, and when the row hardly changes.

With runs r, s of the same explainer at the same row, and averages over all pairs of them:

    VSI       share of the k strongest features that two runs share;
    Jaccard   |A ∩ B| / |A ∪ B| of the same sets;
    CSI       share of features whose 95 % intervals overlap in two runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

from limes._arrays import Floats
from limes._checks import check_count, check_size
from limes.evaluate._task import (
    Attribution,
    EvaluationTask,
    Score,
    attribution_of,
    check_task,
    generator,
)
from limes.exceptions import InputError

# (rows as the model takes them, seed) -> an explanation of all of them
Explain = Callable[[Any, int], Any]
_Z = float(ndtri(0.975))


@dataclass(frozen=True, eq=False)
class Stability:
    """Agreement of repeated explanations of n rows.

    Parameters
    ----------
    vsi, csi
        Stability of the variables that are chosen, and of their coefficients; ``csi`` is NaN if the
        explainer has no standard errors.
    jaccard
        Overlap of the largest features.
    spread
        Distance of two runs' values relative to the size of both, √(‖φ - φ'‖² / (‖φ‖² + ‖φ'‖²)): 0 if equal,
        1 if orthogonal.

    Examples
    --------
    >>> import limes
    >>> background = [[0.0], [1.0], [2.0], [3.0]]
    >>> task = limes.evaluate.Task.of(lambda X: 2 * X[:, 0], background, [[1.0]])
    >>> limes.evaluate.stability(lambda X, seed: 2 * X, task).spread.mean
    0.0
    """

    vsi: Score
    csi: Score
    jaccard: Score
    spread: Score


def stability(
    explain: Explain,
    task: EvaluationTask,
    *,
    runs: int = 5,
    k: int = 5,
    noise: float = 0.0,
    output: Any = None,
    rng: int = 0,
) -> Stability:
    """Explain the same rows repeatedly, and compare all pairs of runs.

    Parameters
    ----------
    explain
        (X, seed) -> an explanation of all rows of X. An explainer without a seed ignores it.
    task
        Model, rows, background.
    runs
        Number of runs; seeds are ``rng``, ``rng`` + 1, ...
    k
        Number of strongest features to compare, by |φ|; VSI and Jaccard are NaN if there are no more than k.
    noise
        Largest uniform noise, in standard deviations of each number, drawn anew for each run; 0 compares the
        same rows, above 0 explanations of neighbours.
    output
        Output of the explanation, if it has several.
    rng
        Seed of the first run, and of the noise.

    Raises
    ------
    InputError
        If there are fewer than two runs, or an explanation does not have the task's shape.

    References
    ----------
    Visani et al. 2020, "Statistical stability indices for LIME" (VSI, CSI).

    Examples
    --------
    >>> background = np.random.default_rng(0).normal(size=(200, 2))
    >>> task = EvaluationTask.of(lambda x: 2 * x[:, 0] - x[:, 1], background, [[1.0, 1.0]])
    >>> stability(lambda X, seed: X * [2.0, -1.0], task, k=1).jaccard.mean
    1.0
    """
    check_count("runs", runs, 2)
    check_count("k", k)
    _check_explain(explain)
    rows = noisy_rows(task, noise, runs, rng)
    results = [
        attribution_of(task, explain(task.table.decode(x), rng + run), output) for run, x in enumerate(rows)
    ]
    return compare_runs(results, k=k)


def sensitivity(
    explain: Explain,
    task: EvaluationTask,
    *,
    radius: float = 0.1,
    draws: int = 10,
    output: Any = None,
    rng: int = 0,
) -> Score:
    r"""Max-sensitivity: the largest change of an explanation when the row moves a little.

        max over draws of ‖φ(ξ + δ) - φ(ξ)‖ / ‖φ(ξ)‖,    |δ_j| ≤ radius · deviation of column j.

    The seed is the same for all, so that a sampler's noise counts as little as possible. Lower is better; NaN
    where the explanation is zero.

    Parameters
    ----------
    explain, task, output, rng
        See :func:`stability`.
    radius
        The largest move, in standard deviations of each column.
    draws
        Number of moves.

    References
    ----------
    Yeh et al. 2019, "On the (in)fidelity and sensitivity of explanations", Definition 3.

    Examples
    --------
    >>> background = np.random.default_rng(0).normal(size=(200, 2))
    >>> task = EvaluationTask.of(lambda x: 2 * x[:, 0] - x[:, 1], background, [[1.0, 1.0]])
    >>> sensitivity(lambda X, seed: X * [2.0, -1.0], task, radius=0.01).mean < 0.02
    True
    """
    check_count("draws", draws)
    check_task(task)
    _check_explain(explain)
    values = attribution_of(task, explain(task.X, rng), output).values
    size = np.linalg.norm(values, axis=1)
    largest = np.zeros(len(values))
    for x in noisy_rows(task, radius, draws, rng):
        moved = attribution_of(task, explain(task.table.decode(x), rng), output).values
        largest = np.maximum(largest, np.linalg.norm(moved - values, axis=1))
    return Score(
        "max-sensitivity", np.divide(largest, size, out=np.full(size.shape, np.nan), where=size > 0), "lower"
    )


def _check_explain(explain: Any) -> None:
    if not callable(explain):
        raise InputError(
            f"explain must be a function (X, seed) -> an explanation of X, got {type(explain).__name__}"
        )


def noisy_rows(task: EvaluationTask, noise: float, runs: int, rng: int) -> list[Floats]:
    """Repeat the task's rows ``runs`` times, each with independent uniform noise on its numbers."""
    check_task(task)
    check_size("noise and radius, shares of a standard deviation,", noise, zero=True)
    stream = generator(rng, 1)
    return [task.rows + noise * task.scales * stream.uniform(-1, 1, task.rows.shape) for _ in range(runs)]


def compare_runs(results: Sequence[Attribution], *, k: int) -> Stability:
    """Compare runs pair by pair."""
    pairs = list(combinations(results, 2))
    # with no more than k features, all are the strongest: the overlap would always be full
    size = k if k < results[0].values.shape[1] else np.nan
    shared = [_shared(a.values, b.values, k) for a, b in pairs]
    return Stability(
        vsi=Score("VSI", np.mean(shared, axis=0) / size, "higher"),
        csi=Score("CSI", np.mean([_overlapping(a, b) for a, b in pairs], axis=0), "higher"),
        jaccard=Score("Jaccard", np.mean([s / (2 * size - s) for s in shared], axis=0), "higher"),
        spread=Score("spread", np.mean([_distance(a.values, b.values) for a, b in pairs], axis=0), "lower"),
    )


def _shared(a: Floats, b: Floats, k: int) -> Floats:
    """Number of the k strongest features that two runs share, (n,)."""
    return np.asarray((_strongest(a, k) & _strongest(b, k)).sum(axis=1), dtype=np.float64)


def _strongest(values: Floats, k: int) -> Any:
    """Masks (n, d) of the k features with the largest |value|; ties keep their order."""
    order = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :k]
    mask = np.zeros(values.shape, dtype=np.bool_)
    np.put_along_axis(mask, order, values=True, axis=1)
    return mask


def _overlapping(a: Attribution, b: Attribution) -> Floats:
    """Share of features whose intervals overlap, (n,)."""
    if a.errors is None or b.errors is None:
        return np.full(len(a.values), np.nan)
    # intervals of exact values have no length: they overlap where they are equal up to rounding
    slack = 1e-9 * np.abs(a.values).max(axis=1, keepdims=True)
    apart = np.abs(a.values - b.values) > _Z * (a.errors + b.errors) + slack
    return np.asarray(1.0 - apart.mean(axis=1))


def _distance(a: Floats, b: Floats) -> Floats:
    size = (a**2).sum(axis=1) + (b**2).sum(axis=1)
    gap = ((a - b) ** 2).sum(axis=1)
    return np.asarray(np.sqrt(np.divide(gap, size, out=np.zeros_like(gap), where=size > 0)))
