"""
How far error bars can be trusted
=================================

A sampled coefficient comes with a standard error. This page says what it covers, and checks it.
"""

# %%
# The promise
# -----------
#
# The exact coefficient lies within 1.96 standard errors of the sampled one for about 95 % of seeds. Here the exact one is known: a forest is explained
# exactly, and as a function that cannot be read.
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(20, random_state=0).fit(X, y)
row = X.iloc[[3]]
exact = limes.TabularExplainer(model, X)(row)


def black_box(rows):
    """Return the model's answers, without the model."""
    return model.predict(rows)


inside, count = 0, 0
for seed in range(16):
    sampled = limes.TabularExplainer(black_box, X, max_calls=1024, rng=seed)(row)
    inside += (
        abs(sampled.coefficients.values - exact.coefficients.values)
        <= 1.96 * sampled.coefficients.standard_errors
    ).sum()
    count += sampled.coefficients.values.size
print(f"{inside} of {count} intervals hold the exact coefficient, {inside / count:.0%}")

# %%
# More calls, smaller errors
# --------------------------
sampled = limes.TabularExplainer(black_box, X, max_calls=1024, rng=0)(row)
more = limes.TabularExplainer(black_box, X, max_calls=8192, rng=0)(row)
print(
    f"1,024 calls: {np.median(sampled.coefficients.standard_errors):.3f}   8,192 calls: {np.median(more.coefficients.standard_errors):.3f}"
)

# %%
# Pictures draw them as whiskers:
sampled.plot.bar()

# %%
# Limits of the promise
# ---------------------
#
# - They are about the *limit* of this model around this row. Whether the model is right is another question.
# - They are not about the background: other training data would give other bins and frequencies. With ``law="joint"`` they are about the population behind the background.
# - An exact explanation has standard errors of 0: no sampling, whatever R² is.
#
# How sure is the order?
# ----------------------
#
# ``reasons`` marks reasons whose place or sign could be different:
for reason in sampled.reasons(4):
    print(reason, "| certain:", reason.certain)

# %%
# How many calls would be enough
# ------------------------------
#
# ``tolerance="1%"`` asks until the largest standard error is below 1 % of the largest number: of contributions, with that of their base, and of LIME's
# coefficients. ``explanation.converged`` says whether ``max_calls`` sufficed for contributions, ``explanation.coefficients.converged`` for coefficients.
few = limes.TabularExplainer(black_box, X, tolerance="1%", max_calls=1024, rng=0)(row)
few.converged, few.warnings
