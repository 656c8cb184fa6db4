"""
Differences of rows and of models
=================================

Two patients have different scores; a patient's score has moved since spring; a new model scores the same patient otherwise. All three questions have an
account that adds up: from one answer to the other, column by column. :doc:`/questions/why_did_the_score_change` has the shortest answer.

.. index:: compare two rows, difference, baseline, counterfactual baseline, model update, champion challenger, score change
"""

# %%
# Patients and two models
# -----------------------
#
# 442 diabetes patients, and how far their disease went in a year (scikit-learn ships the table). The model of last spring was fitted to the first 300 of
# them, and the present one to all.
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X.rename(columns={"s1": "cholesterol", "s3": "hdl", "s5": "log triglycerides", "s6": "glucose"})
spring = GradientBoostingRegressor(max_depth=3, random_state=0).fit(X[:300], y[:300])
present = GradientBoostingRegressor(max_depth=3, random_state=0).fit(X, y)

# %%
# Why has this patient a higher score than that one?
# --------------------------------------------------
#
# ``explainer.between(a, b)`` begins at the model's answer for ``b`` and ends at that for ``a``. A column in which the two agree contributes nothing, and
# what columns do together is shared among them: these are Shapley values whose baseline is the other row.
explainer = limes.TabularExplainer(present, X)
difference = explainer.between(X.iloc[[9]], X.iloc[[1]])
difference.plot.waterfall()

# %%
# ``alone`` is what a single change does to row 1, and ``last`` what it did when all others were made. Where the two are apart the column interacts with
# others, and one number cannot say all.
account = difference.contributions
numbers = zip(account.values[0], account.alone[0], account.last[0], strict=True)
for condition, (value, alone, last) in zip(difference.conditions[0], numbers, strict=True):
    if abs(value) > 3:
        print(f"{condition:40} {value:+6.1f}   alone {alone:+6.1f}, last {last:+6.1f}")

# %%
# Many rows against one
# ---------------------
#
# ``TabularExplainer(model, reference=row)`` has one row as its law, without a background: all explanations lead from there.
typical = X.median().rename("the typical patient").to_frame().T
print(limes.TabularExplainer(present, reference=typical)(X.iloc[[9]]))

# %%
# The new model says otherwise. About which column?
# -------------------------------------------------
#
# Contributions are linear in the model: under one law, the account of the difference is the difference of the accounts. The first bar is the change of
# what is usual, which concerns every patient.
change = limes.between_models(spring, explainer, X.iloc[[9]])
change.plot.waterfall(max_features=6)

# %%
# The patient has changed, and so has the model
# ---------------------------------------------
#
# In spring this patient had a lower weight and blood pressure, and the old model was asked. ``before=`` gives each column two lines: what its new value
# does under the new model, and what the new model makes of its old value. Both add up to the whole change.
earlier = X.iloc[[9]].assign(bmi=26.0, bp=78.0)
both = limes.between_models(spring, explainer, X.iloc[[9]], before=earlier)
both.plot.waterfall(max_features=8)

# %%
# The other order explains the changed values under the old model, and compares the models at the present values; ``values_under="both"`` takes half of
# each. They differ by what the new model does to these very changes.
for under in ("new", "old", "both"):
    its = limes.between_models(spring, explainer, X.iloc[[9]], before=earlier, values_under=under)
    values = its.contributions.values[0, : X.shape[1]].sum()
    print(f"under {under:4}: changed values {values:+.1f}, of {its.predictions[0]:+.1f}")

# %%
# The same of all rows at once, stored or drawn like any explanation: ``change.to_json()``, ``change.to_frame()``, ``limes.summary(change)``. Two explanations
# that were stored apart, of the same rows, are subtracted by ``new.minus(old)``. Nights of a long table are compared by :doc:`plot_5_monitoring`.
