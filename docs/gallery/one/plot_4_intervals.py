"""
Error bars
==========

A model that cannot be read is sampled, and every bar has a 95 % interval.

.. index:: error bars, confidence interval, black box
"""

# %%
from sklearn.datasets import load_wine
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limes

X, y = load_wine(return_X_y=True, as_frame=True)
network = make_pipeline(StandardScaler(), MLPClassifier((20, 20), random_state=0, max_iter=2000)).fit(X, y)
explainer = limes.TabularExplainer(lambda rows: network.predict_proba(rows)[:, 2], X, max_calls=512, rng=0)
explanation = explainer(X.iloc[[140]])
explanation.plot.bar(max_features=7)

# %%
# More calls make the intervals shorter: ``max_calls=`` is the budget, ``tolerance="5%"`` the error to reach. :doc:`/guides/plot_6_black_box` counts
# the calls, and :doc:`/gallery/trust/plot_2_coverage` checks the intervals.
