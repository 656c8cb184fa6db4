"""
Whole effects and pairs
=======================

What a column does in each of its bins, and what two columns do together.
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[[3]])

# %%
# ``plot.effects``: the largest side by side
# ------------------------------------------
_ = explanation.plot.effects(top=4)

# %%
# ``plot.effect``: one column
# ---------------------------
explanation.plot.effect("bmi", unit="points")

# %%
# ``effects``: as a card
# ----------------------
explanation.effects["bmi"]

# %%
# ``interactions``: pairs
# -----------------------
explanation.interactions(top=1)[0]
