"""
Credit decisions
================

A declined applicant asks why. The letter needs the main reasons, the smallest change that would have been enough, and an explanation that
can be filed and repeated to the last digit. :doc:`/questions/reason_codes` has the reasons alone.

.. index:: credit, adverse action, reason codes, loan, counterfactual
"""

# %%
# Applicants and a scorecard
# --------------------------
#
# scikit-learn ships no credit table, so these applicants are made up; the model is fitted to them as to any others.
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

rng = np.random.default_rng(0)
n = 4000
applicants = pd.DataFrame(
    {
        "income": rng.lognormal(10.6, 0.4, n).round(-2),
        "debt_ratio": rng.beta(2, 4, n).round(2),
        "utilisation": rng.beta(1.5, 3, n).round(2),
        "late_payments": rng.poisson(0.6, n),
        "years_of_credit": rng.gamma(3, 3, n).round(1),
        "enquiries": rng.poisson(1.2, n),
    },
    index=[f"A{i:04d}" for i in range(n)],
)
score = 1.6 + 0.8 * np.log(applicants["income"] / 40_000) - 3 * applicants["debt_ratio"]
score += (
    0.12 * applicants["years_of_credit"] - 2.5 * applicants["utilisation"] - 0.25 * applicants["enquiries"]
)
score -= 0.9 * applicants["late_payments"] * (1 + applicants["utilisation"])
outcome = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "repaid", "defaulted")
model = HistGradientBoostingClassifier(max_iter=80, max_depth=3, random_state=0).fit(applicants, outcome)

applicant = applicants.loc[["A0117"]]
p = model.predict_proba(applicant)[0, 1]
print(f"A0117: probability {p:.2f} of repaying; loans are granted from 0.5 on")

# %%
# How the score came about
# ------------------------
#
# Boosted trees add up on the scale of log odds, ``output="margin"``, and there the explanation is exact: the same every time, without sampling. A
# probability of 0.5 is a log odds of 0.
import limes

explainer = limes.TabularExplainer(model, applicants, output="margin")
explanation = explainer(applicant)
explanation.plot.waterfall()

# %%
# Adverse action reasons
# ----------------------
#
# A catalogue turns contributions into the organisation's own sentences: the first of a pair is for a value that raises the score, the second for
# one that lowers it. ``sign="-"`` keeps those that lower it. ``certain`` is False where two reasons could change places; in an exact explanation none can.
catalogue = {
    "late_payments": ("No late payments.", "Late payments in the last two years: {value}."),
    "debt_ratio": ("Debt is low against income ({value}).", "Debt is high against income ({value})."),
    "utilisation": (
        "Little of the credit line is used ({value}).",
        "Much of the credit line is used ({value}).",
    ),
    "enquiries": ("Few recent enquiries.", "Recent enquiries by lenders: {value}."),
    "years_of_credit": ("Long credit history ({value} years).", "Short credit history ({value} years)."),
    "income": ("Income: {value}.", "Income: {value}."),
}
reasons = explanation.reasons(4, catalogue, sign="-")
for reason in reasons:
    print("-", reason)

assert all(reason.certain for reason in reasons)

# %%
# The smallest change that would have been enough
# -----------------------------------------------
#
# A contrast changes as few columns as possible. ``exclude`` names those that the applicant cannot change. Where fewer columns are proved not to be enough, it says so. It
# is asked and told as a probability, and proved on the log odds behind it.
literals = limes.Literals.fit(applicants)
rules = limes.SparseExplainer(model, literals=literals, exclude=["years_of_credit"])
contrast = rules.contrast(applicant, above=0.5)
contrast

# %%
# It is a statement about the model, not a promise: it does not say whether such an applicant would repay.
#
# May the explanation be relied on?
# ---------------------------------
#
# Warnings of the row would stand here, and in print, on pages and in files. ``diagnose`` looks further: :doc:`/findings` says what each finding means.
print(explanation.warnings or "no warning")
limes.diagnose(explanation, progress=False)

# %%
# The letter, and the file
# ------------------------
#
# A sheet to print, which begins with the reasons for the outcome, a report of all declined applicants to click through, and JSON with every digit and
# error for the archive. None needs a network or limes to be opened. With a saved model the sheet is one command:
# ``limes decide model.skops new.csv --id applicant --row A0117 --above 0.5 --background train.csv --exclude years_of_credit --pdf A0117.pdf``.
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
limes.decision_page(
    explanation,
    folder / "A0117.html",
    decision="Declined.",
    outcome="refusal",
    catalogue=catalogue,
    contrast=contrast,
)
declined = explainer(applicants[model.predict_proba(applicants)[:, 1] < 0.5].head(200))
declined.to_report(folder / "declined.html", title="Declined applicants", progress=False)
explanation.to_json(folder / "A0117.json")
for file in sorted(folder.iterdir()):
    print(f"{file.name:16} {file.stat().st_size / 1000:5.0f} kB")

# %%
# The archive gives back the same numbers, without the model:
again = limes.Explanation.read_json(folder / "A0117.json")
assert (again.coefficients.values == explanation.coefficients.values).all()
assert (again.contributions.values == explanation.contributions.values).all()

# %%
# Which reasons are the most frequent
# -----------------------------------
first = [one.reasons(1, sign="-")[0].feature for one in declined]
pd.Series(first).value_counts()
