"""
Dependence
==========

The contribution of a column against its value, one dot a row; shap's scatter plot.

.. index:: dependence plot, scatter plot
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[:200])
explanation.plot.dependence("bmi", color="s5")

# %%
# Colours are another column: where they separate, the two columns interact. ``of="coefficients"`` draws LIME's coefficients.
