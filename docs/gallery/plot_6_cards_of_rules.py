"""
Rules, certificates and contrasts
=================================

A short rule as a card, what is certified, and what would change the prediction.
"""

# %%
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

import limes

X, y = load_wine(return_X_y=True, as_frame=True)
model = RandomForestClassifier(50, random_state=0).fit(X, y == 2)
explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(X), k=3)
short = explainer(X.iloc[[140]])

# %%
# The rule
# --------
short

# %%
# The weights
# -----------
short.plot.bar()

# %%
# The certificate
# ---------------
short.certificate

# %%
# A contrast
# ----------
explainer.contrast(X.iloc[[140]], below=0.5)
