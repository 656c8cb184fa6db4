"""
Adverse action reasons
======================

The main reasons for a decision, in the organisation's own sentences.

.. index:: adverse action, reason codes, reasons
"""

# %%
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

import limes

data = load_breast_cancer(as_frame=True)
X = data.data.iloc[:, :10]
labels = data.target_names[data.target]
model = HistGradientBoostingClassifier(max_iter=60, max_depth=3, random_state=0).fit(X, labels)
explanation = limes.TabularExplainer(model, X, output="margin")(X.iloc[[100]])

catalogue = {  # for a value that raises the score, and for one that lowers it
    "mean texture": ("Grey values vary much", "Grey values vary little"),
    "mean symmetry": ("Nuclei are not symmetric", "Nuclei are symmetric"),
    "mean smoothness": ("Outline is uneven", "Outline is smooth"),
}
reasons = explanation.reasons(3, catalogue, sign="+")
for reason in reasons:
    print("-", reason, "" if reason.certain else "(its place is not certain)")

# %%
# The same columns as bars, with their values:
names = {
    "mean texture": "Variation of grey values",
    "mean symmetry": "Asymmetry of nuclei",
    "mean smoothness": "Unevenness of the outline",
}
explanation.plot.bar(max_features=3, names=names)

# %%
# A sentence may contain ``{value}``. ``sign="+"`` keeps the reasons that raise the score. :doc:`/guides/plot_1_credit` writes such reasons on a letter.
