"""
Comparing two explanations
==========================

The same row under two models, on the same scale.

.. index:: compare models, challenger model, model comparison
"""

# %%
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
models = {"forest": RandomForestRegressor(50, random_state=0).fit(X, y), "ridge": Ridge().fit(X, y)}

_, axes = plt.subplots(2, 1, figsize=(6.5, 6.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    limes.TabularExplainer(model, X)(X.iloc[[3]]).plot.waterfall(ax=ax, title=name, max_features=4)
left, right = zip(*(ax.get_xlim() for ax in axes), strict=True)
_ = plt.setp(axes, xlim=(min(left), max(right)))

# %%
# ``to_report("models.html", other=second)`` does the same for every row of a table, with both predictions to sort by: :doc:`/report`.
