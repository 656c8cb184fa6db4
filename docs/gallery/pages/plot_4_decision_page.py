"""
Decision page
=============

A sheet about one decision: account, reasons, what would have changed it, and what the numbers do not say.

.. index:: decision page, letter, PDF, print
"""

# %%
# .. image:: /images/decision.png
#    :alt: A sheet: the decision, the account of the prediction, four reasons, the contrast, the caveat
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import limes

data = load_breast_cancer(as_frame=True)
X, X_test, y, _ = train_test_split(data.data, data.target_names[data.target], random_state=0)
model = RandomForestClassifier(random_state=0).fit(X, y)
row = X_test.loc[[157]]
explanation = limes.TabularExplainer(model, X, output="malignant")(row)
facts = limes.SparseExplainer(model, literals=limes.Literals.fit(X), output="malignant")
contrast = facts.contrast(row, below=0.5)
sheet = limes.decision_page(explanation, title="Case 157", decision="Malignant", contrast=contrast)

# %%
# With ``"sheet.html"`` as second argument it writes the file, and ``catalogue=`` has reasons in your own words:
# :doc:`/gallery/one/plot_7_adverse_action_reasons`.

# sphinx_gallery_thumbnail_path = 'images/decision.png'
