"""
Counterfactual (contrast)
=========================

The fewest columns whose change takes the prediction across a threshold, with a proof that fewer do not suffice.

.. index:: counterfactual, contrast, what would have to change, recourse
"""

# %%
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
# ``contrast.proved`` is True where bounds of the forest show that no change of fewer columns is enough. The row as it is, and with the changes:
changed = row.assign(**{change.feature: change.new_value for change in contrast.changes})
explainer = limes.TabularExplainer(model, X)
_, axes = plt.subplots(2, 1, figsize=(6.5, 6.6), layout="constrained")
for ax, rows, name in zip(axes, (row, changed), ("as it is", "changed"), strict=True):
    explainer(rows).plot.waterfall(ax=ax, title=name, max_features=4)
left, right = zip(*(ax.get_xlim() for ax in axes), strict=True)
_ = plt.setp(axes, xlim=(min(left), max(right)))

# %%
# All other columns stay as they are, so that the changed row need not be a plausible one.
