"""
Short rule with a certificate
=============================

A base and a few weights that add up to the prediction, and how far they can be wrong.

.. index:: sparse explanation, scorecard, certificate
"""

# %%
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

import limes

X, y = load_wine(return_X_y=True, as_frame=True)
model = RandomForestClassifier(50, random_state=0).fit(X, y == 2)
explanation = limes.SparseExplainer(model, literals=limes.Literals.fit(X), k=3)(X.iloc[[140]])
explanation.plot.bar()

# %%
print(explanation.rule())

# %%
explanation.certificate
