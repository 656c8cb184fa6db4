"""
A model behind an API
=====================

Some models cannot be read, and are slow or billed by the call. limes then asks within a budget, and gives every contribution an error bar.

.. index:: black box, API, number of calls, cost, error bars
"""

# %%
# A model that cannot be read
# ---------------------------
#
# Two hidden layers behind a softmax: limes has no closed form for that. The counter stands for an invoice.
from sklearn.datasets import load_wine
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_wine(return_X_y=True, as_frame=True)
network = make_pipeline(StandardScaler(), MLPClassifier((20, 20), random_state=0, max_iter=2000)).fit(X, y)
calls = 0


def service(rows):
    """Probability of the third grape, and an invoice."""
    global calls
    calls += len(rows)
    return network.predict_proba(rows)[:, 2]


# %%
# An explanation with error bars
# ------------------------------
#
# ``tolerance`` is the largest standard error, here 5 % of the largest contribution. ``max_calls`` is the budget for all that one row asks.
import limes

explainer = limes.TabularExplainer(service, X, tolerance="5%", max_calls=2048, rng=0)
row = X.iloc[[140]]
explanation = explainer(row)
explanation.plot.bar()

# %%
print("converged:", explanation.converged)
print("answers that the row shares with all others:", int(explanation.shared_calls[0]))
print("calls for this row alone:", int(explanation.calls[0]))
print("calls for its contributions:", int(explanation.contributions.calls[0]))
print("calls in all:", calls)

# %%
# The price of more rows
# ----------------------
#
# Contributions ask for each row. ``explainer.contributions`` spends the whole budget on them, and draws no pool:
before = calls
more = explainer.contributions(X.iloc[:3])
print(f"contributions of 3 more rows: {calls - before} calls")

# %%
# LIME's coefficients come from the pool, which all rows share: with ``contributions=False`` fifty more rows call the model little more than for their own
# predictions. If one of them needs a smaller error, the pool grows for all rows, up to ``max_calls``.
shared = limes.TabularExplainer(service, X, tolerance="5%", max_calls=2048, rng=0, contributions=False)
shared(row)
before = calls
shared(X.iloc[:50])
print(f"coefficients of 50 more rows: {calls - before} calls")

# %%
# The reason, and the control
# ---------------------------
#
# ``reason`` says why the model is sampled. ``controls`` names the readable model whose known averages are subtracted, so that only the rest is noisy.
print(explanation.reason)
print("subtracted:", explanation.coefficients.controls[0])

# %%
# Are the error bars right?
# -------------------------
#
# The same row with twelve seeds. If the standard errors are right, the contributions spread over seeds by about as much as stated; twelve seeds give that spread
# to about a fifth.
import numpy as np

repeats = [
    limes.TabularExplainer(service, X, max_calls=1024, rng=seed).contributions(row) for seed in range(12)
]
values = np.array([one.contributions.values[0] for one in repeats])
stated = np.array([one.contributions.standard_errors[0] for one in repeats]).mean(axis=0)
observed = values.std(axis=0, ddof=1)
for name, s, o in zip(X.columns, stated, observed, strict=True):
    print(f"{name:30} stated {s:.4f}   observed {o:.4f}")
