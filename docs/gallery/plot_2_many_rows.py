"""
Many rows
=========

Mean sizes, the beeswarm, the heat map, and coefficients against values.
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[:200])

# %%
# ``plot.beeswarm``: one dot a row
# --------------------------------
explanation.plot.beeswarm()

# %%
# ``plot.bar``: mean sizes
# ------------------------
#
# Lines reach from the 10 % to the 90 % quantile over rows.
explanation.plot.bar()

# %%
# ``plot.heatmap``: rows by falling prediction
# --------------------------------------------
explanation.plot.heatmap()

# %%
# ``plot.dependence``: a coefficient against the value
# ----------------------------------------------------
explanation.plot.dependence("bmi", color="s5")

# %%
# ``limes.summary``: importance and cohorts
# -----------------------------------------
summary = limes.summary(explanation, cohorts="sex")
summary.plot.importance()

# %%
summary.plot.cohorts()

# %%
# ``limes.suggest_bandwidth``: locality against fidelity and stability
# --------------------------------------------------------------------
limes.suggest_bandwidth(limes.TabularExplainer(model, X), X.iloc[:10]).plot()
