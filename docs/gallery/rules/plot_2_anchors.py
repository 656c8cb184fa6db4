"""
Anchors
=======

The fewest facts under which the predicted class holds, and the share of neighbours for which it does.

.. index:: anchors, rules that hold, decision rule, sufficient conditions
"""

# %%
from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

import limes

X, y = load_wine(return_X_y=True, as_frame=True)
grape = y.map({0: "another grape", 1: "another grape", 2: "third grape"})
model = RandomForestClassifier(50, random_state=0).fit(X, grape)
literals = limes.Literals.fit(X)
explainer = limes.SparseExplainer(model, literals=literals, k="smallest", objective="class", error=0.05)
explanation = explainer(X.iloc[[140]])
explanation.certificate

# %%
# The model's answers for the wines of the table, with the fact and without it:
(fact,) = explanation.certificate.facts
holds = literals.transform(X)[:, literals.names.index(fact)] == 1
answers = model.predict_proba(X)[:, 1]

_, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.hist([answers[holds], answers[~holds]], bins=20, stacked=True, label=[fact, "all other wines"])
ax.axvline(0.5, color="grey", linestyle=":")
ax.set_xlabel("probability of the third grape")
ax.set_ylabel("wines")
_ = ax.legend()

# %%
# The certificate is about perturbed rows around this one, not about the rows of the table.
