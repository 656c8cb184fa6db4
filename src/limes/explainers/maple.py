"""MAPLE: the neighbours of a row are the rows that share its leaves in a forest."""

from __future__ import annotations

from typing import Any, Never

import numpy as np

from limes import __version__
from limes._arrays import Floats, Ints
from limes._checks import check_count, check_seed, check_size, refuse_unknown
from limes.exceptions import InputError
from limes.explainers.sparse import OneOutput
from limes.explainers.tables.table import Table
from limes.explainers.watch import Watch
from limes.explanation import Explanation
from limes.models.outputs import ModelCaller, resolve
from limes.surrogates.prefix_ridge import WeightedMoments

# Of the background: rows on which the number of features is chosen, and how many are enough
_VALIDATION, _ENOUGH = 0.25, 200
_FEWEST_ROWS = 8
# The Gram matrix is scaled by the weights' sum, and never singular: a last resort where the ridge is 0
_SMALLEST_RIDGE = 1e-12
_MEANING = "slope of the local ridge regression, per unit of the column"


class MapleExplainer:
    r"""Explain predictions by a ridge regression on the background rows that a forest holds for neighbours.

    A forest is grown on the model's answers. The weight of background row i for x is

        w_i = (1/T) Σ_trees 1[x and row i share the leaf] / (rows in that leaf),

    features are ranked by the impurity at the root splits that they make, as many of them are kept as predict
    the model best on rows held out, and the explanation is the weighted ridge fit at x. It has no sparsity
    budget and does not reproduce the prediction: a baseline for :class:`limes.SparseExplainer`.

    Parameters
    ----------
    model
        A fitted estimator or a callable.
    background
        Table or array (n, d) of numbers, at least eight rows.
    output
        As for :class:`limes.TabularExplainer`; of two classes the second is explained.
    trees, leaf
        Trees of the forest, and the fewest rows in a leaf; every split looks at half of the features.
    ridge
        Penalty α of the fit whose weights add up to 1; the intercept is free.
    rng
        Seed.

    Raises
    ------
    InputError
        If the background holds categories or missing values, or is too small.
    ModelError
        If the model fails.

    References
    ----------
    Plumb, Molitor and Talwalkar, "Model agnostic supervised local explanations", 2018.

    Examples
    --------
    >>> import limes
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> explainer = limes.MapleExplainer(lambda X: 2.0 * X[:, 0] - X[:, 1], X, trees=20)
    >>> explainer(X[:1]).values.round(1)
    array([[ 2., -1.,  0.]])
    """

    def __init__(
        self,
        model: Any,
        background: Any,
        *,
        output: Any = None,
        trees: int = 200,
        leaf: int = 10,
        ridge: float = 0.001,
        rng: int | np.random.Generator | np.random.SeedSequence | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, MapleExplainer)
        self._table = _numeric_table(background)
        self._ridge = max(check_size("ridge", ridge, zero=True), _SMALLEST_RIDGE)
        wanted = resolve(model, output)
        self._ask = OneOutput(ModelCaller(model, wanted, self._table.decode), wanted)
        self._trees, self._leaf, self._seed = check_count("trees", trees), leaf, check_seed(rng)
        self._watch = Watch(model)
        self._learn()
        self._provenance = {
            "meaning": _MEANING,
            "limes": __version__,
            "model": type(model).__name__,
            "answer": wanted.method or "call",
            "background": f"{len(self._table.matrix)} rows",
            "trees": trees,
            "ridge": float(ridge),
            "seed": self._seed,
        }

    def _learn(self) -> None:
        """Grow the forest on the model's answers, and choose how many features are kept."""
        matrix = self._table.matrix
        answers = self._ask(matrix)
        order = np.random.default_rng(self._seed).permutation(len(matrix))
        held = order[: min(_ENOUGH, int(_VALIDATION * len(matrix)))]
        train = np.sort(order[held.size :])
        self._rows, self._answers = matrix[train], answers[train]
        self._forest = _grown(self._rows, self._answers, self._trees, self._leaf, self._seed)
        self._leaves = self._forest.apply(self._rows)
        self._order = _ranked(self._forest, matrix.shape[1])
        self.kept = self._best_prefix(matrix[held], answers[held])

    def __call__(self, X: Any) -> Explanation:
        """Explain one row or many.

        Raises
        ------
        InputError
            If columns do not match, or a value is not a number.
        ModelError
            If the model fails.
        """
        rows = self._table.encode(X)
        if not self._watch.unchanged(rows):
            self._watch = Watch(self._watch.model)
            self._learn()
        n, d = rows.shape
        values, intercepts, fidelity = np.zeros((n, d)), np.zeros(n), np.zeros(n)
        for i, weights in enumerate(self.weights(rows)):
            coef, intercepts[i] = self._moments(weights).coefficients(self.kept)
            values[i, self._order] = coef
            fidelity[i] = self._explained(weights, values[i], intercepts[i])
        return Explanation(
            values=values,
            standard_errors=np.full((n, d), np.nan),
            intercepts=intercepts,
            predictions=self._ask(rows),
            surrogate_predictions=intercepts + (values * rows).sum(axis=1),
            fidelity=fidelity,
            feature_names=self._table.names,
            output_names=(self._ask.name,),
            conditions=(self._table.names,) * n,
            data=self._table.originals(rows),
            method="sampled",
            reason="MAPLE fits the background's own rows, and gives no standard errors",
            calls=np.ones(n, dtype=np.int64),
            row_converged=np.ones(n, dtype=np.bool_),
            row_warnings=((),) * n,
            provenance={**self._provenance, "features kept": self.kept},
        )

    def weights(self, rows: Floats) -> Floats:
        """Weights of the training rows for encoded rows (n, d), (n, training rows); each adds up to 1."""
        found = np.zeros((len(rows), len(self._rows)))
        for own, known in zip(self._forest.apply(rows).T, self._leaves.T, strict=True):
            counts = np.bincount(known)
            found += (own[:, None] == known) / counts[own][:, None]
        return np.asarray(found / self._leaves.shape[1])

    def _moments(self, weights: Floats) -> WeightedMoments:
        return WeightedMoments.of(self._rows[:, self._order], self._answers, weights, self._ridge)

    def _best_prefix(self, rows: Floats, answers: Floats) -> int:
        """How many features, in their order, predict rows held out best."""
        squares = np.zeros(rows.shape[1] + 1)
        for row, answer, weights in zip(rows, answers, self.weights(rows), strict=True):
            squares += (self._moments(weights).prefix_predictions(row[self._order]) - answer) ** 2
        return int(np.argmin(squares[1:])) + 1

    def _explained(self, weights: Floats, coef: Floats, intercept: float) -> float:
        left = self._answers - self._rows @ coef - intercept
        spread = self._answers - weights @ self._answers
        total = float(weights @ spread**2)
        return 1.0 - float(weights @ left**2) / total if total > 0 else np.nan


def _numeric_table(background: Any) -> Table:
    table = Table.fit(background)
    if not table.numeric.all():
        name = table.names[int(np.argmin(table.numeric))]
        raise InputError(f"column {name!r} is no number, and MAPLE fits slopes: use limes.Literals first")
    if np.isnan(table.matrix).any():
        name = table.names[int(np.isnan(table.matrix).any(axis=0).argmax())]
        raise InputError(f"column {name!r} has missing values: impute them, or use limes.Literals first")
    if len(table.matrix) < _FEWEST_ROWS:
        raise InputError(f"MAPLE needs {_FEWEST_ROWS} background rows at least, got {len(table.matrix)}")
    return table


def _grown(rows: Floats, answers: Floats, trees: int, leaf: int, seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(
        trees,
        max_features=0.5,
        min_samples_leaf=check_count("leaf", leaf),
        random_state=np.random.RandomState(seed % 2**32),
    )
    return forest.fit(rows, answers)


def _ranked(forest: Any, size: int) -> Ints:
    """Features by the impurity at the roots that they split; ties in their order."""
    scores = np.zeros(size)
    for tree in (member.tree_ for member in forest.estimators_):
        if tree.feature[0] >= 0:
            scores[tree.feature[0]] += tree.impurity[0]
    return np.argsort(-scores, kind="stable")
