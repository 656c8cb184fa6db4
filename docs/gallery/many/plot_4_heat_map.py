"""
Heat map of rows
================

The contributions of all rows as colours, rows by falling prediction.

.. index:: heat map, heatmap
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[:200])
explanation.plot.heatmap(max_features=6)
