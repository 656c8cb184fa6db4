"""
Anchors
=======

The fewest facts under which the predicted class holds, whatever else a row of the table has.

.. index:: anchors, rules that hold, decision rule, sufficient conditions
"""

# %%
from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

import limes

X, y = load_wine(return_X_y=True, as_frame=True)
X = X.rename(columns={"od280/od315_of_diluted_wines": "od_ratio"})
grape = y.map({0: "another grape", 1: "another grape", 2: "third grape"})
model = RandomForestClassifier(50, random_state=0).fit(X, grape)
literals = limes.Literals.fit(X, encoding="thresholds")
explainer = limes.SparseExplainer(
    model, literals=literals, law="background", k="smallest", objective="class", error=0.05, rng=0
)
explanation = explainer(X.iloc[[160]])
certificate = explanation.certificate
certificate

# %%
# The law is that of anchors: neighbours are rows of the table; columns of the facts that a row lacks take values of their bins, and all others stay. The bound is
# of fresh neighbours. ``certificate.agreement`` is another number: the share of the wines that have the facts as they are, and of which the class is the same.
certificate.bounds["class"], certificate.coverage, certificate.agreement

# %%
# The model's answers for the wines of the table, with the facts and without them:
holds = X.eval(" and ".join(f"({fact})" for fact in certificate.facts)).to_numpy()
answers = model.predict_proba(X)[:, 1]

_, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.hist(
    [answers[holds], answers[~holds]],
    bins=20,
    stacked=True,
    label=["wines with the facts", "all other wines"],
)
ax.axvline(0.5, color="grey", linestyle=":")
ax.set_xlabel("probability of the third grape")
ax.set_ylabel("wines")
_ = ax.legend()

# %%
# ``law="marginals"`` draws every column on its own; the default law stays near the row, whose neighbours keep 73 % of the other columns, and needs fewer facts. The
# certificate says which one it is about: "neighbours are rows of the table".
