"""Does an explanation say what the model does? Fidelity, infidelity, deletion and insertion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.evaluate.neighbourhoods import Neighbourhood, Removal
from limes.evaluate.score import Score
from limes.evaluate.task import Task
from limes.evaluate.values import attribution
from limes.exceptions import InputError


def fidelity(
    explanation: Any,
    task: Task,
    *,
    neighbourhood: Neighbourhood | None = None,
    draws: int = 1000,
    output: Any = None,
    rng: int = 0,
) -> Score:
    r"""Share of the model's variance around a row that the explanation tells.

        R² = 1 - E(f - g)² / Var f,    g(z) = c + Σ_j φ_j z_j,

    with the best constant c, as explainers differ in what their base value means.

    Parameters
    ----------
    explanation
        Of all rows of the task: whatever :func:`limes.evaluate.attribution` takes.
    task
        Model, rows, background.
    neighbourhood
        Where: :class:`Removal` if not given, or :class:`Bins` for LIME's own.
    draws
        Rows drawn around each row; the same for every explanation.
    output
        Of the explanation, if it has several.
    rng
        Seed.

    Returns
    -------
    Score
        Higher is better; 1 is all, 0 is as good as no feature, below it is worse. NaN where f is flat.

    Raises
    ------
    InputError
        If the explanation does not have the task's rows and columns.

    Examples
    --------
    >>> background = np.random.default_rng(0).normal(size=(200, 2))
    >>> task = Task.of(lambda x: 2 * x[:, 0] - x[:, 1], background, [[1.0, 1.0]])
    >>> fidelity([[2.0, -1.0]], task).mean > fidelity([[0.0, 1.0]], task).mean
    True
    """
    values = _values(explanation, task, output)
    found = np.full(len(values), np.nan)
    for i, phi in enumerate(values):
        _, z, f = _around(task, i, neighbourhood, draws, rng)
        if np.var(f) > 0:
            found[i] = 1.0 - np.var(f - z @ phi) / np.var(f)
    return Score("fidelity", found, "higher")


def infidelity(
    explanation: Any,
    task: Task,
    *,
    neighbourhood: Neighbourhood | None = None,
    draws: int = 1000,
    output: Any = None,
    rng: int = 0,
) -> Score:
    r"""How far the explanation errs about what removing features does, as a share of what it does.

        E(Σ_j φ_j (1 - z_j) - (f(ξ) - f(x)))² / E(f(ξ) - f(x))².

    Parameters are those of :func:`fidelity`. 0 is perfect; 1 is as good as an explanation of zeros.

    References
    ----------
    Yeh et al. 2019, "On the (in)fidelity and sensitivity of explanations", Definition 2.1, there without the
    denominator, which makes models comparable.

    Examples
    --------
    >>> background = np.random.default_rng(0).normal(size=(200, 2))
    >>> task = Task.of(lambda x: 2 * x[:, 0] - x[:, 1], background, [[1.0, 1.0]])
    >>> infidelity([[0.0, 0.0]], task).mean
    1.0
    """
    values = _values(explanation, task, output)
    found = np.full(len(values), np.nan)
    for i, phi in enumerate(values):
        _, z, f = _around(task, i, neighbourhood, draws, rng)
        change = task.predictions[i] - f
        if np.any(change != 0):
            found[i] = np.mean(((1 - z) @ phi - change) ** 2) / np.mean(change**2)
    return Score("infidelity", found, "lower")


@dataclass(frozen=True, eq=False)
class Curves:
    """Mean answers as features go or come, the largest value first; (n, d + 1) each, in units of the task.

    ``deletion[:, m]`` is f with the m largest removed, ``insertion[:, m]`` with all but them removed, both
    less the mean of f over the background and divided by its standard deviation.
    """

    deletion: Floats
    insertion: Floats

    @property
    def deletion_area(self) -> Score:
        """Mean height of the curve: the sooner f falls the better."""
        return Score("deletion area", _area(self.deletion), "lower")

    @property
    def insertion_area(self) -> Score:
        """Mean height of the curve: the sooner f rises the better."""
        return Score("insertion area", _area(self.insertion), "higher")


def curves(explanation: Any, task: Task, *, draws: int = 50, output: Any = None, rng: int = 0) -> Curves:
    """Remove features one by one, from the largest value (with its sign) to the smallest; and put them back.

    A removed feature takes the value of a background row; the mean is over ``draws`` of them, the same for
    every explanation. Other parameters are those of :func:`fidelity`.

    References
    ----------
    Petsiuk et al. 2018, "RISE", there for images.

    Examples
    --------
    >>> background = np.random.default_rng(0).normal(size=(200, 2))
    >>> task = Task.of(lambda x: 2 * x[:, 0] - x[:, 1], background, [[1.0, 1.0]])
    >>> found = curves([[2.0, -1.0]], task)
    >>> found.deletion.shape, found.deletion_area.mean < found.insertion_area.mean
    ((1, 3), True)
    """
    values = _values(explanation, task, output)
    d = values.shape[1]
    steps = np.arange(d + 1)
    down, up = np.empty((len(values), d + 1)), np.empty((len(values), d + 1))
    for i, phi in enumerate(values):
        rank = np.empty(d, dtype=np.int64)
        rank[np.argsort(-phi, kind="stable")] = np.arange(d)
        first = rank < steps[:, None]
        others = task.table.matrix[_stream(rng, i).integers(len(task.table.matrix), size=draws)]
        down[i] = _mean_answers(task, i, ~first, others)
        up[i] = _mean_answers(task, i, first, others)
    return Curves((down - task.typical) / task.unit, (up - task.typical) / task.unit)


def _mean_answers(task: Task, i: int, kept: Any, others: Floats) -> Floats:
    """Mean of f over background rows for each set of kept features (s, d) -> (s,)."""
    rows = np.where(kept[:, None, :], task.rows[i], others)
    answers = task.predict(rows.reshape(-1, rows.shape[-1])).reshape(rows.shape[:2])
    return np.asarray(answers.mean(axis=1))


def _area(heights: Floats) -> Floats:
    """By trapezoids, over steps that make one unit together."""
    return np.asarray((heights[:, 1:] + heights[:, :-1]).mean(axis=1) / 2)


def _values(explanation: Any, task: Task, output: Any) -> Floats:
    values = attribution(explanation, output=output).values
    if values.shape != task.rows.shape:
        raise InputError(
            f"the explanation has {values.shape[0]} rows and {values.shape[1]} features, the task "
            f"{task.rows.shape[0]} and {task.rows.shape[1]}: explain task.X, all of its columns"
        )
    return values


def _around(
    task: Task, i: int, neighbourhood: Neighbourhood | None, draws: int, rng: int
) -> tuple[Floats, Floats, Floats]:
    x, z = (neighbourhood or Removal()).draw(task, i, draws, _stream(rng, i))
    return x, z, task.predict(x)


def _stream(rng: int, i: int) -> np.random.Generator:
    """Of (seed, row) alone: explanations meet the same draws."""
    return np.random.default_rng([rng, i])
