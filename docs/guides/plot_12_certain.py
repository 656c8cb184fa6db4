"""
A validator signs a decision
============================

An explanation that is right on average does not bind anybody. A validator asks for more: which facts of this case decide it, *whatever the others are*, and
which changes that are possible would have turned it? limes proves both for models that it can read.

.. index:: validation, certain facts, sufficient reasons, abductive explanations, prime implicants, contrast, counterfactual, constraints
"""

# %%
# A model and a case
# ------------------
#
# The applicants are made up, as in the guide about credit decisions; the model is a forest that votes, and grants loans from a probability of 0.5 on.
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

import limes

rng = np.random.default_rng(0)
n = 3000
applicants = pd.DataFrame(
    {
        "income": rng.lognormal(10.6, 0.4, n).round(-2),
        "debt_ratio": rng.beta(2, 4, n).round(2),
        "utilisation": rng.beta(1.5, 3, n).round(2),
        "late_payments": rng.poisson(0.6, n),
        "late_this_year": 0,
        "enquiries": rng.poisson(1.2, n),
        "age": rng.integers(21, 75, n),
    },
    index=[f"A{i:04d}" for i in range(n)],
)
applicants["late_this_year"] = rng.binomial(applicants["late_payments"], 0.4)
score = 1.2 + 0.8 * np.log(applicants["income"] / 40_000) - 3 * applicants["debt_ratio"]
score -= 2.5 * applicants["utilisation"] + 0.7 * applicants["late_payments"] - 0.02 * applicants["age"]
score -= 0.8 * applicants["late_this_year"] + 0.25 * applicants["enquiries"]
repaid = rng.random(n) < 1 / (1 + np.exp(-score))
outcome = np.where(repaid, "repaid", "defaulted")
model = RandomForestClassifier(60, max_depth=7, random_state=0).fit(applicants, outcome)

case = applicants.loc[["A0003"]]
print(case.T)
print(f"probability of repaying: {model.predict_proba(case)[0, 1]:.2f}")

# %%
# The account
# -----------
#
# Contributions say how the probability came about, compared with what is usual around the case. They add up, and are no proof: another case with the same
# large bars may be decided otherwise.
account = limes.TabularExplainer(model, applicants, output="repaid").contributions(case)
print(account)

# %%
# Possible rows
# -------------
#
# A domain says which rows can exist. ``fit`` proposes what the table obeys: ranges, whole numbers, and that late payments of this year are among all late ones.
domain = limes.Domain.fit(applicants)
print(domain)

# %%
# Facts that hold for certain
# ---------------------------
#
# The fewest values of this case such that every possible row that shares them has the same decision, whatever its other columns are. The explainer names, once,
# that the age stays and that late payments of the past only become more: possible are the rows of the domain that this case can become, so that the age needs
# no fact. The certificate says that no fact can be dropped, and that no smaller set of facts is enough.
explainer = limes.SparseExplainer(
    model,
    output="repaid",
    domain=domain,
    objective="certain",
    fixed=["age"],
    directions={"late_payments": "up"},
)
facts = explainer(case, progress=False)
print(facts)

# %%
# For each fact there is a row that differs in it, may differ in the columns without facts, and is decided otherwise. The model confirms it.
certificate = facts.certificate
others = pd.DataFrame(certificate.counterexamples, columns=applicants.columns, index=certificate.columns)
others["probability"] = model.predict_proba(others[applicants.columns])[:, 1].round(3)
others

# %%
# An independent check, by a validator who trusts no proof: rows with these facts and this age, and anything else that is possible in the other columns.
drawn = pd.DataFrame({name: rng.choice(applicants[name], 100_000) for name in applicants})
kept = ["age", *certificate.columns]
drawn[kept] = case[kept].to_numpy()[0]
drawn = drawn[drawn["late_payments"] >= case["late_payments"].iloc[0]]
drawn = drawn[drawn["late_this_year"] <= drawn["late_payments"]]
other = model.predict(drawn) != model.predict(case)[0]
print(f"rows with another decision: {other.sum()} of {len(drawn):,}")

# %%
# A contrast that is possible
# ---------------------------
#
# The fewest changes that turn the decision. They obey the domain and what the explainer has named: the age stays, and late payments only become more. A letter
# has both, by ``limes.decision_page(account, facts=facts, contrast=contrast)``.
contrast = explainer.contrast(case)
print(contrast)

# %%
# The cheapest change, in standard deviations of the columns (``costs=`` says otherwise), proved or with the gap:
print(explainer.contrast(case, minimize="cost"))

# %%
# Other ways, each without all columns of an earlier one:
for way in explainer.contrasts(case, 3):
    print(
        way.new_prediction, [change.feature for change in way.changes], "proved" if way.proved else way.reason
    )

# %%
# The nearest applicant on the other side is a row of the table.
print(explainer.contrast(case, among="rows"))

# %%
# Where a model has several classes, ``to="class"`` names the one to reach, and facts guarantee the one that it predicts (of two classes: ``threshold="class"``).

# %%
# On the command line: ``limes explain model.skops train.csv --id loan --row A0003 --objective certain``, for the ranges that the table has.
