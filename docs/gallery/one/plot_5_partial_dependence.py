"""
Partial dependence
==================

What a column does in each of its bins: the model's average around the row, less its average over all bins.

.. index:: partial dependence, PDP, ICE, ALE, whole effects
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[[3]])
explanation.plot.effect("bmi", unit="points")

# %%
# The coloured bar is the row's own bin. limes calls this the whole effect: partial dependence around one row. The usual partial dependence averages over the
# whole table; with ``bandwidth=np.inf`` so does this, with columns drawn independently. The four that explain most:
_ = explanation.plot.effects(top=4)

# %%
# The numbers are ``explanation.effects``:
explanation.effects["bmi"]
