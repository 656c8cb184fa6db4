r"""Agreement of an explanation with the model, and of repeated explanations with each other.

An explanation Σ φ_j z_j is compared with f on rows around the explained one, where some features are kept
(z_j = 1) and the others take other values:

    removal    each feature is kept with a probability, the others take the values of one background row: the
               rows behind SHAP's values;
    bins       rows of LIME's weighted law, where a feature is kept as long as it stays in the row's bin.

With runs r, s of the same explainer at the same row, and averages over all pairs of them:

    VSI       share of the k strongest features that two runs share;
    Jaccard   |A ∩ B| / |A ∪ B| of the same sets;
    CSI       share of features whose 95 % intervals overlap in two runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

from limes._arrays import Floats, is_constant
from limes._checks import check_count, check_probability, check_size
from limes._explainers.tables.laws import fit_laws
from limes._explanation import Explanation
from limes.designs._product import ProductFamily
from limes.designs._weights import BinWeights, check_bandwidth
from limes.evaluate._task import (
    Attribution,
    EvaluationTask,
    Score,
    attribution_of,
    check_task,
    generator,
)
from limes.exceptions import InputError


class Neighbourhood(Protocol):
    """Draws of rows x (m, d) and kept features z (m, d) around a row of a task.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> task = limes.evaluate.Task.of(lambda X: X[:, 0], [[0.0], [1.0]], [[1.0]])
    >>> x, z = limes.evaluate.Removal().draw(task, 0, 5, np.random.default_rng(0))
    >>> x.shape, z.shape
    ((5, 1), (5, 1))
    """

    def draw(
        self, task: EvaluationTask, i: int, count: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draw around row i.

        Parameters
        ----------
        task
            The task.
        i
            Position of its row.
        count
            Number of draws, m.
        rng
            Random generator of the draws.
        """
        ...


@dataclass(frozen=True)
class Removal:
    """Each feature is kept or not, independently; the others come from one background row.

    Parameters
    ----------
    kept
        Probability that a feature is kept.

    Examples
    --------
    >>> import limes
    >>> limes.evaluate.Removal(kept=0.8).kept
    0.8
    """

    kept: float = 0.5

    def __post_init__(self) -> None:
        check_probability("kept", self.kept)

    def draw(
        self, task: EvaluationTask, i: int, count: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draw around row i."""
        z = rng.random((count, task.rows.shape[1])) < self.kept
        others = task.table.matrix[rng.integers(len(task.table.matrix), size=count)]
        return np.where(z, task.rows[i], others), z.astype(np.float64)


class Bins:
    """LIME's own neighbourhood: quartile bins, truncated normals, weights exp(-#changed/(2ν²)).

    Parameters
    ----------
    task
        The task from whose background the bins are learnt.
    bandwidth
        ν; 0.75 √d by default.

    Examples
    --------
    >>> import limes
    >>> background = [[0.0], [1.0], [2.0], [3.0]]
    >>> task = limes.evaluate.Task.of(lambda X: 2 * X[:, 0], background, [[1.0]])
    >>> limes.evaluate.fidelity([[2.0]], task, neighbourhood=limes.evaluate.Bins(task)).name
    'fidelity'
    """

    def __init__(self, task: EvaluationTask, bandwidth: float | None = None) -> None:
        table = check_task(task).table
        laws = fit_laws(table, "quartile", None, "truncnorm")
        width = 0.75 * np.sqrt(len(laws)) if bandwidth is None else check_bandwidth(bandwidth)
        self._family = ProductFamily(laws, BinWeights(width))

    def draw(
        self, task: EvaluationTask, i: int, count: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draw around row i."""
        return self._family.at(task.rows[i]).draw(rng.random((count, task.rows.shape[1])))


def fidelity(
    explanation: Any,
    task: EvaluationTask,
    *,
    neighbourhood: Neighbourhood | None = None,
    draws: int = 1000,
    output: Any = None,
    rng: int = 0,
) -> Score:
    r"""Share of the model's variance around a row that the explanation explains.

        R² = 1 - E(f - g)² / Var f,    g(z) = c + Σ_j φ_j z_j,

    with the best constant c, as explainers differ in the meaning of their base values.

    Parameters
    ----------
    explanation
        An explanation of all rows of the task, in any form that :func:`limes.evaluate.attribution` accepts.
    task
        Model, rows, background.
    neighbourhood
        :class:`Removal` by default, or :class:`Bins`, LIME's.
    draws
        Rows drawn around each row; the same for every explanation.
    output
        Output of the explanation, if it has several.
    rng
        Seed.

    Returns
    -------
    Score
        Higher is better; 1 is perfect, 0 is as good as no feature, negative is worse. NaN where f is
        constant.

    Raises
    ------
    InputError
        If the explanation does not have the task's rows and columns.

    Examples
    --------
    >>> background = np.random.default_rng(0).normal(size=(200, 2))
    >>> task = EvaluationTask.of(lambda x: 2 * x[:, 0] - x[:, 1], background, [[1.0, 1.0]])
    >>> fidelity([[2.0, -1.0]], task).mean > fidelity([[0.0, 1.0]], task).mean
    True
    """
    values = attribution_of(task, explanation, output).values
    scores = np.full(len(values), np.nan)
    for i, phi in enumerate(values):
        z, f = _around(task, i, neighbourhood, draws, rng)
        if not is_constant(np.var(f), np.abs(f).max()):
            scores[i] = 1.0 - np.var(f - z @ phi) / np.var(f)
    return Score("fidelity", scores, "higher")


def infidelity(
    explanation: Any,
    task: EvaluationTask,
    *,
    neighbourhood: Neighbourhood | None = None,
    draws: int = 1000,
    output: Any = None,
    rng: int = 0,
) -> Score:
    r"""Error of the explanation about the effect of removing features, relative to that effect.

        E(Σ_j φ_j (1 - z_j) - (f(ξ) - f(x)))² / E(f(ξ) - f(x))².

    0 is perfect; 1 is as good as an explanation of zeros.

    Parameters
    ----------
    explanation, task, neighbourhood, draws, output, rng
        See :func:`fidelity`.

    References
    ----------
    Yeh et al. 2019, "On the (in)fidelity and sensitivity of explanations", Definition 2.1, without the
    denominator, which makes models comparable.

    Examples
    --------
    >>> background = np.random.default_rng(0).normal(size=(200, 2))
    >>> task = EvaluationTask.of(lambda x: 2 * x[:, 0] - x[:, 1], background, [[1.0, 1.0]])
    >>> infidelity([[0.0, 0.0]], task).mean
    1.0
    """
    values = attribution_of(task, explanation, output).values
    scores = np.full(len(values), np.nan)
    for i, phi in enumerate(values):
        z, f = _around(task, i, neighbourhood, draws, rng)
        change = task.predictions[i] - f
        if not is_constant(np.mean(change**2), task.predictions[i]):
            scores[i] = np.mean(((1 - z) @ phi - change) ** 2) / np.mean(change**2)
    return Score("infidelity", scores, "lower")


@dataclass(frozen=True, eq=False)
class Curves:
    """Mean predictions as features are removed or restored, the largest value first; (n, d + 1) each.

    Parameters
    ----------
    deletion
        f with the m largest removed, less the mean of f over the background, in its standard deviations.
    insertion
        f in the same units, with all but the m largest removed.

    Examples
    --------
    >>> import limes
    >>> background = [[0.0], [1.0], [2.0], [3.0]]
    >>> task = limes.evaluate.Task.of(lambda X: 2 * X[:, 0], background, [[1.0]])
    >>> limes.evaluate.curves([[2.0]], task).insertion.shape
    (1, 2)
    """

    deletion: Floats
    insertion: Floats

    @property
    def deletion_area(self) -> Score:
        """Mean height of the curve; the earlier f falls the better."""
        return Score("deletion area", _area(self.deletion), "lower")

    @property
    def insertion_area(self) -> Score:
        """Mean height of the curve; the earlier f rises the better."""
        return Score("insertion area", _area(self.insertion), "higher")


def curves(
    explanation: Any, task: EvaluationTask, *, draws: int = 50, output: Any = None, rng: int = 0
) -> Curves:
    """Remove features one by one, from the largest value (with its sign) to the smallest; and restore them.

    A removed feature takes the value of a background row, the same rows for every explanation.

    Parameters
    ----------
    explanation, task, output, rng
        See :func:`fidelity`.
    draws
        Background rows over which the mean is taken.

    References
    ----------
    Petsiuk et al. 2018, "RISE" (for images).

    Examples
    --------
    >>> background = np.random.default_rng(0).normal(size=(200, 2))
    >>> task = EvaluationTask.of(lambda x: 2 * x[:, 0] - x[:, 1], background, [[1.0, 1.0]])
    >>> both = curves([[2.0, -1.0]], task)
    >>> both.deletion.shape, both.deletion_area.mean < both.insertion_area.mean
    ((1, 3), True)
    """
    values = attribution_of(task, explanation, output).values
    d = values.shape[1]
    steps = np.arange(d + 1)
    down, up = np.empty((len(values), d + 1)), np.empty((len(values), d + 1))
    for i, phi in enumerate(values):
        rank = np.empty(d, dtype=np.int64)
        rank[np.argsort(-phi, kind="stable")] = np.arange(d)
        first = rank < steps[:, None]
        others = task.table.matrix[
            generator(rng, i).integers(len(task.table.matrix), size=check_count("draws", draws))
        ]
        down[i] = _mean_predictions(task, i, ~first, others)
        up[i] = _mean_predictions(task, i, first, others)
    return Curves((down - task.typical) / task.unit, (up - task.typical) / task.unit)


def precision(explanation: Explanation) -> Score:
    """P(w) = E[|f(z) - f(x)| given w·z = w·x] of each row, on fresh rows or exactly; lower is better.

    Parameters
    ----------
    explanation
        An explanation by :class:`limes.SparseExplainer`.

    Raises
    ------
    InputError
        If the explanation is not sparse.

    References
    ----------
    Koriche et al. 2025, equation 3.

    Examples
    --------
    >>> import limes
    >>> explainer = limes.SparseExplainer(lambda z: z[:, 0] * z[:, 1] / 2, k=1, samples=100)
    >>> precision(explainer([[1.0, 1.0, -1.0]], progress=False)).rows.shape
    (1,)
    """
    if not getattr(explanation, "certificates", None):
        raise InputError("precision needs an explanation of a limes.SparseExplainer")
    values = [row.certificate.precision for row in explanation]
    return Score("precision error", np.array(values, dtype=np.float64), "lower")


def _mean_predictions(task: EvaluationTask, i: int, kept: Any, others: Floats) -> Floats:
    """Mean of f over background rows for each set of kept features (s, d) -> (s,)."""
    rows = np.where(kept[:, None, :], task.rows[i], others)
    predictions = task.predict(rows.reshape(-1, rows.shape[-1])).reshape(rows.shape[:2])
    return np.asarray(predictions.mean(axis=1))


def _area(heights: Floats) -> Floats:
    """Areas by trapezoids, over steps of total length 1."""
    return np.asarray((heights[:, 1:] + heights[:, :-1]).mean(axis=1) / 2)


def _around(
    task: EvaluationTask, i: int, neighbourhood: Neighbourhood | None, draws: int, rng: int
) -> tuple[Floats, Floats]:
    """Draw kept features z (m, d) and predictions (m,) around row i."""
    if neighbourhood is not None and not hasattr(neighbourhood, "draw"):
        raise InputError(f"neighbourhood must have a method draw, got {type(neighbourhood).__name__}")
    x, z = (Removal() if neighbourhood is None else neighbourhood).draw(
        task, i, check_count("draws", draws), generator(rng, i)
    )
    return z, task.predict(x)


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
