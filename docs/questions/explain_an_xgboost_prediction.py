"""
Explain an XGBoost prediction
=============================

Which columns made this prediction, and by how much? limes reads the trees of an ``XGBClassifier``, an ``XGBRegressor`` or a ``Booster``, and divides the
prediction among the columns of the row. It needs ``pip install '.[pandas]'`` from a checkout, and ``xgboost``.

.. index:: XGBoost, gradient boosting, LightGBM, CatBoost, pred_contribs, TreeExplainer, log odds, margin
"""

# %%
# The answer
# ----------
#
# Replace ``X``, ``y`` and ``model`` by your table and your fitted model; ``X`` is the training table, and ``row`` one line of any table with its columns.
from sklearn.datasets import load_breast_cancer
from xgboost import XGBClassifier

import limes

data = load_breast_cancer(as_frame=True)
X, y = data.data, (data.target_names[data.target] == "malignant").astype(int)
model = XGBClassifier(n_estimators=100, max_depth=4).fit(X, y)

row = X.iloc[[20]]
explanation = limes.TabularExplainer(model, X, output="margin")(row)
explanation.plot.waterfall(max_features=8)

# %%
# The same in a terminal:
print(explanation)

# %%
# How to read it
# --------------
#
# The bars lead from what is usual, the model's average around this row, to the prediction, and add up to it exactly. A red bar is a value that raises the
# prediction, a blue bar one that lowers it; these are Shapley values. The scale is that of log odds, the *margin*, on which trees add up: 0 is a probability
# of a half.
#
# Probabilities
# -------------
#
# Without ``output="margin"`` the probability is explained, in percentage points. It is no sum of trees, so that each number is estimated from the trees and
# has an error; the model is not called.
print(limes.TabularExplainer(model, X)(row))

# %%
# If it goes wrong
# ----------------
#
# - *"the order is not certain"*: two bars are equal within their errors. ``output="margin"`` has no errors; ``tolerance="1%"`` makes them smaller.
# - *The errors are large, and it says "a callable has no structure to read"*: pass ``model``, and not ``lambda rows: model.predict_proba(rows)``.
# - *Another library gives other numbers*: it asks another question. ``law="covers"`` answers that of ``pred_contribs=True`` and ``shap.TreeExplainer(model)``,
#   without a background:
import xgboost

covers = limes.TabularExplainer(model, law="covers", output="margin")(row)
rows = xgboost.DMatrix(row, enable_categorical=True)
booster = model.get_booster().predict(rows, pred_contribs=True)[0, :-1]
apart = abs(covers.contributions.values[0] - booster).max()
print(f"largest difference to pred_contribs: {apart:.0e}, in single precision")

# %%
# - *Columns are categories, or have missing values*: pass the frame that the model was fitted to, with ``enable_categorical=True`` and its dtypes as they are.
#   A missing value is shown as missing.
# - *There are several classes*: all are explained, and ``output=2`` chooses one.
#
# Next
# ----
#
# Many rows are one call, ``explainer(X)``, and ``plot.beeswarm()`` draws them. LightGBM, CatBoost and scikit-learn's boosting take the same call:
# :doc:`/exact`. Dummies in the table: :doc:`shap_values_for_a_pipeline_with_one_hot_columns`. The picture has other forms in the :doc:`/gallery/index`.
