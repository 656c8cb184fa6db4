"""
Beeswarm
========

The contributions of every row, one dot a row, one line a column; shap's summary plot.

.. index:: beeswarm, summary plot
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[:200])
explanation.plot.beeswarm(max_features=6)

# %%
# Colours show the rank of the row's own value in its column. The last line has each row's sum of all contributions that have no line. LIME's coefficients,
# of which a column has one for each of its bins, are drawn by name:
explanation.plot.beeswarm(of="coefficients", max_features=6)
