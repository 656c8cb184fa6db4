"""
One row
=======

Bars, the waterfall, and coefficients at other bandwidths.
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[[3]])

# %%
# ``plot.bar``: the largest coefficients
# --------------------------------------
#
# Red raises the prediction, blue lowers it. Sampled rows have whiskers.
explanation.plot.bar()

# %%
# ``plot.waterfall``: how they add up
# -----------------------------------
#
# From the intercept to the surrogate's prediction, and the part of the model's prediction that the surrogate misses.
explanation.plot.waterfall(names={"s5": "triglycerides (log)"}, unit="points")

# %%
# ``plot.bandwidth``: other neighbourhoods
# ----------------------------------------
explanation.plot.bandwidth()

# %%
# The table in a terminal
# -----------------------
print(explanation)

# %%
# The card in a notebook, and the page of ``to_html``
# ---------------------------------------------------
explanation
