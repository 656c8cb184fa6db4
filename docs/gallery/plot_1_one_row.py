"""
One row
=======

Bars, the account of the prediction, and coefficients at other bandwidths.
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
# ``plot.waterfall``: the account of the prediction
# -------------------------------------------------
#
# From the model's average around the row to its prediction, one bar a column. The bars are contributions, which are Shapley values around the row.
# A thin line reaches from what the value adds alone to what it adds last: where both ends are apart, the column interacts with others.
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
