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
# A letter about one decision
# ---------------------------
#
# ``limes decide`` says why a row was decided as it was, and what would have changed that: here, that a patient's progression is above 200.
# ``--html letter.html`` writes a page, ``--pdf letter.pdf`` prints it (by Chromium or Chrome), and ``--json`` has the record with all errors.
# Without one of them the letter is printed. ``--exclude`` names columns that stay as they are in what would have changed the outcome; reasons and the account
# have them all the same.
run("limes decide model.skops patients.csv --row 9 --below 200 --exclude age --exclude sex")

# %%
# A file of cases to be decided, of refused ones above all, does not say what is usual: there, ``--background train.csv`` names the training table.
# ``--id COLUMN`` makes ``--row`` a name in that column, in all commands that explain a row.
#
# A CSV file states no types. Columns become what the model's encoders have, the code 7 the text ``"7"``, and a note says so; ``--dtype zip=text``
# states the type of others, and ``--categorical zip`` that numbers are codes.
#
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
