"""
Dummies, groups and correlated columns
======================================

Perturbed rows draw every column by itself. Some columns make no sense alone: of the dummies of a person's health exactly one is 1, and the terms of an
insurance follow from each other. ``groups=`` makes one column of several, whose values are the combinations that occur in the background.

.. index:: dummies, one-hot encoding, correlated columns, groups, Owen value
"""

# %%
# A table with dummies
# --------------------
#
# The RAND Health Insurance Experiment: 20,190 person-years, with the outpatient visits of each (Deb and Trivedi 2002; statsmodels ships the table). Health
# is coded as dummies, and the insurance by four columns. The dummy of excellent health, which regressions leave out, is added here.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from statsmodels.datasets import randhie

import limes

table = randhie.load_pandas().data
names = {"lncoins": "coinsurance", "idp": "deductible", "lpi": "incentive", "fmde": "maximum"}
names |= {"hlthg": "health_good", "hlthf": "health_fair", "hlthp": "health_poor"}
X = table.rename(columns=names | {"physlm": "limited", "disea": "diseases"}).astype(float)
y = X.pop("mdvis")
X["health_excellent"] = 1.0 - X[["health_good", "health_fair", "health_poor"]].sum(axis=1)
model = HistGradientBoostingRegressor(max_iter=100, random_state=0).fit(X, y)
background, person = X.sample(2000, random_state=0), X[X["health_fair"] == 1].iloc[[40]]

# %%
# limes notices dummies: the explanation has a warning, which names the group.
alone = limes.TabularExplainer(model, background).contributions(person)
for warning in alone.row_warnings[0]:
    print(warning)

# %%
# The model is asked about rows that cannot be
# --------------------------------------------
#
# Drawn by themselves, the four dummies often make no health, or two at once. The share of drawn rows with exactly one:
dummies = [name for name in X if name.startswith("health_")]
rng = np.random.default_rng(0)
drawn = np.stack([rng.choice(background[name], 10_000) for name in dummies], axis=1)
print(f"rows with one health: {np.mean(drawn.sum(axis=1) == 1):.0%}")

# %%
# As a group the dummies are drawn as one row of the background has them: always one health. Its contribution is one number, and not the sum of the four
# numbers before, since those are about other rows.
groups = {"health": dummies}
grouped = limes.TabularExplainer(model, background, groups=groups).contributions(person)
print(grouped)

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
alone.plot.bar(ax=axes[0], title="every column by itself")
grouped.plot.bar(ax=axes[1], title="the dummies as a group")

# %%
# Columns that follow from each other
# -----------------------------------
#
# The maximum that a family pays is computed from the rate of coinsurance, and is 0 with a deductible. Each column by itself keeps the person's value while
# the others are drawn from all contracts: the model is asked about contracts that do not exist. As a group they change together.
insurance = ["coinsurance", "deductible", "incentive", "maximum"]
groups["insurance"] = insurance
explainer = limes.TabularExplainer(model, background, groups=groups)
people = X.sample(300, random_state=1)
together = explainer.contributions(people)
apart = limes.TabularExplainer(model, background).contributions(people)
each = apart.contributions[:, insurance].values.sum(axis=1)

figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
ax.plot(together.contributions[:, "insurance"].values[:, 0], each, "o", markersize=4, alpha=0.6)
ax.axline((0, 0), slope=1, color="0.6", linewidth=1)
ax.set_xlabel("contribution of the insurance, in visits")
_ = ax.set_ylabel("sum of its columns' contributions")

# %%
# How the columns of a group share it
# -----------------------------------
#
# ``within`` shares the group's contribution by the same rule inside the group (Owen's value). It is exact where the contributions are.
shares = together[0].contributions.within("insurance")
for name, value in zip(shares.names, shares.values[0], strict=True):
    print(f"{name}: {value:+.2f}")
print(f"insurance: {together[0].contributions[:, 'insurance'].values[0, 0]:+.2f}")

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
