"""
Diagnosis
=========

Known ways in which an explanation misleads, checked one by one, and what the model does in each bin.

.. index:: diagnosis, warnings, findings, fidelity
"""

# %%
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import limes

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
model = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X, y)
diagnosis = limes.diagnose(limes.TabularExplainer(model, X)(X.iloc[[20]]), progress=False)
diagnosis.plot.profile()

# %%
# All findings; :doc:`/findings` says what each means and what to do:
diagnosis
