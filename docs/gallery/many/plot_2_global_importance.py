"""
Global importance
=================

Which columns matter in a whole table: the mean size of their contributions.

.. index:: global importance, feature importance, mean absolute SHAP value
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[:200])
explanation.plot.bar(max_features=6)

# %%
# Grey lines reach from the 10 % to the 90 % quantile over rows. ``limes.summary`` has the numbers, and picks rows that together show the leading columns:
limes.summary(explanation)
