"""
LIME's bar chart
================

The coefficients of LIME's surrogate: how the model's average changes, around the row, when a condition holds rather than not.

.. index:: LIME plot, coefficients
"""

# %%
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import limes

data = load_iris(as_frame=True)
model = RandomForestClassifier(random_state=0).fit(data.data, data.target_names[data.target])
explanation = limes.TabularExplainer(model, data.data, output="virginica")(data.data.iloc[[100]])
explanation.coefficients.plot.bar()

# %%
# These are the values that lime's coefficients converge to with more and more samples. The forest was read, so that no row was drawn.
# The terminal prints the same:
print(explanation.coefficients)
