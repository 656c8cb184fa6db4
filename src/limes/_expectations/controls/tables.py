"""Controls of tables: an additive model, boosted trees, and the margin behind a link.

*Additive*: one effect a cell and one slope inside each cell, of every column (``cell_basis.py``).

*Trees* are for models that are piecewise constant or full of interactions.

*Margin*: a probability is a link of a margin (logistic, softmax), and the margin of a linear model or of
boosted trees is read exactly. A linear function of the margins, and another control of its residuals, follow
the probability as far as the link is straight. Models of texts and images have margins, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from limes._arrays import CellNumbers, Floats
from limes._expectations.controls.cell_basis import CellBasis
from limes._expectations.controls.control import (
    PENALTIES,
    Control,
    ControlMoments,
    FittedControl,
    SequenceRidge,
    ZeroControl,
    check_numbers,
    out_of_sequence,
    ridge_path,
    share_left,
)
from limes._expectations.explained import CellMoments, ExplainedRows
from limes._expectations.forest import ForestExpectation
from limes._expectations.moments import ExactMoments, Moments
from limes._threads import LRUCache
from limes.designs._column import ColumnOfLaws
from limes.designs._product import Features, ProductDesign, Rows
from limes.models.forms._trees import Forest
from limes.models.readers.sklearn_trees import histogram

# Copies of the normal equations that `ridge_path` holds: they, their eigenvectors, and what LAPACK needs
_COPIES = 4

# -- additive model ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Additive:
    design: ProductDesign
    basis: CellBasis
    intercept: Floats
    coef: Floats
    computed: dict[tuple[int, ColumnOfLaws], tuple[Floats, Floats]] = field(default_factory=dict)
    effects: list[CellMoments] = field(default_factory=list)

    def predict(self, x: Floats) -> Floats:
        return self.intercept + self.basis.sums(x, self.design.locate(x), self.coef)

    def moments(self, design: ProductDesign) -> ControlMoments:
        parts = [self._column(j, coordinate) for j, coordinate in enumerate(design.coordinates)]
        mean = sum((average for average, _ in parts), self.intercept)
        coef = np.stack([contrast for _, contrast in parts]) / design.undivided[:, None]
        return ControlMoments.exact(mean, coef)

    def many(self, rows: ExplainedRows) -> ControlMoments:
        """Moments under bin weights, under which slopes inside cells have none."""
        if not self.effects:
            effects = [effect for effect, _ in self.basis.tables(self.coef)]
            self.effects.append(CellMoments.of(rows.family, effects))
        mean, coef = self.effects[0].at(rows.cells)
        return ControlMoments.exact(self.intercept + mean, coef)

    @cached_property
    def _coefs(self) -> list[Floats]:
        """Coefficients of each column's functions."""
        return np.split(self.coef, self.basis.ends[:-1])

    def _column(self, j: int, coordinate: ColumnOfLaws) -> tuple[Floats, Floats]:
        """Mean and contrast of a column's part of h, (k,) each: the same for all rows in one cell."""
        key = j, coordinate
        if key not in self.computed:
            average, contrast = self.basis.columns[j].functionals(coordinate)
            self.computed[key] = average @ self._coefs[j], contrast @ self._coefs[j]
        return self.computed[key]


def additive_control(design: ProductDesign, x: Floats, f: Floats) -> FittedControl:
    """Fit an additive model by ridge regression."""
    cells = design.locate(x)
    basis = CellBasis.of(design.laws, cells)
    check_numbers(int(basis.ends[-1]), _COPIES)
    return _Additive(design, basis, *ridge_path(basis(x, cells), f))


def additive_out_of_sequence(
    design: ProductDesign, x: Floats, cells: CellNumbers, f: Floats, sequences: int
) -> tuple[Floats, FittedControl]:
    """Fit an additive model to rows x and their cells (n, d) without each sequence of them in turn.

    Returns the values (n, k) of the fits, each at the rows that it has not seen, and the mean of all fits.
    The penalty is the one that predicts the first sequence best.
    """
    basis = CellBasis.of(design.laws, cells)
    check_numbers(1 + int(basis.ends[-1]), sequences)
    values = basis(x, cells)
    center, scale = values.mean(axis=0), values.std(axis=0)
    scale = np.where(scale > 0, scale, np.inf)
    features = np.concatenate([np.ones((len(x), 1)), (values - center) / scale], axis=1)
    ridge, first = SequenceRidge.of(features, f, sequences), slice(len(f) // sequences)

    def share(penalty: float) -> float:
        return share_left((f[first] - features[first] @ ridge.without(0, penalty)).var(axis=0), f)

    fits = ridge.without_each(min(PENALTIES[::2], key=share))
    coef = fits.mean(axis=0)[1:] / scale[:, None]
    intercept = fits.mean(axis=0)[0] - center @ coef
    values = np.asarray(out_of_sequence(features, fits), dtype=np.float64)
    return values, _Additive(design, basis, intercept, coef)


# -- boosted trees -------------------------------------------------------------------------------------------

# Principal directions of the answers that are boosted, each by itself
_MOST_DIRECTIONS = 8
_NEGLIGIBLE = 1e-8
_FEWEST_ROWS = 32


@dataclass(frozen=True, eq=False)
class _Trees:
    """Forests of single outputs, one a direction (r, k) of the answers."""

    forests: tuple[Forest, ...]
    directions: Floats
    intercept: Floats

    @cached_property
    def _expectations(self) -> tuple[ForestExpectation, ...]:
        return tuple(ForestExpectation(forest) for forest in self.forests)

    def predict(self, x: Floats) -> Floats:
        return self.intercept + np.stack([f.predict(x) for f in self.forests], axis=1) @ self.directions

    def moments(self, design: ProductDesign) -> ControlMoments:
        # without its family a design gets a table for this row alone
        single = replace(design, family=None, cells=None)
        return self._along(design, [expectation.moments(single) for expectation in self._expectations])

    def many(self, rows: ExplainedRows) -> ControlMoments:
        """Moments from tables that all rows share, where these are not too large."""
        expectations = [expectation.reproducible() for expectation in self._expectations]
        if all(expectation.shares_tables(rows.family) for expectation in expectations):
            its = Rows.in_cells(rows.family, rows.cells)
            return self._along(rows.features, [expectation.at(its) for expectation in expectations])
        each = [self.moments(design) for design in rows.designs()]
        return ControlMoments(*(np.stack(arrays) for arrays in zip(*each, strict=True)))

    def _along(self, design: Features, moments: Sequence[Moments]) -> ControlMoments:
        """Moments of all outputs from those of each direction."""
        pairs = list(zip(moments, self.directions, strict=True))
        mean = reduce(np.add, [m.mean[..., None] * direction for m, direction in pairs])
        coef = reduce(np.add, [design.solve(m.gamma)[..., None] * direction for m, direction in pairs])
        return ControlMoments.exact(self.intercept + mean, coef)


def tree_control(design: ProductDesign, x: Floats, f: Floats) -> FittedControl:  # noqa: ARG001 - trees cut by x
    """Fit boosted trees to the answers' principal directions: probabilities of two classes have one."""
    mean = f.mean(axis=0)
    _, sizes, directions = np.linalg.svd(f - mean, full_matrices=False)
    varying = sizes[:_MOST_DIRECTIONS] > _NEGLIGIBLE * max(sizes[0], 1e-300)
    if sizes[0] == 0 or len(x) < _FEWEST_ROWS:
        return ZeroControl(f.shape[1])
    directions = directions[:_MOST_DIRECTIONS][varying]
    forests = tuple(_boosted(x, values) for values in ((f - mean) @ directions.T).T)
    return _Trees(forests, directions, mean)


def _boosted(x: Floats, values: Floats) -> Forest:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        max_iter=120,
        learning_rate=0.1,
        max_leaf_nodes=15,
        min_samples_leaf=5,
        early_stopping=False,
        random_state=0,
    )
    # scikit-learn refuses a column without values; a constant one is never split
    filled = np.where(np.isnan(x).all(axis=0), 0.0, x)
    # a small table is quicker on one thread, and rows that are explained in parallel would share the cores
    with threadpool_limits(1, user_api="openmp"):
        form = histogram(model.fit(filled, values), "predict", None)
    assert isinstance(form, Forest)  # noqa: S101 - predictions of a regressor
    return form


# -- margin --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Margin:
    margins: Callable[[Floats], Floats]
    margin_moments: Callable[[Any], Moments]
    intercept: Floats
    coef: Floats
    rest: FittedControl

    def predict(self, x: Floats) -> Floats:
        return self.intercept + _columns(self.margins(x)) @ self.coef + self.rest.predict(x)

    def moments(self, design: Any) -> ControlMoments:
        moments, rest = self.margin_moments(design), self.rest.moments(design)
        mean = self.intercept + np.atleast_1d(moments.mean) @ self.coef + rest.mean
        return ControlMoments(
            mean, design.solve(_columns(moments.gamma)) @ self.coef + rest.coef, rest.errors
        )


class MarginControl:
    """A control of margins (n,) or (n, m) and their exact expectation; ``rest`` fits the residuals."""

    def __init__(
        self,
        predict: Callable[[Floats], Floats],
        expectation: ExactMoments,
        rest: Control = additive_control,
    ) -> None:
        self._predict = predict
        self._expectation = expectation
        self._rest = rest
        # the fits to all folds share one design
        self._computed: LRUCache[Any, Moments] = LRUCache(1)

    def __call__(self, design: Any, x: Floats, f: Floats) -> FittedControl:
        columns = _columns(self._predict(x))
        intercept, coef = ridge_path(columns, f)
        residuals = f - intercept - columns @ coef
        return _Margin(self._predict, self._moments, intercept, coef, self._rest(design, x, residuals))

    def _moments(self, design: Any) -> Moments:
        return self._computed.get(design, lambda: self._expectation.moments(design))


def _columns(values: Floats) -> Floats:
    return values.reshape(len(values), -1)
