"""
Deletion and insertion
======================

How fast the prediction goes when the leading features are removed one by one, and how fast it comes back.

.. index:: deletion curve, insertion curve, faithfulness, quality of explanations
"""

# %%
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(30, random_state=0).fit(X, y)
task = limes.evaluate.Task.of(model, X, X.iloc[:5])
quartiles, halves = limes.TabularExplainer(model, X), limes.TabularExplainer(model, X, bins=2)
explainers = {"quartiles": lambda rows, seed: quartiles(rows), "two bins": lambda rows, seed: halves(rows)}
curves = {name: limes.evaluate.curves(explain(task.X, 0), task) for name, explain in explainers.items()}
_, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
limes.evaluate.plot_curves(curves, ax=ax)

# %%
# ``compare`` has all measures, of limes, shap, lime or an array, on the same rows and draws:
limes.evaluate.compare(explainers, task, progress=False)
