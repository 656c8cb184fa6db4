"""
Counterfactual (contrast)
=========================

The fewest columns whose change takes the prediction across a threshold, with a proof that fewer do not suffice.

.. index:: counterfactual, contrast, what would have to change, recourse
"""

# %%
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import limes

data = load_breast_cancer(as_frame=True)
X, labels = data.data.iloc[:, :10], data.target_names[data.target]
model = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X, labels)
row = X.iloc[[10]]
contrast = limes.SparseExplainer(model, literals=limes.Literals.fit(X)).contrast(row, below=0.5)
contrast

# %%
# ``contrast.proved`` is True where bounds of the model show that fewer columns are not enough: of forests and sums, and of those behind a link, as boosted probabilities. The model's answer as the column moves:
(change,) = contrast.changes
values = np.linspace(500, 1000, 200)
moved = pd.concat([row] * len(values)).assign(**{change.feature: values})

_, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(values, model.predict_proba(moved)[:, 1], color="grey")
ax.axhline(0.5, color="black", linestyle=":")
ax.plot(change.value, contrast.prediction, "o", color="#c8423c", markersize=9, label="as it is")
ax.plot(change.new_value, contrast.new_prediction, "o", color="#3b6fb6", markersize=9, label="changed")
ax.set_xlabel(change.feature)
ax.set_ylabel("probability of malignant")
_ = ax.legend()

# %%
# All other columns stay as they are, so that the changed row need not be a plausible one. ``fixed=`` names columns that must not change, ``minimize="cost"`` asks for
# the cheapest change in the place of the fewest columns, and ``contrasts`` for several: :doc:`/guides/plot_12_certain`.
