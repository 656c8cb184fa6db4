r"""MAPLE: the neighbours of a row are the rows that share its leaves in a forest.

The explanation is a weighted ridge regression on the first p features, in a fixed order; p is chosen on rows
held out. With features centred by weights at (x̄, ȳ), Gram matrix S + αI = LLᵀ and moments b, the fit on the
first p features predicts at x

    ȳ + Σ_{i ≤ p} (L⁻¹(x - x̄))_i (L⁻¹b)_i,

because leading blocks of L factor leading blocks of the Gram matrix: the predictions of all prefixes are one
cumulative sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Never

import numpy as np
from scipy.linalg import solve_triangular

from limes import __version__
from limes._arrays import Floats, Ints, r_squared
from limes._checks import check_count, check_seed, check_size, refuse_in_call, refuse_unknown
from limes._explainers.results import repetitions, score_warnings
from limes._explainers.tables.table import Table, ids_of
from limes._explanation import Explanation
from limes._explanation.drawing import Described
from limes._explanation.explanation import from_fields
from limes._threads import one_blas_thread
from limes.exceptions import InputError
from limes.models._calling.caller import (
    ModelCaller,
    OneOutput,
    few_inputs,
    repeated_answers,
    spread_of,
)
from limes.models._calling.outputs import SCORE, behind_method, resolve
from limes.models._identity import RefitDetector, Witnesses

# Share of the background on which the number of features is chosen, and the largest number of such rows
_VALIDATION_SHARE, _MOST_VALIDATION_ROWS = 0.25, 200
_FEWEST_ROWS = 8
# Least ridge, for weights that add up to 1: it keeps the Gram matrix regular where ridge=0
_SMALLEST_RIDGE = 1e-12
_MEANING = "slope of the local ridge regression, per unit of the column; bars are per standard deviation"


class MapleExplainer(Described):
    r"""Explain predictions by a ridge regression on the background rows that are neighbours in a forest.

    A forest is grown on the model's answers. The weight of background row i for x is

        w_i = Σ_trees 1[x and row i share the leaf] / (rows in that leaf),

    features are ranked by the impurity at their root splits, as many of them are kept as predict the model
    best on rows held out, and the explanation is the weighted ridge fit at x,

        min Σ_i w_i (f(x_i) - b₀ - b·x_i)² + α‖b‖².

    The weights add up to the number of trees, as in the authors' code. MAPLE has no sparsity budget and does
    not reproduce the prediction: a baseline for :class:`limes.SparseExplainer`.

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
        Penalty α, beside weights that add up to the number of trees; the intercept is free.
    rng
        Seed.

    Raises
    ------
    InputError
        If the background has categories or missing values, or is too small.
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
    >>> explainer(X[:1]).coefficients.values.round(1)
    array([[ 2., -1.,  0.]])
    """

    @one_blas_thread()
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
        model, output = behind_method(model, output)
        self._table = _numeric_table(background).for_model(model)
        resolved = resolve(model, output)
        self._predict = OneOutput(ModelCaller(model, resolved, self._table.decode), resolved)
        self._trees, self._leaf, self._seed = check_count("trees", trees), leaf, check_seed(rng)
        self._ridge = max(check_size("ridge", ridge, zero=True), _SMALLEST_RIDGE * trees)
        self._fit(model)
        self._provenance = {
            "meaning": _MEANING,
            "limes": __version__,
            "model": type(model).__name__,
            "answer": resolved.method or "call",
            "background": f"{len(self._table.matrix)} rows",
            "trees": trees,
            "ridge": float(ridge),
            "seed": self._seed,
            "slopes": {
                name: {"mean": float(column.mean()), "deviation": float(column.std())}
                for name, column in zip(self._table.names, self._table.matrix.T, strict=True)
            },
        }

    def _facts(self) -> Mapping[str, Any]:
        return self._provenance

    def _fit(self, model: Any) -> None:
        """Fit the forest to the model's predictions, and choose the number of features."""
        matrix = self._table.matrix
        predictions = self._predict(matrix)
        order = np.random.default_rng(self._seed).permutation(len(matrix))
        validation = order[: min(_MOST_VALIDATION_ROWS, int(_VALIDATION_SHARE * len(matrix)))]
        train = np.sort(order[validation.size :])
        self._train, self._rows, self._targets = train, matrix[train], predictions[train]
        self._forest = _forest(self._rows, self._targets, self._trees, self._leaf, self._seed)
        self._leaves = self._forest.apply(self._rows)
        inputs = few_inputs(matrix)
        answered = repeated_answers(self._predict, inputs)
        spread = spread_of(*answered)
        self._warnings = repetitions(spread)
        witnesses = Witnesses.of(self._predict, matrix, (inputs, *answered), spread)
        self._watch = RefitDetector(model, witnesses=witnesses)
        self._order = _ranked(self._forest, matrix.shape[1])
        self.kept = self._best_prefix(matrix[validation], predictions[validation])

    @one_blas_thread()
    def __call__(self, X: Any, **unknown: Never) -> Explanation:
        """Explain one row or many, ``X``.

        Raises
        ------
        InputError
            If columns do not match, or a value is not a number.
        ModelError
            If the model fails.
        """
        if unknown:
            refuse_in_call(unknown, MapleExplainer)
        rows = _in_float32(self._table.encode(X))
        if not self._watch.unchanged(rows):
            self._fit(self._watch.model)
        n, d = rows.shape
        values, intercepts, fidelity = np.zeros((n, d)), np.zeros(n), np.zeros(n)
        for i, weights in enumerate(self._weights(rows)):
            coef, intercepts[i] = self._moments(weights).coefficients(self.kept)
            values[i, self._order] = coef
            fidelity[i] = self._r_squared(weights, values[i], intercepts[i])
        predictions, first = self._predict(rows), self._predict.first
        scores = score_warnings(self._watch.model, str(self._provenance["answer"]), first, predictions)
        return from_fields(
            values=values,
            standard_errors=np.full((n, d), np.nan),
            intercepts=intercepts,
            predictions=predictions,
            surrogate_predictions=intercepts + (values * rows).sum(axis=1),
            fidelity=fidelity,
            feature_names=self._table.names,
            output_names=(self._predict.name,),
            conditions=(self._table.names,) * n,
            data=self._table.originals(rows),
            method="sampled",
            reason="MAPLE fits the background's rows, and has no standard errors",
            calls=np.ones(n, dtype=np.int64),
            row_converged=np.zeros(n, dtype=np.bool_),  # it has no standard errors
            row_warnings=((*self._warnings, *scores),) * n,
            provenance={
                **self._provenance,
                **({"quantity": SCORE} if scores else {}),
                "features kept": self.kept,
            },
            ids=ids_of(X, n),
        )

    def example_weights(self, X: Any) -> Floats:
        """Return how much each background row counts for the explanation of each row, (n, background rows).

        ``X`` are rows as the call takes them. A row's weights w_i add up to the number of trees; those of
        the rows that are held out to choose the number of features are 0.

        Raises
        ------
        InputError
            If columns do not match, or a value is not a number.

        References
        ----------
        Plumb et al. 2018, section 3: the training rows that speak for a prediction.

        Examples
        --------
        >>> import limes
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> explainer = limes.MapleExplainer(lambda X: 2.0 * X[:, 0] - X[:, 1], X, trees=20)
        >>> weights = explainer.example_weights(X[:1])
        >>> weights.shape, round(float(weights.sum()), 9)
        ((1, 200), 20.0)
        """
        rows = _in_float32(self._table.encode(X))
        weights = np.zeros((len(rows), len(self._table.matrix)))
        weights[:, self._train] = self._weights(rows)
        return weights

    def _weights(self, rows: Floats) -> Floats:
        """Return weights (n, training rows) for encoded rows (n, d); each row adds up to the trees."""
        weights = np.zeros((len(rows), len(self._rows)))
        for leaf, training_leaf in zip(self._forest.apply(rows).T, self._leaves.T, strict=True):
            counts = np.bincount(training_leaf)
            weights += (leaf[:, None] == training_leaf) / counts[leaf][:, None]
        return weights

    def _moments(self, weights: Floats) -> WeightedMoments:
        return WeightedMoments.from_rows(self._rows[:, self._order], self._targets, weights, self._ridge)

    def _best_prefix(self, rows: Floats, targets: Floats) -> int:
        """Return the number of features, in their order, that predicts validation rows best."""
        squares = np.zeros(rows.shape[1] + 1)
        for row, target, weights in zip(rows, targets, self._weights(rows), strict=True):
            squares += (self._moments(weights).prefix_predictions(row[self._order]) - target) ** 2
        return int(np.argmin(squares[1:])) + 1

    def _r_squared(self, weights: Floats, coef: Floats, intercept: float) -> float:
        share = weights / weights.sum()
        residual = self._targets - self._rows @ coef - intercept
        spread = self._targets - share @ self._targets
        total = float(share @ spread**2)
        size = float(np.abs(self._targets).max())
        return float(r_squared(total - float(share @ residual**2), total, size)[0])


@dataclass(frozen=True, eq=False)
class WeightedMoments:
    """Centred moments of features and response, divided by the sum of the weights.

    Attributes
    ----------
    center, level
        x̄ (d,) and ȳ.
    gram, moments
        S + αI (d, d) and b (d,).
    """

    center: Floats
    level: float
    gram: Floats
    moments: Floats

    @classmethod
    def from_rows(cls, X: Floats, y: Floats, weights: Floats, ridge: float) -> WeightedMoments:
        """Compute the moments of rows (n, d), responses and weights (n,); rows of weight 0 are ignored.

        ``ridge`` is the penalty beside the weights as they are, so that α is its share of their sum.
        """
        used, total = weights > 0, float(weights.sum())
        share = weights[used] / total
        center, level = share @ X[used], float(share @ y[used])
        centred = X[used] - center
        gram = (centred * share[:, None]).T @ centred
        return cls(
            center, level, gram + ridge / total * np.eye(len(center)), (share * (y[used] - level)) @ centred
        )

    def coefficients(self, kept: int) -> tuple[Floats, float]:
        """Fit the first ``kept`` features: coefficients (d,), 0 for the others, and intercept."""
        coef = np.zeros(self.center.size)
        coef[:kept] = np.linalg.solve(self.gram[:kept, :kept], self.moments[:kept])
        return coef, self.level - float(coef @ self.center)

    def prefix_predictions(self, x: Floats) -> Floats:
        """Predict x (d,) by the fits on the first 0, 1, ..., d features, (d + 1,)."""
        factor = np.linalg.cholesky(self.gram)
        columns = np.stack([x - self.center, self.moments], axis=1)
        whitened, weight = solve_triangular(factor, columns, lower=True, check_finite=False).T
        return self.level + np.concatenate([[0.0], np.cumsum(whitened * weight)])


def _numeric_table(background: Any) -> Table:
    table = Table.fit(background)
    if not table.numeric.all():
        name = table.names[int(np.argmin(table.numeric))]
        raise InputError(f"column {name!r} is not numeric, and MAPLE fits slopes: use limes.Literals first")
    if np.isnan(table.matrix).any():
        name = table.names[int(np.isnan(table.matrix).any(axis=0).argmax())]
        raise InputError(f"column {name!r} has missing values: impute them, or use limes.Literals first")
    if len(table.matrix) < _FEWEST_ROWS:
        raise InputError(f"MAPLE needs {_FEWEST_ROWS} background rows at least, got {len(table.matrix)}")
    _in_float32(table.matrix)
    return table


def _forest(rows: Floats, targets: Floats, trees: int, leaf: int, seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(
        trees,
        max_features=0.5,
        min_samples_leaf=check_count("leaf", leaf),
        random_state=np.random.RandomState(seed % 2**32),
    )
    return forest.fit(rows, targets)


def _ranked(forest: Any, size: int) -> Ints:
    """Rank features by the impurity at the roots that they split; ties in their order."""
    scores = np.zeros(size)
    for tree in (member.tree_ for member in forest.estimators_):
        if tree.feature[0] >= 0:
            scores[tree.feature[0]] += tree.impurity[0]
    return np.argsort(-scores, kind="stable")


def _in_float32(rows: Floats) -> Floats:
    """Return rows (n, d), if the forest, which compares float32, can hold their numbers."""
    largest = float(np.abs(rows).max())
    if largest > float(np.finfo(np.float32).max):
        raise InputError(f"MAPLE's forest holds numbers up to 3.4e38, got {largest:.3g}: divide the column")
    return rows
