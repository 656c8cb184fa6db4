"""
Time series
===========

The segments of a series in the colours of their contributions.

.. index:: time series, sensor, ECG
"""

# %%
import numpy as np

import limes

t = np.linspace(0, 1, 200)
signal = np.sin(12 * t) + 2.0 * np.exp(-(((t - 0.6) / 0.05) ** 2))
explanation = limes.SeriesExplainer(lambda series: series.max(axis=1), segments="equal", count=8)(signal)
explanation.plot.series()

# %%
# The model returns the maximum: the segments around the peak speak for it. :doc:`/series` has several channels, frequencies, and several inputs.
