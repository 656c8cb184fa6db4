"""
Decision page
=============

A sheet about one decision: account, reasons, what would have changed it, and what the numbers do not say.

.. index:: decision page, letter, PDF, print
"""
# sphinx_gallery_thumbnail_path = 'images/decision.png'

# %%
# .. image:: /images/decision.png
#    :alt: A sheet: the decision, the account of the prediction, four reasons, the contrast, the caveat
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import limes

data = load_breast_cancer(as_frame=True)
X, labels = data.data.iloc[:, :10], data.target_names[data.target]
model = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X, labels)
row = X.iloc[[10]]
explanation = limes.TabularExplainer(model, X)(row)
contrast = limes.SparseExplainer(model, literals=limes.Literals.fit(X)).contrast(row, below=0.5)
sheet = limes.decision_page(explanation, decision="Referred to the committee.", contrast=contrast)

# %%
# With ``"sheet.html"`` as second argument it writes the file, and ``catalogue=`` has reasons in your own words:
# :doc:`/gallery/one/plot_7_adverse_action_reasons`.
