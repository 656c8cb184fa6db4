"""Tree control: boosted trees, for models that are piecewise constant or full of interactions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from limes._arrays import Floats
from limes._expectations.controls.control import ControlMoments, FittedControl, ZeroControl
from limes._expectations.forest import ForestExpectation
from limes.designs._product import ProductDesign
from limes.models._reading import read
from limes.models.forms._base import BlackBox
from limes.models.forms._trees import Forest

# Principal directions of the answers that are boosted, each by itself
_MOST_DIRECTIONS = 8
_NEGLIGIBLE = 1e-8
_FEWEST_ROWS = 32


@dataclass(frozen=True, eq=False)
class _Trees:
    """Forests of single outputs, one a direction (r, k) of the answers.

    ``shared`` tells whether they serve many designs of a family, for which a table is worth it.
    """

    forests: tuple[Forest, ...]
    directions: Floats
    intercept: Floats
    shared: bool = False

    @cached_property
    def _expectations(self) -> tuple[ForestExpectation, ...]:
        return tuple(ForestExpectation(forest) for forest in self.forests)

    def predict(self, x: Floats) -> Floats:
        return self.intercept + np.stack([f.predict(x) for f in self.forests], axis=1) @ self.directions

    def moments(self, design: ProductDesign) -> ControlMoments:
        # without its family a design gets a table for this row alone
        its = design if self.shared else replace(design, family=None, cells=None)
        moments = [expectation.moments(its) for expectation in self._expectations]
        mean = np.stack([m.mean for m in moments]) @ self.directions
        coef = design.solve(np.stack([m.gamma for m in moments], axis=1)) @ self.directions
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


def shared_tree_control(design: ProductDesign, x: Floats, f: Floats) -> FittedControl:
    """Fit boosted trees that serve many explained rows."""
    control = tree_control(design, x, f)
    return replace(control, shared=True) if isinstance(control, _Trees) else control


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
        form = read(model.fit(filled, values))
    if isinstance(form, BlackBox) or not isinstance(form, Forest):
        raise TypeError(f"boosted trees were not read as a forest: {form}")
    return form
