"""
Cohorts
=======

Mean contributions of groups of rows side by side.

.. index:: cohorts, groups, fairness, segments of customers
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X)
groups = ["60 or older" if age >= 60 else "younger" for age in X["age"]]
summary = limes.summary(explanation, by=groups)
summary.plot.cohorts(max_features=5)

# %%
# ``by="sex"`` names a column in place of labels.
summary
