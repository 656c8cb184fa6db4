"""
Certificates of short rules
===========================

A short rule leaves things out. Its certificate states how much, with bounds that hold with a stated confidence, and whether a better rule of the same size exists.
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(30, min_samples_leaf=5, random_state=0).fit(X, y)
literals = limes.Literals.fit(X)
short = limes.SparseExplainer(model, literals=literals, k=3)(X.iloc[[3]])
certificate = short.certificate
print(short.rule())

# %%
# Three kinds of error
# --------------------
#
# **Fidelity**: the mean squared error of the rule in the neighbourhood. On the rows that the rule was fitted to it is too small, so it is measured again on fresh rows, and
# bounded from above.
print(
    f"fresh rows {certificate.fresh_fidelity:.0f}, at most {certificate.bounds['fidelity']:.0f}, R² {certificate.r2:.2f}"
)

# %%
# **Precision**: how far the model is from the rule's prediction, on average, where the rule's facts hold.
print(
    f"{certificate.precision:.2f} ± {certificate.precision_error:.2f}, at most {certificate.bounds['precision']:.2f}"
)

# %%
# A rule of least squares may leave out facts that matter for precision: of 0.6 x₀x₁ + 0.1 x₂ + 0.05 x₃ it takes x₂ and x₃. ``objective="precision"`` chooses the facts with the least
# precision error, the title problem of the 2025 paper. It searches all sets of k facts in one sample, and measures the best of them on fresh rows. The errors stated are
# of fresh rows. ``"class"`` does the same for the probability of another class.
holding = limes.SparseExplainer(model, literals=literals, k=3, objective="precision")(X.iloc[[3]]).certificate
print(holding.rule)
print(f"{holding.precision:.2f} ± {holding.precision_error:.2f}, at most {holding.bounds['precision']:.2f}")

# %%
# **Worst case**: the range of the model over *all* rows that satisfy the rule, whatever their other columns are. Bounds of a forest
# are quick and may be too wide; ``worst_case="exact"`` searches for rows at both ends.
exact = limes.SparseExplainer(model, literals=literals, k=3, worst_case="exact")(X.iloc[[3]]).certificate
print("bounds", certificate.worst_case, "attained:", certificate.worst_case_exact)
print("search", exact.worst_case, "attained:", exact.worst_case_exact)

# %%
# Longer rules
# ------------
#
# The bound on the error, against the number of facts:
import matplotlib.pyplot as plt

sizes = range(1, 8)
rules = [limes.SparseExplainer(model, literals=literals, k=k)(X.iloc[[3]]).certificate for k in sizes]
_, ax = plt.subplots()
ax.plot(sizes, [c.fresh_fidelity**0.5 for c in rules], "o-", label="on fresh rows")
ax.plot(sizes, [c.bounds["fidelity"] ** 0.5 for c in rules], "o--", label="bound at 95 %")
ax.set(xlabel="facts in the rule", ylabel="error (root mean square)", ylim=(0, None))
_ = ax.legend()

# %%
# Is it the best rule?
# --------------------
#
# ``proved`` says that no rule of this size has a smaller error, and ``optimum`` of which problem: the law itself, where the model is read, or the sample that was drawn.
certificate.proved, certificate.optimum

# %%
# A black box has no such proof under the law. Its certificate says how often a resampled fit chooses the same facts:
sampled = limes.SparseExplainer(
    lambda rows: model.predict(rows), literals=literals, k=3, scale="auto", rng=0
)(X.iloc[[3]]).certificate
print("proved:", sampled.proved, "| the same facts in", f"{sampled.stability:.0%}", "of resamples")
print("assumption:", sampled.assumption)
