"""
Bandwidth path
==============

The coefficients at every kernel width: a sign that changes nearby is not to be reported alone.

.. index:: bandwidth, kernel width, stability
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explainer = limes.TabularExplainer(model, X)
explainer(X.iloc[[3]]).plot.bandwidth(max_features=5)

# %%
# ``limes.suggest_design`` compares bandwidths and bins, by what they miss of the predictions:
print(limes.suggest_design(explainer, X.iloc[:10]))
