"""
The quality of explanations
===========================

``limes.evaluate`` measures explanations of any library on the same rows and draws.
"""

# %%
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(30, random_state=0).fit(X, y)
task = limes.evaluate.Task.of(model, X, X.iloc[:5])
quartiles = limes.TabularExplainer(model, X)
halves = limes.TabularExplainer(model, X, bins=2)
explainers = {"quartiles": lambda rows, seed: quartiles(rows), "two bins": lambda rows, seed: halves(rows)}

# %%
# ``compare``: the table
# ----------------------
limes.evaluate.compare(explainers, task, progress=False)

# %%
# ``plot_curves``: deletion and insertion
# ---------------------------------------
curves = {name: limes.evaluate.curves(explain(task.X, 0), task) for name, explain in explainers.items()}
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
limes.evaluate.plot_curves(curves, ax=ax)
