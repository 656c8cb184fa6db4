r"""Agreement of an explanation with the model: fidelity, infidelity, deletion and insertion, precision.

An explanation Σ φ_j z_j is compared with f on rows around the explained one, where some features are kept
(z_j = 1) and the others take other values:

    removal    each feature is kept with a probability, the others take the values of one background row: the
               rows behind SHAP's values;
    bins       rows of LIME's weighted law, where a feature is kept as long as it stays in the row's bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from limes._arrays import Floats
from limes._checks import check_count, check_probability
from limes._explanation import Explanation
from limes._variance import is_constant
from limes.designs._bins import bin_edges
from limes.designs._marginals import binned, categorical
from limes.designs._product import ProductFamily
from limes.designs._weights import BinWeights, check_bandwidth
from limes.evaluate._task import EvaluationTask, Score, attribution_of, check_task, generator
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
        edges = bin_edges(table.matrix, table.numeric, bins="quartile", names=table.names)
        laws = tuple(
            categorical(x) if cut is None else binned(x, cut)
            for x, cut in zip(table.matrix.T, edges, strict=True)
        )
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
