"""
Why did the score change?
=========================

A case has another score than last month. Either its values have changed, or the model, or both. Each has an account that adds up to the change, column by
column. It needs ``pip install '.[pandas]'`` from a checkout.

.. index:: score change, score drift, compare predictions, new model version, before and after
"""

# %%
# The case has changed
# --------------------
#
# Replace ``X``, ``model``, ``before`` and ``now`` by your table, your model, and the case's row then and now.
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0).fit(X, y)
now = X.iloc[[9]]
before = now.assign(bmi=26.0, bp=78.0).rename(index={9: "9 in spring"})

explainer = limes.TabularExplainer(model, X)
change = explainer.between(now, before)
print(change)

# %%
# How to read it
# --------------
#
# The account begins at the score before and ends at the score now. A column whose value is the same has 0, and what columns do together is shared among
# them. *exact* means that both scores and all that lies between were read off the model, without sampling.
change.plot.waterfall(max_features=3)

# %%
# The model has changed
# ---------------------
#
# ``between_models`` takes the old model, the new explainer, and the row. The first line is the change of what is usual, which concerns all rows; with
# ``before=`` the values may have changed as well, and each column has a line for its values and a line for the model.
old = GradientBoostingRegressor(random_state=0).fit(X[:300], y[:300])
both = limes.between_models(old, explainer, now, before=before)
both.plot.waterfall(max_features=8)

# %%
# If it goes wrong
# ----------------
#
# - *A column has a small number, although it changed much*: it acts together with others. ``change.contributions.alone`` has what its change does by itself,
#   ``.last`` what it does after all others.
# - *Two columns have large numbers of opposite signs*: they move together, as a temperature and how it feels, a sum and its parts, or dummies.
#   ``TabularExplainer(model, X, groups={"temperature": ["temp", "feel_temp"]})`` makes one line of them.
# - *The score is a probability behind boosted trees*: pass ``output="margin"`` to explain log odds.
# - *The old model is lost, but its explanations were stored*: ``new.minus(old)`` subtracts two explanations of the same rows.
# - *The scores of a whole table have moved, and not that of a case*: :doc:`/guides/plot_5_monitoring`.
#
# Next
# ----
#
# :doc:`/guides/plot_10_why_did_it_change` has the order of values and model, many rows against one, and how such accounts are stored.
