"""
Choosing bins
=============

Bins decide what a coefficient compares. LIME's quartiles are the default. This page shows what the alternatives capture.
"""

# %%
# The choices
# -----------
#
# ======================= ==============================================================================
# ``bins=``               a coefficient is the difference between
# ======================= ==============================================================================
# ``"quartile"``          the row's quarter of the background, and the rest
# ``"decile"``            the row's tenth, and the rest
# ``2``                   the row's half, and the other half
# ``"entropy"``           the row's interval and the rest; intervals separate the classes of ``target=``
# a list of edges         your own intervals, such as a regulator's
# ``None``                no bins: the slope of the model in the column itself
# ``"auto"``              what ``limes.suggest_design`` chooses
# ======================= ==============================================================================
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0).fit(X, y)
row = X.iloc[[3]]

# %%
# One column, four ways
# ---------------------
figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
for ax, bins in zip(axes.flat, ["quartile", "decile", 2, None], strict=True):
    limes.TabularExplainer(model, X, bins=bins)(row).plot.effect("bmi", ax=ax, title=f"bins={bins!r}")

# %%
# How much each captures
# ----------------------
#
# Each design has another neighbourhood, so the R² of two designs cannot be compared. ``suggest_design`` compares all of them on *common* draws, and at
# the rows themselves: a high R² around a row is no use if the surrogate misses its prediction. Beside them stand the noise of the coefficients and the locality.
suggestion = limes.suggest_design(limes.TabularExplainer(model, X), X.iloc[:50])
print(suggestion)

# %%
# Take the winner's options as they are:
explainer = limes.TabularExplainer(model, X, **suggestion.options)
explainer(row)

# %%
# Codes of missing values
# -----------------------
#
# Tables of credit bureaus write -7, -8 or -9 where there is no record. As numbers these would be edges of bins, "-7 < months <= 3", and the law of the lowest bin would lie
# between codes. ``missing=`` makes the codes of a column one cell, "months is missing (-9, -8, -7)"; the model gets them as they are.
coded = X.assign(s6=X["s6"].where(X["s6"] > 80, -9))
model_of_codes = GradientBoostingRegressor(random_state=0).fit(coded, y)
explainer = limes.TabularExplainer(model_of_codes, coded, missing=[-9])
explainer(coded[coded["s6"] == -9].iloc[:1])

# %%
# Columns of few values
# ---------------------
#
# Edges that coincide are merged: a class from 1 to 3 may have a single bin with ``bins=2``. Its coefficient is then 0, and a warning says so. Declare such a column as a
# category, ``categorical=["class"]``, and each value is a bin.
classes = X.assign(s4=X["s4"].round().clip(3, 5).where(X["s4"] > 3, 5))
halves = limes.TabularExplainer(model, classes, bins=2, categorical=["s4"])
halves(classes.iloc[[3]])[:, "s4"].conditions

# %%
# Edges
# -----
#
# A value on an edge belongs to the lower bin, and a tiny step takes it to the next one, where the coefficient may differ. ``limes.diagnose`` reports rows that
# lie on an edge (:ref:`findings <finding-edge>`), and ``bins=None`` has no edges.
