"""
Interactions
============

The pairs of columns that matter most beyond their single effects.

.. index:: interaction, pairs of features
"""

# %%
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
pairs = limes.TabularExplainer(model, X)(X.iloc[[3]]).interactions(top=4)

_, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
ax.barh([" and ".join(pair.features) for pair in pairs], [100 * pair.share for pair in pairs])
ax.invert_yaxis()
_ = ax.set_xlabel("share of the model's variance around the row, %")

# %%
# What the leading pair does in each of its cells, beyond the two single effects:
pairs[0]
