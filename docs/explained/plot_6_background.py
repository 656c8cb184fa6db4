"""
shap keeps 100 rows of your background
======================================

``shap.TreeExplainer(model, background)`` answers the question: how does this prediction differ from those of the background's rows? It answers it
for a random 100 of them. This page shows how to notice, and how far that is from the definition.

.. index:: shap, background, max_samples, interventional
"""

# %%
# The rows that are used
# ----------------------
import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import limes

X, y = load_diabetes(return_X_y=True)
model = GradientBoostingRegressor(random_state=0).fit(X, y)
of_shap = shap.TreeExplainer(model, X)
print(f"passed {len(X)} rows, shap uses {len(of_shap.data)}")

# %%
# The definition, by enumeration
# ------------------------------
#
# The value of a set of columns is the mean prediction when these have the row's values and all others those of a background row, over *all* rows of the
# background. With ten columns there are 1,024 sets: the definition can be computed as it stands.
row, d = X[3], X.shape[1]
sets = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
worth = np.array([model.predict(np.where(kept, row, X)).mean() for kept in sets])

size = sets.sum(axis=1)
exact = np.zeros(d)
for j in range(d):
    without = np.flatnonzero(~sets[:, j])
    # of d · C(d - 1, k) sets of k columns without column j
    count = np.bincount(size[without], minlength=d)[size[without]]
    exact[j] = ((worth[without + 2**j] - worth[without]) / (d * count)).sum()

# %%
# Beside the two libraries
# ------------------------
explainer = limes.TabularExplainer(model, X, law="joint", bandwidth=np.inf)
of_limes = explainer.contributions(row[None]).contributions
numbers = {"limes": of_limes.values[0], "shap": of_shap.shap_values(row[None])[0]}
print(f"largest value: {np.abs(exact).max():.1f}")
for name, values in numbers.items():
    print(f"{name}: at most {np.abs(values - exact).max():.1e} from the definition")
averages = worth[0], of_limes.base_values[0], np.ravel(of_shap.expected_value)[0]
print("average: enumeration {:.3f}, limes {:.3f}, shap {:.3f}".format(*averages))

# %%
# The random 100 rows are chosen anew by another seed, or another order of the table; the bars move by as much:
seeds = [
    shap.TreeExplainer(model, X[np.random.default_rng(seed).permutation(len(X))]).shap_values(row[None])[0]
    for seed in range(20)
]
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for values in seeds:
    ax.plot(values, np.arange(d), "o", color="0.7", markersize=4, zorder=1)
ax.plot([], [], "o", color="0.7", markersize=4, label="shap, 20 orders of the table")
ax.plot(exact, np.arange(d), "|", color="black", markersize=14, label="the definition")
ax.plot(numbers["limes"], np.arange(d), "x", color="tab:blue", label="limes")
ax.set_yticks(np.arange(d), [f"x{j}" for j in range(d)])
ax.invert_yaxis()
ax.set_xlabel("contribution")
ax.legend()

# %%
# All rows, in both libraries
# ---------------------------
#
# Pass ``shap.maskers.Independent(X, max_samples=len(X))`` in place of ``X``: shap then takes all rows, and a time that grows with them. limes takes all
# rows anyway. What the background says is computed once, so that a row costs about the same with 100 rows as with 100,000.
whole = shap.TreeExplainer(model, shap.maskers.Independent(X, max_samples=len(X))).shap_values(row[None])[0]
print(f"shap, all rows: at most {np.abs(whole - exact).max():.1e} from the definition")

# %%
# :doc:`/guides/plot_9_from_shap` has the other differences.
