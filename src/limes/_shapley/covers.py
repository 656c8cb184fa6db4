r"""Contributions under the law of covers: what trees say of missing columns by their own training rows.

At a split whose column is not known, both children count, each with its part of the training rows that came
to the split (its cover):

    v(S) = Σ_leaves value · ∏_j (1[ξ_j agrees] if j ∈ S, else ∏ of the parts at the splits of j on the path).

It is a product over the columns of a path, as under a law of independent columns, but the probability of an
interval is the leaf's own: φ comes out of the pass of ``kernels/forest_contributions.h`` all the same. No
background is needed. It is no law of rows: columns that depend on each other stand for each other by the
order of the splits.
This is `shap.TreeExplainer(model)` without data, and ``pred_contribs`` of boosting libraries.

Lundberg, Erion & Lee 2018, "Consistent individualized feature attribution for tree ensembles", algorithm 2.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from limes._arrays import Floats
from limes._expectations.forest import ForestExpectation
from limes._shapley.exact import RowContributions, combined
from limes.exceptions import InputError
from limes.models.forms._base import Combination, Form
from limes.models.forms._linked import Linked, Softmax
from limes.models.forms._trees import Forest

# Seconds that a split of one row takes for pairs, measured
_OF_ONE_PAIRED = 1e-7
PROBABILITIES = (
    "law='covers' explains sums of trees, and these probabilities are a function of one: pass "
    "output='margin' (log odds); or a background and another law, under which probabilities have "
    "contributions"
)


class Covers:
    """The law of covers of one form: a forest, or a sum of forests."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._parts = [ForestExpectation(part) for part in _forests(form)]

    def __getstate__(self) -> dict[str, Form]:
        return {"_form": self._form}

    def __setstate__(self, state: dict[str, Form]) -> None:
        self.__init__(state["_form"])  # type: ignore[misc]

    @property
    def base(self) -> Floats:
        """Return what the trees say of a row of which nothing is known, (k,)."""
        base: Floats = self.contributions(np.zeros((1, self._parts[0].columns))).base[0]
        return base

    def contributions(self, x: Floats) -> RowContributions:
        """Contributions at rows (n, d)."""
        parts = []
        for expectation in self._parts:
            base, sums = expectation.contributions_by_covers(x)
            parts.append(RowContributions.exact(base, *(sums[:, which] for which in range(3))))
        return combined(self._form, parts) if isinstance(self._form, Combination) else parts[0]

    def rows_about_splits(self, count: int) -> Floats:
        """Some rows (count, d) whose values lie at the trees' thresholds, and beside them; 0 without any."""
        rng = np.random.default_rng(0)
        rows = np.zeros((count, self._parts[0].columns))
        for j, column in enumerate(rows.T):
            of_column = [forest.threshold[forest.feature == j] for forest in _forests(self._form)]
            thresholds = np.concatenate(of_column)
            thresholds = thresholds[np.isfinite(thresholds)]
            if thresholds.size:
                column[:] = rng.choice(thresholds, count) + rng.choice([-1e-3, 0.0, 1e-3], count)
        return rows

    @property
    def pair_seconds(self) -> float:
        """About the seconds that pairs at a row take: those of a split, measured, for each of them."""
        return _OF_ONE_PAIRED * sum(part.size for part in self._parts)

    def pairs(self, x: Floats) -> Floats:
        """Shapley interaction indices of pairs of columns at rows (n, d): (n, d, d, k), 0 on the diagonal."""
        parts = [expectation.pairs_by_covers(x) for expectation in self._parts]
        if not isinstance(self._form, Combination):
            return parts[0]
        return reduce(np.add, [w * part for w, part in zip(self._form.weights, parts, strict=True)])


def _forests(form: Form) -> list[Forest]:
    """The forests that a form is a sum of; an InputError if it is another one, or one has no covers."""
    if isinstance(form, Linked | Softmax):
        raise InputError(PROBABILITIES)
    parts = form.parts if isinstance(form, Combination) else [form]
    forests = [part for part in parts if isinstance(part, Forest)]
    if len(forests) < len(parts):
        other = next(part for part in parts if not isinstance(part, Forest))
        raise InputError(
            f"law='covers' explains trees by the training rows at their nodes, and the model was read as "
            f"{type(other).__name__}: pass a background and another law"
        )
    for forest in forests:
        if not forest.covers.size:
            raise InputError(
                f"law='covers' is not known: {forest.no_covers}; pass a background and another law"
            )
    return forests
