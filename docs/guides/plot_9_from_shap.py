"""
Migrating from shap
===================

Contributions of limes are Shapley values, as shap's are. This page shows where the two differ, which call replaces which, and how shap's own plots draw them.

.. index:: shap, SHAP, TreeExplainer, KernelExplainer, migration
"""

# %%
# The same model, both answers
# ----------------------------
import warnings

import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import shap

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(100, random_state=0).fit(X, y)
row = X.iloc[[3]]

explanation = limes.TabularExplainer(model, X)(row)
shapley = shap.TreeExplainer(model)(row)
side_by_side = pd.DataFrame(
    {
        "coefficient": explanation.coefficients.values[0],
        "contribution": explanation.contributions.values[0],
        "shap": shapley.values[0],
    },
    index=X.columns,
)
side_by_side.round(2)

# %%
# Meaning of the numbers
# ----------------------
#
# - A **contribution** (a Shapley value) is a column's part of the difference between this prediction and what is usual, an average. shap's average is
#   over the training data; in that of limes rows like this one count more, as ``bandwidth=`` says. Both add up to the model's prediction.
# - A **coefficient** compares the model with and without a condition, around the row. With the intercept the coefficients add up to the
#   *surrogate's* prediction, and R² says how much of the model's variation around the row that surrogate captures.
account = explanation.contributions
print(f"prediction {explanation.predictions[0]:.1f}")
print(f"shap:  {shapley.base_values.item():.1f} on average, contributions {shapley.values.sum():+.1f}")
print(f"limes: {account.base_values[0]:.1f} is usual, contributions {account.values.sum():+.1f}")
print(
    f"LIME's surrogate: {explanation.coefficients.surrogate_predictions[0]:.1f}, R² {explanation.fidelity[0]:.2f}"
)

# %%
# A model that cannot be read is sampled: ``account.standard_errors`` and ``account.calls`` say how well its contributions are known, and at what cost.
# Use contributions to account for one prediction, and coefficients to state what a condition changes around a row: :doc:`/two-questions`.
#
# The same question
# -----------------
#
# ``shap.TreeExplainer(model, background)`` averages over the rows of a background. limes does so with ``law="joint"`` and an infinite bandwidth. With ten
# columns the definition itself can be computed, over all 1,024 subsets of columns that keep the row's values:
from math import comb

import numpy as np

background = X.iloc[:100]
of_limes = limes.TabularExplainer(model, background, law="joint", bandwidth=np.inf)(row)
of_shap = shap.TreeExplainer(model, background)(row)

d = X.shape[1]
kept = (np.arange(2**d)[:, None] >> np.arange(d)) % 2 == 1
rows = np.where(kept[:, None, :], row.to_numpy(), background.to_numpy())
worth = model.predict(pd.DataFrame(rows.reshape(-1, d), columns=X.columns)).reshape(2**d, -1).mean(axis=1)
definition = []
for j in range(d):
    without = np.flatnonzero(~kept[:, j])
    shares = [1 / (d * comb(d - 1, size)) for size in kept[without].sum(axis=1)]
    definition.append(shares @ (worth[without + 2**j] - worth[without]))
numbers = {"limes": of_limes.contributions.values[0], "shap": of_shap.values[0]}
{name: float(abs(values - definition).max()) for name, values in numbers.items()}

# %%
# shap's values miss the definition here, and their sum misses the prediction by as much: where the two libraries differ, enumerate. And of a longer
# background shap keeps 100 rows: :doc:`/explained/plot_6_background`.
#
# Names
# -----
#
# ==================================== ==================================================
# shap                                 limes
# ==================================== ==================================================
# ``shap.TreeExplainer(model)``        ``limes.TabularExplainer(model, law="covers")``
# ``shap.TreeExplainer(model, X)``     ``limes.TabularExplainer(model, X, law="joint", bandwidth=np.inf)``
# ``shap.KernelExplainer(f, X)``       the same, of any function; sampled, with standard errors
# ``shap_values.values``               ``explanation.contributions.values``
# ``shap_values.base_values``          ``explanation.contributions.base_values``
# ``shap.plots.bar``                   ``explanation.plot.bar()``
# ``shap.plots.beeswarm``              ``explanation.plot.beeswarm()``
# ``shap.plots.waterfall``             ``explanation.plot.waterfall(row)``
# ``shap.plots.force``, ``.decision``  none; shap's own, through ``to_shap(base="common")``
# ``shap.plots.scatter``               ``explanation.plot.dependence("bmi")``
# ``shap.plots.heatmap``               ``explanation.plot.heatmap()``
# ``shap.plots.text``                  ``explanation.plot.text()``
# ``shap.maskers``                     ``law=``, ``fill=``, ``hide=``, ``mask=``
# ==================================== ==================================================
#
# Old code can keep shap's names: ``from limes.compat import shap`` has them, and :doc:`/from-shap` lists every difference.
#
# shap's own plots
# ----------------
#
# ``to_shap`` hands the contributions to shap's plots:
converted = explanation.to_shap()
print(converted.values.shape, converted.output_names)

# %%
# Measured alike
# --------------
#
# ``limes.evaluate`` measures explanations of either library on the same rows and draws:
task = limes.evaluate.Task.of(model, X, X.iloc[:8])
tree = shap.TreeExplainer(model)
explainer = limes.TabularExplainer(model, X)
limes.evaluate.compare(
    {"limes": lambda rows, seed: explainer(rows), "shap": lambda rows, seed: tree(rows)},
    task,
    progress=False,
)
