"""
Migrating from lime
===================

Old code runs with one changed import. This page shows what it returns, and then the same task in the API of limes.
:doc:`/from-lime` lists every difference.

.. index:: lime, LimeTabularExplainer, migration
"""

# %%
# One line is new
# ---------------
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from limes.compat.lime.lime_tabular import LimeTabularExplainer  # the new line

data = load_iris()
model = RandomForestClassifier(random_state=0).fit(data.data, data.target)

explainer = LimeTabularExplainer(data.data, feature_names=data.feature_names, class_names=data.target_names)
explanation = explainer.explain_instance(data.data[100], model.predict_proba, labels=(2,))
explanation.as_list(label=2)

# %%
# These are the numbers that lime's coefficients converge to, without its ridge penalty. The forest was read: no row was drawn.
print(explanation.engine, explanation.limes.method, explanation.limes.model_calls)

# %%
# How far lime is from them
# -------------------------
#
# The engine "lime" repeats lime's own sampling. Ten seeds with lime's default of 5,000 rows each:
import numpy as np

repeats = []
for seed in range(10):
    sampled = LimeTabularExplainer(
        data.data,
        feature_names=data.feature_names,
        class_names=data.target_names,
        engine="lime",
        random_state=seed,
    )
    pairs = sampled.explain_instance(data.data[100], model.predict_proba, labels=(2,)).as_list(label=2)
    repeats.append(dict(pairs))
for name, value in explanation.as_list(label=2):
    over_seeds = [one[name] for one in repeats]
    print(
        f"{name:32} limit {value:+.4f}   lime {np.mean(over_seeds):+.4f}, from {min(over_seeds):+.4f} to {max(over_seeds):+.4f}"
    )

# %%
# In the words of limes
# ---------------------
#
# ============================================== ================================================
# lime                                           limes
# ============================================== ================================================
# ``LimeTabularExplainer(X, feature_names=...)`` ``TabularExplainer(model, X)``: names from the frame
# ``explain_instance(row, model.predict_proba)`` ``explainer(rows)``: one row or many
# ``labels=(2,)``                                ``output="virginica"``
# ``kernel_width=3``                             ``bandwidth=3``
# ``discretizer="decile"``                       ``bins="decile"``
# ``discretize_continuous=False``                ``bins=None``
# ``num_samples=5000``                           ``max_calls=5000`` (exact models need none)
# ``as_list()``                                  ``explanation.top()``, ``.to_frame()``
# ``as_pyplot_figure()``                         ``explanation.plot.bar()``
# ``score``                                      ``explanation.fidelity``
# ``save_to_file("page.html")``                  ``explanation.to_html("page.html")``
# ============================================== ================================================
import limes

frame = load_iris(as_frame=True)
named = RandomForestClassifier(random_state=0).fit(frame.data, frame.target_names[frame.target])
limes.TabularExplainer(named, frame.data, output="virginica")(frame.data.iloc[[100]])

# %%
# Every import at once
# --------------------
#
# ``limes.compat.lime.install()``, called before anything imports ``lime``, makes ``import lime`` mean the drop-in in a whole process.
