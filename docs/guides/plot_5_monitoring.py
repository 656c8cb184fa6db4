"""
A long table
============

Explaining every row of a table is one call. This page explains tens of thousands of rows while the site is built, and ends with the commands
for a file that does not fit in memory.
"""

# %%
# Rows
# ----
#
# The wine table has few rows, so more are made of it: values of each column are resampled, and jittered.
import time

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestRegressor

wines, grape = load_wine(return_X_y=True, as_frame=True)
model = RandomForestRegressor(50, max_depth=8, random_state=0).fit(wines, grape)

rng = np.random.default_rng(0)
rows = wines.sample(30_000, replace=True, random_state=0, ignore_index=True)
rows += rng.normal(scale=0.1 * wines.std().to_numpy(), size=rows.shape)
rows.index = pd.Index([f"W{i:05d}" for i in range(len(rows))], name="bottle")

# %%
# One call
# --------
import limes

explainer = limes.TabularExplainer(model, wines)
start = time.perf_counter()
explanation = explainer(rows)
print(
    f"{len(rows):,} rows, {explanation.method}, {time.perf_counter() - start:.1f} s while the site was built"
)

# %%
# What they have in common
# ------------------------
#
# ``summary`` has mean contributions, cohorts, and a few representative rows.
summary = limes.summary(explanation, cohorts=["third" if p > 1 else "other" for p in explanation.predictions])
summary

# %%
explanation[:2000].plot.beeswarm(max_features=6)

# %%
# A frame out
# -----------
#
# ``explain_frame`` returns one line a row, under the row's own name: the prediction, its account, and the
# coefficients. A row that fails has an error message in its line, and costs no other row.
rows.iloc[1, 0] = np.inf
result = limes.scale.explain_frame(explainer, rows.iloc[:4])
result[["row", "prediction", "base", "contribution_alcohol", "value_alcohol", "error"]]

# %%
# The base and all contributions of a row add up to its prediction.
contributions = result.filter(like="contribution_").sum(axis=1)
(result["base"] + contributions - result["prediction"]).abs().max()

# %%
limes.scale.summarize(result)[["feature", "mean_abs_contribution", "mean_contribution"]].head(3)

# %%
# A million rows, and more
# ------------------------
#
# The command line reads Parquet and CSV of any length, in parts. Every part is whole or missing, and the same command
# resumes an interrupted run. The numbers are the same to the last bit for any parts, workers and engine:
#
# .. code-block:: text
#
#     limes explain-table model.skops loans.parquet explained --key loan_id --workers 8
#     limes explain-table model.skops loans.parquet explained --key loan_id --engine dask --scheduler tcp://10.0.0.5:8786
#     limes explain-table model.skops loans.parquet explained --key loan_id --engine spark --scheduler spark://10.0.0.5:7077
#     limes summary explained
#     limes verify explained
#
# :doc:`/scale` has the columns of the output, the costs of a billion rows, and what happens when something fails.
