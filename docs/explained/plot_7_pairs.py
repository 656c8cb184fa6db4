"""
Which columns act together
==========================

A contribution mixes two things: what a value adds by itself, and what it adds because other values are what they are. This page takes them apart, on
442 patients and boosted trees that predict the progress of their diabetes.

.. index:: pairs, interactions, shap_interaction_values
"""

# %%
# One patient
# -----------
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0).fit(X, y)
explainer = limes.TabularExplainer(model, X)
explanation = explainer.contributions(X.iloc[[5]])
explanation.plot.waterfall()

# %%
# Its pairs, one cell each. Below the diagonal is what two values add *together*: the prediction rises or falls by it only where both are as they are. On
# the diagonal is what a value adds besides. All cells add up to the difference between the prediction and what is usual.
explanation.plot.pairs()

# %%
# The young age of this patient raises the prediction, and the low ``bmi`` lowers it; together they lower it further. Contributions share such a cell in
# two halves, so that ``age`` looks less important in the account than its own cell.
#
# The numbers
# -----------
#
# ``contributions.pairs`` has half of each pair at both of its places, and the rest on the diagonal. Rows add up to the contributions:
account = explanation.contributions
pairs = account.pairs[0]
print(f"shape of pairs: {account.pairs.shape}")
print(f"rows less contributions, at most {np.abs(pairs.sum(axis=1) - account.values[0]).max():.0e}")
total = account.base_values[0] + pairs.sum()
print(f"base and all pairs: {total:.3f}, prediction {explanation.predictions[0]:.3f}")

# %%
# A pair's whole number, twice what stands at one place, is the *Shapley interaction index* (Grabisch & Roubens 1999). Where the contributions of a model are
# exact, so are its pairs: ``standard_errors`` and ``pair_errors`` are 0. Pairs of a function are estimated when they are read, from at most another
# ``max_calls`` calls a row, and ``pair_errors`` say how well. The check by the definition takes a third column away or adds it, for every set of
# others, and compares the answer with both values, with one, and with none. Three columns are enough to see it:
few = X[["age", "bmi", "s5"]]
small = GradientBoostingRegressor(random_state=0).fit(few, y)
one = limes.TabularExplainer(small, few.iloc[:40], law="joint", bandwidth=np.inf).contributions(few.iloc[[5]])


def value(*kept):
    """Return the mean prediction where these columns have the patient's values, others those of 40 patients."""
    rows = few.iloc[:40].copy()
    for column in kept:
        rows[column] = few.iloc[5][column]
    return small.predict(rows).mean()


without = value("age", "bmi") - value("age") - value("bmi") + value()
beside = value("age", "bmi", "s5") - value("age", "s5") - value("bmi", "s5") + value("s5")
print(f"by the definition {(without + beside) / 2:.9f}")
print(f"limes, both halves {2 * one.contributions.pairs[0, 0, 1]:.9f}")

# %%
# All patients
# ------------
#
# Over many rows a column's contribution is a cloud rather than a curve where it acts together with others. The picture is coloured by the column that it acts
# with most:
everybody = explainer.contributions(X)
everybody.plot.dependence("s5")

# %%
# The mean sizes of all pairs say which they are:
sizes = 2 * np.abs(everybody.contributions.pairs).mean(axis=0)
first, second = np.triu_indices(len(sizes), 1)
for at in np.argsort(-sizes[first, second])[:5]:
    i, j = first[at], second[at]
    print(f"{X.columns[i]:>4} and {X.columns[j]:<4} {sizes[i, j]:5.2f}")

# %%
# Limits of pairs
# ---------------
#
# - A pair of 0 does not mean that two columns never interact: it is about this row, on average over what the others may be.
# - Columns that are correlated need no pair, and columns with a pair need no correlation: it is about the model, not about the table.
# - ``explanation.interactions()`` asks another question: how much of the *variance around the row* a pair explains, in any of its cells.
# - A sum of functions of single columns, such as a linear model, has no pairs. A probability has them, as its curve bends.
#
# Elsewhere
# ---------
#
# ``explanation.to_frame("pairs")`` has one line a pair; ``explanation.to_shap(interactions=True)`` is what shap's own pictures take, as they take
# ``shap_interaction_values``, which exist for trees alone. Pages and reports name the pairs above a twentieth of the largest contribution.
print(explanation.to_frame("pairs").head())
