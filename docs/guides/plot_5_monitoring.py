"""
Monitoring a nightly table
==========================

A model scores a table every night. Has anything changed in why it says what it says? Every row of two nights is explained, and the
means of their contributions are compared.

.. index:: monitoring, drift, nightly, data drift, explanation drift
"""

# %%
# Two nights
# ----------
#
# The wine table has few rows, so more are made of it: rows are resampled and jittered. On the second night one instrument reads 5 % too much alcohol.
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestRegressor

wines, grape = load_wine(return_X_y=True, as_frame=True)
model = RandomForestRegressor(50, max_depth=8, random_state=0).fit(wines, grape)


def night(seed, rows=2_000):
    """One night's table, one line a bottle."""
    table = wines.sample(rows, replace=True, random_state=seed, ignore_index=True)
    table += np.random.default_rng(seed).normal(scale=0.1 * wines.std().to_numpy(), size=table.shape)
    table.index = pd.Index([f"W{seed}{i:04d}" for i in range(rows)], name="bottle")
    return table


monday, tuesday = night(1), night(2)
tuesday["alcohol"] *= 1.05

# %%
# One call
# --------
#
# The background stays the training table, so that both nights have the same bins and the same law around each row.
import limes

explainer = limes.TabularExplainer(model, wines)
explanation = explainer(pd.concat([monday, tuesday]))

# %%
# Means of both nights
# --------------------
#
# ``summary`` has mean contributions of all rows and of groups, and a few representative rows.
nights = ["Monday"] * len(monday) + ["Tuesday"] * len(tuesday)
summary = limes.summary(explanation, by=nights)
summary.plot.cohorts(max_features=5)

# %%
# A difference of means is more than chance if it is many times its standard error:
contributions = explanation.contributions.values
before, after = contributions[: len(monday)], contributions[len(monday) :]
change = after.mean(axis=0) - before.mean(axis=0)
error = np.sqrt(before.var(axis=0) / len(before) + after.var(axis=0) / len(after))
table = pd.DataFrame({"change": change, "standard errors": change / error}, index=wines.columns)
table.sort_values("standard errors", key=abs, ascending=False).head(4).round(3)

# %%
# The model is the same, so the column came in different. A column whose contributions move although its values do not interacts with one that moved.
pd.DataFrame({"Monday": monday["alcohol"].describe(), "Tuesday": tuesday["alcohol"].describe()}).round(2)

# %%
# Rows to look at
# ---------------
#
# Rows with warnings, and rows that together show the leading columns:
summary

# %%
explanation.plot.beeswarm(max_features=5)

# %%
# A table out
# -----------
#
# ``explain_frame`` returns one line a row, under the row's own name: the prediction, its account, and the
# coefficients. A row that fails has an error message in its line, and costs no other row.
few = monday.iloc[:4].copy()
few.iloc[1, 0] = np.inf
result = limes.scale.explain_frame(explainer, few)
result[["row", "prediction", "base", "contribution_alcohol", "value_alcohol", "error"]]

# %%
# The base and all contributions of a row add up to its prediction:
total = result["base"] + result.filter(like="contribution_").sum(axis=1)
assert np.allclose(total.dropna(), result["prediction"].dropna())

# %%
# ``summarize`` has the means of such a table, which a job can compare with those of the night before:
limes.scale.summarize(result)[["feature", "mean_abs_contribution", "mean_contribution"]].head(3)

# %%
# As a job
# --------
#
# The command line reads Parquet and CSV of any length, in parts. Every part is whole or missing, and the same command
# resumes an interrupted run. The numbers are the same to the last bit for any parts, workers and engine:
#
# .. code-block:: text
#
#     limes explain-table model.skops loans.parquet explained --key loan_id --workers 8
#     limes summary explained
#     limes verify explained
#
# :doc:`/scale` has Dask and Spark, the columns of the output, the costs of a billion rows, and what happens when something fails.
