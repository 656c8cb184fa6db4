"""
The limit of LIME
=================

LIME draws perturbed rows around a row, weights them by their distance, and fits a linear model to the answers. Another seed draws other rows, and the
coefficients change. With more and more rows they converge, and limes computes where to.
"""

# %%
# From samples to the limit
# -------------------------
#
# The dots are the coefficients of lime, twelve seeds for each sample size. The line is the limit, which limes computes without any
# sample. (lime adds a small ridge penalty, which hardly shows at these sizes.)
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes
from limes.compat.lime.lime_tabular import LimeTabularExplainer

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(30, min_samples_leaf=5, random_state=0).fit(X, y)
row = X.iloc[[3]]
limit = limes.TabularExplainer(model, X)(row).top(1)
(name,) = limit.feature_names


def lime_coefficient(seed, samples):
    """Return the coefficient that lime prints for the leading column."""
    explainer = LimeTabularExplainer(
        X, feature_names=list(X), mode="regression", engine="lime", random_state=seed
    )
    pairs = explainer.explain_instance(X.iloc[3], model.predict, num_samples=samples).as_map()[1]
    return dict(pairs)[list(X).index(name)]


sizes = [100, 300, 1000, 3000]
drawn = np.array([[lime_coefficient(seed, size) for seed in range(12)] for size in sizes])

_, ax = plt.subplots()
ax.plot(np.repeat(sizes, drawn.shape[1]), drawn.ravel(), ".", color="tab:gray", label="lime, one dot a seed")
ax.axhline(limit.coefficients.values[0, 0], color="tab:red", label="the limit")
ax.set(xscale="log", xlabel="rows that lime draws", ylabel=f"coefficient of {limit.conditions[0][0]}")
_ = ax.legend()

# %%
# The spread over seeds, for each size:
dict(zip(sizes, drawn.std(axis=1).round(2).tolist(), strict=True))

# %%
# One column, in pictures
# -----------------------
#
# For a table the columns of perturbed rows are independent under the weights. The limit of a coefficient is therefore a difference of
# two averages of the model::
#
#     β_j = E_w[f | z_j = 1] − E_w[f | z_j = 0],
#
# where z_j = 1 says that column j stays in the row's bin, and w is the law of the perturbed rows times their weight,
# exp(−#changed columns / (2ν²)). For a model that can be read both averages are computed, not estimated. The plot
# shows the average of the model in each bin; the coefficient compares the dark bar with the average of the others.
limes.TabularExplainer(model, X)(row).plot.effect(name)

# %%
# The bandwidth, moving
# ---------------------
#
# The bandwidth ν decides how many columns change at once. A narrow neighbourhood changes one or two, a wide one changes them as the background does.
from matplotlib.animation import FuncAnimation

bandwidths = np.geomspace(0.4, 8, 24)
frames = [limes.TabularExplainer(model, X, bandwidth=nu)(row) for nu in bandwidths]
order = np.argsort(-np.abs(frames[-1].coefficients.values[0]))[:6]
reach = max(np.abs(frame.coefficients.values).max() for frame in frames)
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
bars = ax.barh([frames[0].conditions[0][j] for j in order], np.zeros(len(order)))
ax.set_xlim(-reach, reach)
ax.invert_yaxis()
ax.axvline(0, color="black", linewidth=0.8)


def draw(k):
    """Draw the coefficients at the k-th bandwidth."""
    for bar, value in zip(bars, frames[k].coefficients.values[0, order], strict=True):
        bar.set_width(value)
        bar.set_color("tab:red" if value > 0 else "tab:blue")
    ax.set_title(f"bandwidth {bandwidths[k]:.2f}, R² {frames[k].fidelity[0]:.2f}", fontsize=10)


animation = FuncAnimation(figure, draw, frames=len(frames), interval=150)

# %%
# The same as one picture: every coefficient as a curve of the bandwidth.
frames[12].plot.bandwidth()

# %%
# Texts and images
# ----------------
#
# There words or superpixels are removed, a uniformly drawn number of them, and the weight depends on that number alone. The same least
# squares has a limit of the same form, β = Σ⁻¹Γ, with the covariances of the kept features, and of the kept features with the model.
# Garreau and von Luxburg proved these limits for tables (:doc:`2020 </papers/garreau-2020>`, :doc:`2022 </papers/garreau-2022>`), Mardaoui and
# Garreau for :doc:`texts </papers/mardaoui-2021>`.
