"""The ``lime`` package, run again and again, against what limes computes without sampling.

``lime`` is unbiased for the ridge fit of its finite sample, so the mean of R independent runs must agree with
``limes.surrogates.ridge`` up to R^(-1/2) of one run's noise. That noise is estimated from the same R runs, which
makes the ratio Student's t; a score here is the normal deviate that is as improbable, so that |score| < 4 has the
usual meaning (6e-5 a coefficient) whatever R is. Seeds are fixed: a test that passes keeps passing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import oracle
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge

import limes
from limes.designs import ProductFamily
from limes.designs.atoms import Atoms
from limes.designs.columns import categorical, marginals_from_bins
from limes.designs.weights import named_weights
from limes.expectations.exact import ExactExpectation
from limes.surrogates import ridge

lime_tabular = pytest.importorskip("lime.lime_tabular")

SAMPLES = 50_000
TOO_FAR = 4.0
# lime adds 1e-11 to the standard deviation of every bin
LIME_SLACK = 1e-11
# what that slack may change in a coefficient, relative to the largest
SAME_LAW = 1e-7

# -- data ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A table, a model of it, and the one number that is explained."""

    X: np.ndarray
    model: object
    predict: object
    output: str | None = None
    categories: tuple[int, ...] = ()

    def form(self):
        return limes.models.read(self.model, self.output)

    def ours(self, **options):
        categories = list(self.categories) or None
        return limes.TabularExplainer(
            self.model, self.X, output=self.output, categorical=categories, method="exact", **options
        )

    def lime(self, **options):
        """Margins are given to ``lime`` as a regression, all features kept: one ridge fit on all of them."""
        return lime_tabular.LimeTabularExplainer(
            self.X,
            mode="regression",
            categorical_features=list(self.categories),
            feature_selection="none",
            random_state=0,
            **options,
        )


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(X, y)
    return Case(X, model, model.predict)


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X, y)
    return Case(X, model, model.decision_function, output="margin")


def mixed(tied):
    """Six rows in ten have the first column at its least value, ``tied``; the third holds four levels.

    All numbers are multiples of 1/64, so that thresholds half-way between are float32 numbers.
    """
    rng = np.random.default_rng(5)
    n = 400
    x = rng.normal(size=(n, 2))
    excess = np.where(rng.random(n) < 0.6, 0.0, rng.exponential(2.0, n) + 0.5)
    level = rng.choice(4, size=n, p=[0.5, 0.25, 0.15, 0.1])
    X = np.column_stack([tied + excess, x[:, 0], level, 3.0 * x[:, 1]])
    X = np.round(X * 64) / 64
    y = 2.0 * (excess > 0) * (x[:, 0] > 0) + excess + x[:, 0] * (level == 1) + (level == 3) - x[:, 1]
    model = GradientBoostingRegressor(n_estimators=12, max_depth=3, random_state=0).fit(X, y)
    return Case(X, model, model.predict, categories=(2,))


TABLES = {
    "diabetes": diabetes,
    "breast cancer": breast_cancer,
    "ties and categories": lambda: mixed(7.0),
}

# -- lime, often -----------------------------------------------------------------------------------------------


def lime_runs(lime, row, predict, *, runs, samples=SAMPLES, regressor=None):
    """Coefficients of independent runs, (runs, d): one stream of random numbers, never reset."""
    found = np.empty((runs, row.size))
    for coef in found:
        explanation = lime.explain_instance(
            row, predict, num_features=row.size, num_samples=samples, model_regressor=regressor
        )
        # label 1: what lime lists under label 0 is negated in a regression
        for j, value in explanation.local_exp[1]:
            coef[j] = value
    return found


def scores(runs, expected):
    """How far the mean of the runs lies from the expected coefficients, in normal deviates, (d,)."""
    count = len(runs)
    t = (runs.mean(axis=0) - expected) / (runs.std(axis=0, ddof=1) / np.sqrt(count))
    return np.sign(t) * stats.norm.isf(stats.t.sf(np.abs(t), count - 1))


# -- limes, from lime's own statistics -------------------------------------------------------------------------


def edges_of(lime, j):
    return np.array([*lime.discretizer.mins[j], lime.discretizer.maxs[j][-1]])


def frequencies_of(lime, j):
    """One number a bin: lime lists only the bins that hold training rows."""
    found = np.zeros(len(lime.discretizer.means[j]))
    found[np.asarray(lime.feature_values[j], dtype=int)] = lime.feature_frequencies[j]
    return found


def family_of(lime, case, *, bandwidth=None, zero_width_at_zero=False):
    """The designs that ``lime`` has learnt, made from its numbers; optionally with its zero-width-bin error."""
    marginals = []
    for j in range(case.X.shape[1]):
        if j in case.categories:
            marginals.append(categorical(case.X[:, j]))
            continue
        edges = edges_of(lime, j)
        (law,) = marginals_from_bins(
            [edges], [lime.discretizer.means[j]], [lime.discretizer.stds[j]], frequencies=[frequencies_of(lime, j)]
        )
        if zero_width_at_zero and edges[0] == edges[1]:
            law = first_atom_moved(law, 0.0)
        marginals.append(law)
    bandwidth = 0.75 * np.sqrt(len(marginals)) if bandwidth is None else bandwidth
    return ProductFamily(tuple(marginals), named_weights("bins", bandwidth))


def first_atom_moved(law, place):
    """The law with the atom of its first bin elsewhere; the bin itself stays where it is."""
    (at,) = [i for i, measure in enumerate(law.measures) if isinstance(measure, Atoms)]
    value = law.measures[at].value.copy()
    value[0] = place
    return replace(law, measures=tuple(replace(m, value=value) if i == at else m for i, m in enumerate(law.measures)))


def expected(family, case, row, *, samples=SAMPLES, penalty=1.0):
    """The coefficients that ``lime`` has in expectation."""
    design = family.at(row)
    moments = ExactExpectation(case.form()).moments(design)
    return ridge(design, moments, case.predict(row[None])[0], penalty=penalty, samples=samples).coef
