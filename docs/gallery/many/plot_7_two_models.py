"""
Comparing two explanations
==========================

The contributions to one prediction under two models, side by side.

.. index:: compare models, challenger model, model comparison
"""

# %%
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
models = {"forest": RandomForestRegressor(50, random_state=0).fit(X, y), "ridge": Ridge().fit(X, y)}

row = X.iloc[[3]]
explanations = {name: limes.TabularExplainer(model, X)(row) for name, model in models.items()}
values = {name: explanation.contributions.values[0] for name, explanation in explanations.items()}
contributions = pd.DataFrame(values, index=X.columns)
ax = contributions.iloc[::-1].plot.barh(figsize=(6, 4.2), width=0.75)
_ = ax.set_xlabel("contribution to the prediction")

# %%
# Each model has its own average around the row, from which its bars lead to its prediction:
for name, explanation in explanations.items():
    print(f"{name}: from {explanation.contributions.base_values[0]:.0f} to {explanation.predictions[0]:.0f}")

# %%
# ``to_report("models.html", other=second)`` does the same for every row of a table, with both predictions to sort by: :doc:`/report`.
