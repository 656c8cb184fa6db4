"""
Without Python
==============

The command line explains rows of a table with a saved model. This page runs each command as you would in a terminal.
"""

# %%
# A saved model
# -------------
#
# The page needs ``pip install '.[scale]'``, for Parquet and CSV files.
# `skops <https://skops.readthedocs.io>`_ files, and the formats of XGBoost, LightGBM, CatBoost and ONNX, are data and cannot run
# code. Pickles and joblib files can: they are loaded only with ``--trust-pickle``.
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import skops.io
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

folder = Path(tempfile.mkdtemp())
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X.to_csv(folder / "patients.csv", index=False)
skops.io.dump(GradientBoostingRegressor(random_state=0).fit(X, y), folder / "model.skops")


def run(command):
    """Run a command line, and print what a terminal shows."""
    finished = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)], cwd=folder, capture_output=True, text=True, check=True
    )
    print(finished.stdout)


# %%
# Explain
# -------
#
# Row 3 of the table; the whole table is the background.
run("limes explain model.skops patients.csv --row 3 --html patient.html")

# %%
# Diagnose
# --------
run("limes diagnose model.skops patients.csv --row 3")

# %%
# A whole file
# ------------
#
# One line a row, in a folder of Parquet files, resumed where it was interrupted: :doc:`/scale`.
run("limes explain-table model.skops patients.csv explained --workers 1")

# %%
# What matters in all rows: how much each column adds to the predictions, on average.
run("limes summary explained")

# %%
# ``limes explain --help`` lists the options: bins, bandwidth, output, texts, images, short rules. The commands:
run("limes --help")
