"""
Report page
===========

One file to click through thousands of explanations: search, sort, compare rows, move the bandwidth.

.. index:: report, dashboard, HTML report
"""

# %%
# .. raw:: html
#
#    <p><a href="../../_static/patients.html"><b>Open the report that this code writes</b></a></p>
#
# .. image:: /images/report.png
#    :alt: A report: the list of rows, and one of them
import tempfile
from pathlib import Path

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(50, random_state=0).fit(X, y)
report = Path(tempfile.mkdtemp()) / "patients.html"
limes.TabularExplainer(model, X)(X).to_report(report, title="442 patients", progress=False)
print(f"{report.stat().st_size / 1e6:.1f} MB, opens without a network")

# %%
# :doc:`/report` says what it shows and how to read it.

# sphinx_gallery_thumbnail_path = 'images/report.png'
