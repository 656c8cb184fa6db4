"""
SHAP values for a pipeline with one-hot columns
===============================================

A pipeline encodes a column as dummies, and explainers of its last step then give a number for each dummy, of columns that are not in the table. limes reads the
pipeline as a whole: one number for each column that you pass to it. It needs ``pip install '.[pandas]'`` from a checkout.

.. index:: one-hot encoding, Pipeline, ColumnTransformer, dummies, get_dummies, categorical columns, SHAP values
"""

# %%
# The answer
# ----------
#
# Replace ``homes`` and ``model`` by your table and your fitted pipeline. The explainer takes the table before the encoding.
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import limes

rng = np.random.default_rng(0)
homes = pd.DataFrame(
    {
        "district": rng.choice(["harbour", "centre", "hill", "mill"], 2000),
        "area": rng.uniform(30, 150, 2000).round(),
        "built": rng.integers(1900, 2020, 2000),
    }
)
extra = homes["district"].map({"harbour": 2.5, "centre": 4.0, "hill": 1.0, "mill": 0.0})
rent = (8 + extra) * homes["area"] + rng.normal(0, 40, 2000)
encoder = make_column_transformer((OneHotEncoder(), ["district"]), remainder="passthrough")
model = make_pipeline(encoder, RandomForestRegressor(50, min_samples_leaf=5, random_state=0)).fit(homes, rent)

row = homes.iloc[[0]]
as_shap = {"law": "joint", "bandwidth": np.inf}
explanation = limes.TabularExplainer(model, homes, **as_shap)(row)
print(explanation)

# %%
# How to read it
# --------------
#
# The contributions lead from the average over all rows of the table to this prediction, and ``district`` has one of them, with the value that the row has.
# With ``law="joint", bandwidth=np.inf`` these are the interventional SHAP values against the whole table; *exact* means that the pipeline was read, and not
# sampled. Without the two options columns are drawn around the row: :doc:`/two-questions` says when that is the better question.
#
# The same values as arrays. ``explanation.to_shap()`` hands them to shap's plots:
print(explanation.contributions.values.round(2), explanation.contributions.base_values.round(2))

# %%
# Dummies in the table itself
# ---------------------------
#
# A table that ``pd.get_dummies`` has encoded has no pipeline to read. Each dummy would be drawn by itself. A warning names such columns, also where
# ``drop_first=True`` left one out or values were missing, and the ``groups=`` that makes one column of them again. The number is that of the pipeline, but for
# another forest:
wide = pd.get_dummies(homes, columns=["district"], dtype=float)
forest = RandomForestRegressor(50, min_samples_leaf=5, random_state=0).fit(wide, rent)
groups = {"district": [name for name in wide if name.startswith("district_")]}
print(limes.TabularExplainer(forest, wide, groups=groups, **as_shap)(wide.iloc[[0]]))

# %%
# If it goes wrong
# ----------------
#
# - *Arrays have a last axis of two*: the model is a classifier, and all classes are there. ``output="yes"``, the label of one, leaves that one.
# - *The explanation is "estimated"*: ``explanation.reason`` names the step that is not read, such as a function of yours. A step that changes a column by itself,
#   like scalers and imputers, is read; :doc:`/exact` has the list. The probability of a linear model is estimated under the joint law: leave the law out,
#   and it is exact.
# - *An error says that columns are missing*: pass the table as it is before the pipeline, with all its columns.
# - *Numbers are codes of categories*: an encoder of the pipeline says so; else pass ``categorical=["class"]``.
# - *Old code calls shap*: ``from limes.compat import shap`` has its names, and :doc:`/from-shap` every difference.
#
# Next
# ----
#
# :doc:`/explained/plot_8_groups` has correlated columns as groups, and how a group's number is shared among its columns. A boosted model:
# :doc:`explain_an_xgboost_prediction`.
