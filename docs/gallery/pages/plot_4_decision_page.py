"""
Decision page
=============

A sheet about one decision: the reasons for it, what would have changed it, how the prediction came about, and what the numbers do not say.

.. index:: decision page, letter, PDF, print
"""

# %%
# .. image:: /images/decision.png
#    :alt: A sheet: the decision, four reasons for it, the contrast, the account of the prediction, the caveat
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
# Reasons are those for the outcome: values that moved the prediction to its side of the threshold, the contrast's or ``threshold=``. With
# ``"sheet.html"`` as second argument it writes the file, and ``catalogue=`` has reasons in your own words:
# :doc:`/gallery/one/plot_7_adverse_action_reasons`. ``limes decide`` writes it from files, and prints it to PDF: :doc:`/start/command_line`.

# sphinx_gallery_thumbnail_path = 'images/decision.png'
