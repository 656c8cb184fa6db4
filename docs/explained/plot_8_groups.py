"""
Dummies, groups and correlated columns
======================================

Perturbed rows draw every column by itself. Some columns make no sense alone: of the dummies of a season exactly one is 1, and the felt temperature
follows the measured one. ``groups=`` makes one column of several, whose values are the combinations that occur in the background.

.. index:: dummies, one-hot encoding, correlated columns, groups, Owen value
"""

# %%
# A table with dummies
# --------------------
#
# The table has the bikes that were rented in each hour of two years, by calendar and weather (Fanaee-T and Gama 2013, UCI). Someone turned the season
# and the weather into dummies, and fitted boosted trees on these.
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml
from sklearn.ensemble import HistGradientBoostingRegressor

import limes

path = Path(os.environ.get("LIMES_DATA", "../../../shared/data"), "tabular", "bike_sharing_full.csv.gz")
if path.exists():
    table = pd.read_csv(path)
else:
    table = fetch_openml(data_id=42712, as_frame=True).frame.rename(columns={"count": "target"})
y = table.pop("target")
X = pd.get_dummies(table, columns=["season", "weather"]).astype(float)
model = HistGradientBoostingRegressor(max_iter=100, random_state=0).fit(X, y)
background, row = X.sample(2000, random_state=0), X.iloc[[9000]]

# %%
# limes notices dummies: the explanation has a warning, which names the group.
alone = limes.TabularExplainer(model, background).contributions(row)
for warning in alone.row_warnings[0]:
    print(warning)

# %%
# The model is asked about rows that cannot be
# --------------------------------------------
#
# The four dummies of a season, drawn by themselves, rarely make one season. The share of drawn rows with exactly one:
dummies = [name for name in X if name.startswith("season_")]
rng = np.random.default_rng(0)
drawn = np.stack([rng.choice(background[name], 10_000) for name in dummies], axis=1)
print(f"rows with one season: {np.mean(drawn.sum(axis=1) == 1):.0%}")

# %%
# As a group, the dummies are drawn as one row of the background has them: always one season. The prediction and the average are the model's own; the
# contribution of the season is one number, and it is not the sum of the four numbers before, since those are about other rows.
weather = [name for name in X if name.startswith("weather_")]
groups = {"season": dummies, "weather": weather}
explainer = limes.TabularExplainer(model, background, groups=groups)
grouped = explainer.contributions(row)
print(grouped)

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
alone.plot.bar(ax=axes[0], title="every dummy by itself")
grouped.plot.bar(ax=axes[1], title="dummies in groups")

# %%
# A group costs what one column costs, however many dummies it has.
#
# Columns that say the same
# -------------------------
#
# ``temp`` and ``feel_temp`` have a correlation of 0.99. Each by itself keeps the row's value while the other one is drawn from all of the year: the model
# is asked about 30 degrees that feel like 5. As a group they change together.
print(f"correlation: {background['temp'].corr(background['feel_temp']):.2f}")
groups["temperature"] = ["temp", "feel_temp"]
explainer = limes.TabularExplainer(model, background, groups=groups)
summer = X[(X["hour"] == 17) & (X["month"] == 7)]
together = explainer.contributions(summer)
apart = limes.TabularExplainer(model, background).contributions(summer)
each = apart.contributions[:, ["temp", "feel_temp"]].values.sum(axis=1)

figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
ax.plot(together.contributions[:, "temperature"].values[:, 0], each, "o", markersize=4, alpha=0.6)
ax.axline((0, 0), slope=1, color="0.6", linewidth=1)
ax.set_xlabel("contribution of the group")
ax.set_ylabel("sum of both contributions")

# %%
# How the columns of a group share it
# -----------------------------------
#
# ``within`` shares the group's contribution by the same rule inside the group (Owen's value). It is exact where the contributions are.
shares = together[0].contributions.within("temperature")
for name, value in zip(shares.names, shares.values[0], strict=True):
    print(f"{name}: {value:+.1f}")
print(f"temperature: {together[0].contributions[:, 'temperature'].values[0, 0]:+.1f}")

# %%
# Which columns belong together
# -----------------------------
#
# - Dummies of one column always do.
# - Columns that are computed from each other do: a date's month and season, a sum and its parts.
# - Columns that are only correlated may: as a group they get one number, which does not tell which of them the model uses; ``within`` does.
# - Groups are drawn independently of each other. Where all columns depend on each other, ``law="joint"`` keeps whole rows of the background.
#
# Coefficients, whole effects, R² and warnings are by group, too: a group is in the row's cell if all its columns are.
