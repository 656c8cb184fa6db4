"""
LIME gives another answer every time
====================================

lime draws random rows around yours and fits a line to them; another seed draws other rows, and other columns come first. limes computes what these
fits converge to: without sampling where it can read the model, and with error bars where it has to ask. It needs ``pip install '.[pandas]'`` from a checkout.

.. index:: LIME instability, stability, random seed, num_samples, reproducible explanations
"""

# %%
# The problem
# -----------
#
# Four seeds of lime, with its default of 5,000 rows. The five first conditions are not the same, nor is their order:
from lime.lime_tabular import LimeTabularExplainer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
model = RandomForestClassifier(100, random_state=0).fit(X.to_numpy(), y)

for seed in range(4):
    sampling = LimeTabularExplainer(X.to_numpy(), feature_names=list(X), random_state=seed)
    pairs = sampling.explain_instance(X.to_numpy()[20], model.predict_proba, num_features=5).as_list()
    print(seed, ", ".join(f"{condition} {value:+.3f}" for condition, value in pairs))

# %%
# The answer
# ----------
#
# Replace ``X`` and ``model`` by your table and your model. Pass the model itself, and not a function around it.
import limes

model = RandomForestClassifier(100, random_state=0).fit(X, y)
row = X.iloc[[20]]
explanation = limes.TabularExplainer(model, X, output="malignant")(row)
print(explanation.coefficients)

# %%
# Another seed changes nothing, since no row is drawn:
again = limes.TabularExplainer(model, X, output="malignant", rng=1)(row)
print("largest difference:", abs(again.coefficients.values - explanation.coefficients.values).max())

# %%
# How to read it
# --------------
#
# The coefficients are the numbers around which lime's scatter, without its small ridge penalty. R² says how much of the model's variation around the row
# the line captures: stable numbers are not yet good ones, and here the line misses most of it. The contributions of the same explanation miss nothing, because they
# add up to the prediction: :doc:`/two-questions`.
explanation.plot.waterfall(max_features=6)


# %%
# A model that has to be asked
# ----------------------------
#
# A function, or a model behind an API, cannot be read, and limes draws rows as well. It then states each error, stops where errors are as small as you wish, and
# warns where the order is not certain. The same ``rng`` gives the same numbers, whatever was asked before.
def chance(rows):
    """Chance of malignant: a function hides the forest behind it."""
    return model.predict_proba(rows)[:, 1]


for seed in (0, 1):
    drawn = limes.TabularExplainer(chance, X, rng=seed)(row).coefficients
    for i in abs(drawn.values[0]).argsort()[::-1][:3]:
        print(f"seed {seed}: {X.columns[i]:22} {drawn.values[0, i]:+.3f} ± {drawn.standard_errors[0, i]:.3f}")

# %%
# If it goes wrong
# ----------------
#
# - *"sampled", and errors are large*: pass ``model``, not ``lambda rows: model.predict_proba(rows)``; ``explanation.reason`` says what cannot be read.
# - *Errors of a function are too large*: ``tolerance="1%"``, and ``max_calls=`` for as many answers as that takes; ``contributions=False`` spends all of them on
#   coefficients.
# - *R² is low*: ``limes.suggest_design(explainer, X)`` compares bins; or use the contributions.
# - *The model itself answers differently each time*: a warning says so; call ``model.eval()``, or fix its seed.
# - *Old code calls lime*: ``from limes.compat.lime.lime_tabular import LimeTabularExplainer`` is the one line that changes: :doc:`/from-lime`.
#
# Next
# ----
#
# :doc:`/guides/plot_8_from_lime` switches a script, :doc:`/benchmarks/stability` measures how often two seeds agree, :doc:`/papers/since` has S-LIME, BayLIME,
# DLIME and GLIME, which ask the same.
