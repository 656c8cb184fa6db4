"""
Rules that cover a table
========================

An auditor of a credit model reads no thousand explanations. The question is about all cases at once: by which rules are applications granted or declined, for
whom does each rule hold, and where are its exceptions? ``limes.rules.cover`` answers with a short list, in which each rule has a certificate.

.. index:: audit, rule list, set cover, decision rules, certain rules, coverage, exceptions
"""

# %%
# A model and its cases
# ---------------------
#
# The applicants are made up, as in the guide about a validator; the model is boosted, and grants loans from a probability of 0.5 on.
import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier

import limes

rng = np.random.default_rng(0)
n = 2000
applicants = pd.DataFrame(
    {
        "income": rng.lognormal(10.6, 0.4, n).round(-2),
        "debt_ratio": rng.beta(2, 4, n).round(2),
        "late_payments": rng.poisson(0.6, n),
        "age": rng.integers(21, 75, n),
        "home": rng.choice(["own", "rent", "family"], n, p=[0.5, 0.4, 0.1]),
    }
)
score = 1.5 + 1.5 * np.log(applicants["income"] / 40_000) - 4 * applicants["debt_ratio"]
score += 0.5 * (applicants["home"] == "own") - 1.2 * applicants["late_payments"]
repaid = rng.random(n) < 1 / (1 + np.exp(-2 * score))
outcome = np.where(repaid, "repaid", "defaulted")

from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

encoder = make_column_transformer((OneHotEncoder(), ["home"]), remainder="passthrough")
model = make_pipeline(encoder, GradientBoostingClassifier(n_estimators=40, max_depth=2, random_state=0))
model.fit(applicants, outcome)
cases = applicants.iloc[:300]

# %%
# Rules that hold for certain
# ---------------------------
#
# Every applicant whom the domain allows and who meets the conditions of a rule is answered as it says: bounds of the model prove it. The list begins with the
# rules that cover most; ``max_rules=`` ends it after eight.
domain = limes.Domain.fit(applicants)
audit = limes.rules.cover(model, cases, domain=domain, max_rules=8)
audit

# %%
# An independent check of the first rule, by someone who trusts no proof: its conditions in numbers, and new applicants who meet them.
rule = audit.rules[0]
print(rule.text)
drawn = pd.DataFrame({name: rng.choice(applicants[name], 100_000) for name in applicants})
meets = audit.holds(drawn)[:, 0]
print(
    f"{meets.sum():,} of 100,000 drawn meet it; answered otherwise: {(model.predict(drawn[meets]) != rule.claim).sum()}"
)

# %%
# Rules that are precise
# ----------------------
#
# Certain rules hold for odd applicants as well. Eight rules that may be wrong for a few cover more: at most 5 % of the applicants drawn in each are answered
# otherwise, and with 95 % confidence no rule of the list exceeds its bound. Any model will do here, one that cannot be read as well.
precise = limes.rules.cover(model, cases, objective="precision", error=0.05, domain=domain, max_rules=8)
precise

# %%
# Exceptions are positions of rows: cases that meet the conditions and are answered otherwise, to look at by hand. Here are those of the rule with most of them.
most = max(precise.rules, key=lambda rule: len(rule.exceptions))
print(most.text)
exceptions = cases.iloc[list(most.exceptions)]
exceptions.assign(probability=model.predict_proba(exceptions)[:, 1].round(2))

# %%
# Rows without a rule
# -------------------
#
# The list names them by their index labels, or positions. A frame has one line a rule, for a report.
print("rows without a rule:", len(precise.uncovered), "of", precise.size)
precise.to_frame()[["rule", "claim", "bound", "rows", "new_rows", "exceptions"]]
