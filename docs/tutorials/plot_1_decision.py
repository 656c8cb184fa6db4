"""
A decision: from the model to the committee's page
==================================================

A clinic scores tumours with gradient boosting. A score close to the threshold goes to a committee, which must see what
the model looked at, how far the explanation can be trusted, and what would have changed the outcome. Credit decisions
are filed in the same way; this one uses a table that scikit-learn ships.
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
# Is a linear surrogate enough here?
# ----------------------------------
#
# R² is the share of the model's local variation that the ten coefficients capture. The *local ladder* adds what they
# leave out: whole effects of columns (every bin instead of one), then pairs.
print(f"coefficients            R² = {explanation.fidelity[0]:.2f}")
print(f"whole effects           R² = {explanation.additive_fidelity[0]:.2f}")
for pair in explanation.interactions(top=2):
    print(f"{' and '.join(pair.features):25} {pair.share:+.3f}")

# %%
# Bins change what a coefficient compares. ``suggest_design`` measures bins, slopes and bandwidths on common draws:
suggestion = limes.suggest_design(explainer, X_new.iloc[[case]])
suggestion

# %%
# Quartiles capture little of this model. Slopes capture most; two bins capture nearly as much, and a committee can read their
# conditions. From here on the explanation has two bins a column:
explainer = limes.TabularExplainer(model, X, output="margin", bins=2)
explanation = explainer(X_new.iloc[[case]])
assert explanation.fidelity[0] > 0.5
explanation

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
# A committee asks "and if the area had been smaller?". The whole effect answers for every bin of the column:
top = explanation.top(1).feature_names[0]
explanation.plot.effect(top)

# %%
# Reasons in the organisation's own words
# ---------------------------------------
#
# A catalogue turns conditions into sentences. ``{value}`` is the row's value; a pair has one sentence for columns that raise the
# score and one for columns that lower it. ``certain`` is False where the order of two reasons could be different.
catalogue = {
    "mean concave points": "The outline has concave points ({value}).",
    "mean area": "The area of the nuclei is {value}.",
    "mean texture": ("The texture is coarse ({value}).", "The texture is fine ({value})."),
}
for reason in explanation.reasons(4, catalogue):
    print("-", reason)

# %%
# What would have changed the outcome
# -----------------------------------
#
# ``contrast`` looks for the fewest columns whose change takes the prediction across the threshold.
literals = limes.Literals.fit(X)
rules = limes.SparseExplainer(model, literals=literals, output="margin", k=3)
is_above = model.decision_function(X_new.iloc[[case]])[0] > 0
rules.contrast(X_new.iloc[[case]], **({"below": 0.0} if is_above else {"above": 0.0}))

# %%
# The page
# --------
#
# Two files, which need neither a network nor limes: the explanation and its diagnosis. JSON keeps every digit for the archive.
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
explanation.to_html(folder / "case.html")
diagnosis.to_html(folder / "diagnosis.html")
explanation.to_json(folder / "case.json")
for file in sorted(folder.iterdir()):
    print(f"{file.name:16} {file.stat().st_size / 1000:5.0f} kB")

# %%
# The archive gives back the same numbers, without the model:
again = limes.Explanation.from_json(folder / "case.json")
assert (again.values == explanation.values).all()
again.provenance["bandwidth"], again.provenance["bins"]
