"""
Drift
=====

Do predictions have the same reasons as last month? Mean contributions of two periods.

.. index:: drift, monitoring, data drift
"""

# %%
# scikit-learn ships no table with dates, so the second month is a made-up one: its patients have a body mass index that is 4 higher.
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
may, june = X.iloc[:200], X.iloc[200:400].assign(bmi=lambda rows: rows["bmi"] + 4)

explanation = limes.TabularExplainer(model, X)(pd.concat([may, june]))
periods = ["May"] * len(may) + ["June"] * len(june)
summary = limes.summary(explanation, by=periods)
summary.plot.cohorts(max_features=5)

# %%
# :doc:`/guides/plot_5_monitoring` compares nights of a scored table, and says which differences are more than chance.
