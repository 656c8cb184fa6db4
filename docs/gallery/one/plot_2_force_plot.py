"""
Force plot
==========

limes has no force plot: shap's draws the contributions of limes, and the waterfall answers the same question.

.. index:: force plot, decision plot
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[[3]])
# sphinx_gallery_start_ignore
import warnings

import matplotlib as mpl

mpl.rcParams["savefig.bbox"] = "tight"
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import shap
# sphinx_gallery_end_ignore

# %%
# ``to_shap`` hands the contributions to shap, whose force plot stacks them on one line:
import shap

values = explanation.to_shap()[0]
shap.plots.force(values, matplotlib=True, show=False, figsize=(7, 3), contribution_threshold=0.25)

# %%
# Of many rows, shap's force and decision plots draw from one base, which ``base="common"`` gives them:
many = limes.TabularExplainer(model, X)(X.iloc[:40]).to_shap(base="common")
shap.plots.decision(float(many.base_values), many.values, many.feature_names, show=False)

# %%
# The waterfall has one line a column, so that every name and number can be read:
explanation.plot.waterfall(max_features=5)
