"""
A clinical model
================

A clinic scores tumours with gradient boosting. A score close to the threshold goes to a committee, which must see what the model looked at,
how far the explanation can be trusted, and what would have changed the outcome.

.. index:: clinical, medicine, committee
"""

# %%
# The model and its threshold
# ---------------------------
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

data = load_breast_cancer(as_frame=True)
labels = data.target_names[data.target]
X, X_new, y, _ = train_test_split(data.data.iloc[:, :10], labels, random_state=0)
model = HistGradientBoostingClassifier(max_iter=60, max_depth=3, random_state=0).fit(X, y)

p = model.predict_proba(X_new)[:, list(model.classes_).index("malignant")]
case = int(abs(p - 0.5).argmin())
print(f"case {X_new.index[case]}: probability {p[case]:.2f} of malignant")

# %%
# Which output to explain
# -----------------------
#
# Boosted trees add up on the scale of log odds, the *margin*. There limes reads them exactly. On the scale of probabilities
# they are sampled, with standard errors. The margin is positive where the second class is more probable than the
# first; the header of each explanation names the class.
import limes

explainer = limes.TabularExplainer(model, X, output="margin")
explanation = explainer(X_new.iloc[[case]])
explanation

# %%
# How to read the account
# -----------------------
#
# The picture starts at the model's average around the case and ends at its prediction: each bar is what one value
# contributes. These are Shapley values, here exact, and they add up:
account = explanation.contributions
total = account.base_values[0] + account.values[0].sum()
print(
    f"{account.base_values[0]:+.3f} {account.values[0].sum():+.3f} = {total:+.3f}, the model says {explanation.predictions[0]:+.3f}"
)

# %%
# A bar is one number, while columns act together. ``alone`` is what a value adds before all others, ``last`` what it adds
# after them: where the two differ, the column interacts.
import pandas as pd

pd.DataFrame(
    {"contribution": account.values[0], "alone": account.alone[0], "last": account.last[0]}, index=X.columns
).sort_values("contribution", key=abs, ascending=False).round(2).head(5)

# %%
# LIME's question
# ---------------
#
# LIME's coefficients answer another question (:doc:`/two-questions`): how much does the model change on average if a condition holds rather than
# not? Together they predict with the *surrogate*, which need not meet the model's answer. Where it
# lies on the other side of the threshold, or misses by more than all coefficients together, LIME's view warns, in print, on
# pages, in files and in diagnoses alike:
print(
    f"surrogate {explanation.coefficients.surrogate_predictions[0]:+.2f}, prediction {explanation.predictions[0]:+.2f}"
)
print(explanation.coefficients.row_warnings[0] or "no warning")

# %%
# Wider bins raise R², the share of the model's variation around the case that the surrogate captures, and yet their surrogate
# can lie on the wrong side of the threshold. ``suggest_design`` therefore looks at both, here at a hundred other tumours:
suggestion = limes.suggest_design(explainer, X.iloc[:100])
suggestion

# %%
# The design in use stays. Two bins would call the case malignant beyond doubt, which the model does not:
wide = limes.TabularExplainer(model, X, output="margin", bins=2)(X_new.iloc[[case]])
print(f"two bins: R² {wide.fidelity[0]:.2f}, surrogate {wide.coefficients.surrogate_predictions[0]:+.2f}")
print(*wide.warnings, sep="\n")

# %%
# Known failures
# --------------
#
# ``diagnose`` checks the explanation for all failures that :doc:`/findings` describes.
diagnosis = limes.diagnose(explanation, progress=False)
diagnosis

# %%
# The effect of one column
# ------------------------
#
# The committee asks "and if the area had been smaller?". The whole effect answers for every bin of the column. It is an average
# over a bin, where the contribution is that of the one value: near the end of a bin the two can have different signs.
explanation.plot.effect("mean area")

# %%
# The smallest change of the outcome
# ----------------------------------
#
# ``contrast`` looks for the fewest columns whose change takes the prediction across the threshold.
literals = limes.Literals.fit(X)
rules = limes.SparseExplainer(model, literals=literals, output="margin", k=3)
is_above = model.decision_function(X_new.iloc[[case]])[0] > 0
contrast = rules.contrast(X_new.iloc[[case]], **({"below": 0.0} if is_above else {"above": 0.0}))
contrast

# %%
# The committee's sheet
# ---------------------
#
# Three files, which need neither a network nor limes: the sheet, the explanation and its diagnosis. :doc:`plot_1_credit` puts reasons
# into an organisation's own sentences and files every digit.
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
limes.decision_page(
    explanation, folder / "sheet.html", decision="Referred to the committee.", contrast=contrast
)
explanation.to_html(folder / "case.html")
diagnosis.to_html(folder / "diagnosis.html")
for file in sorted(folder.iterdir()):
    print(f"{file.name:16} {file.stat().st_size / 1000:5.0f} kB")
