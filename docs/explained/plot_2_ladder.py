"""
How much a surrogate captures: R²
=================================

An explanation is a summary. R² says how much of the model it summarises, and the *local ladder* where the rest is.
"""

# %%
# R² under the weights
# --------------------
#
# For the model f and its surrogate g, ::
#
#     R² = 1 − E_w (f − g)² / Var_w f,
#
# the share of the model's variation *in the neighbourhood* that the coefficients capture. It has a standard error
# (``fidelity_errors``) where the variance of the model has no closed form, as of forests.
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
forest = RandomForestRegressor(100, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(forest, X)(X.iloc[:50])
print(f"median R² of the coefficients over 50 rows: {np.median(explanation.fidelity):.2f}")

# %%
# Why it is rarely 1
# ------------------
#
# A coefficient knows two states of a column: in the row's bin, or not. A column with four bins has four averages, and one number cannot say
# which of the other three is high. Even a linear model is not captured in full:
line = limes.TabularExplainer(LinearRegression().fit(X, y), X)(X.iloc[:50])
print(f"a linear model, quartile bins: {np.median(line.fidelity):.2f}")
slopes = limes.TabularExplainer(LinearRegression().fit(X, y), X, bins=None)(X.iloc[:50])
print(f"a linear model, slopes:        {np.median(slopes.fidelity):.2f}")

# %%
# The ladder
# ----------
#
# ====================== ================================================== ============================
# rung                   what it allows                                     where
# ====================== ================================================== ============================
# coefficients           one number a column                                ``fidelity``
# whole effects          one number a bin                                   ``additive_fidelity``, ``effects``
# pairs                  one number a pair of bins                          ``interactions()``
# ====================== ================================================== ============================
one = explanation[3]
pair_shares = [pair.share for pair in one.interactions(top=5)]
print(f"coefficients       {one.fidelity[0]:.2f}")
print(f"whole effects      {one.additive_fidelity[0]:.2f}")
print(f"five largest pairs {sum(pair_shares):+.2f}")

# %%
# The site is not built if the next sentence is not true of these numbers.
assert one.additive_fidelity[0] > 3 * one.fidelity[0]
assert sum(pair_shares) < 0.2

# %%
# Around this row the model is close to a sum of functions of single columns; coefficients lose what differs between bins. The whole effects show it:
_ = one.plot.effects(top=3)

# %%
# What remains is in pairs. The largest:
one.interactions(top=1)[0]

# %%
# Advice for a low R²
# -------------------
#
# - Whole effects capture much: show ``explanation.plot.effects()`` beside the coefficients. The HTML page does.
# - Other bins capture more: :doc:`plot_3_bins`.
# - Pairs matter: report the largest of them.
# - Nothing captures much: the model combines many columns here, and no additive summary is faithful. Say so; ``limes.diagnose`` does.
