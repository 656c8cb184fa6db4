"""
Card in a notebook
==================

What a notebook shows, and the page of ``to_html``: one file without scripts, for a colleague.

.. index:: notebook, Jupyter, HTML page
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[[3]])
explanation

# %%
# ``explanation.to_html("patient.html")`` writes it. A terminal prints:
print(explanation)

# sphinx_gallery_thumbnail_path = 'images/card.png'
