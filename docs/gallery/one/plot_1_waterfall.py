"""
Waterfall
=========

How one prediction adds up: from what is usual to the prediction, one bar a column.

.. index:: waterfall, SHAP values, Shapley values, local feature importance
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[[3]])
explanation.plot.waterfall(max_features=6, names={"s5": "triglycerides (log)"}, unit="points")

# %%
# Red bars raise the prediction, blue bars lower it. Each bar is a contribution, a Shapley value. With ``ends=True`` a thin line below each bar reaches
# from what the value adds alone to what it adds last: where its ends are far apart, the column interacts with others.
explanation.plot.waterfall(max_features=6, ends=True)

# %%
# The same numbers: ``explanation.contributions``. :doc:`/two-questions` compares them with LIME's coefficients.
