"""
Calibration of error bars
=========================

Do 95 % intervals contain the true contribution in 95 % of cases? Sampled explanations against the exact one.

.. index:: calibration, coverage, confidence interval
"""

# %%
# The forest can be read, so its true contributions are known. The same forest behind a function cannot: it is sampled, with many seeds.
import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(20, random_state=0).fit(X, y)
row = X.iloc[[3]]
exact = limes.TabularExplainer(model, X).contributions(row).contributions

errors = []  # in standard errors
for seed in range(40):
    explainer = limes.TabularExplainer(lambda rows: model.predict(rows), X, max_calls=256, rng=seed)
    sampled = explainer.contributions(row).contributions
    errors.append((sampled.values - exact.values) / sampled.standard_errors)
errors = np.abs(errors).ravel()

# %%
# On the diagonal an interval covers as often as it says, above it more often.
levels = np.linspace(0.05, 0.99, 40)
covered = [(errors <= norm.ppf((1 + level) / 2)).mean() for level in levels]
_, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
ax.plot([0, 1], [0, 1], color="grey", linestyle=":", label="stated")
ax.plot(levels, covered, label=f"observed, {len(errors)} intervals")
ax.set_xlabel("confidence of the interval")
ax.set_ylabel("share that contains the true contribution")
_ = ax.legend()

# %%
print(f"95 % intervals cover {(errors <= 1.96).mean():.1%}")
