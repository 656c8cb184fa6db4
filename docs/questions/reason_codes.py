"""
Reason codes
============

A refused applicant gets the main reasons, in the lender's own sentences, with their codes. The reasons are the largest contributions to the score, and a page
to print has them above the account. It needs ``pip install '.[pandas]'`` from a checkout.

.. index:: reason codes, adverse action, principal reasons, credit, refusal, decision letter
"""

# %%
# The answer
# ----------
#
# Replace ``applicants``, ``model`` and ``catalogue`` by your table, your model and your sentences. A sentence may contain ``{value}``, in a format of Python's as
# ``{value:.0%}``. A pair has one sentence for a value that raises the score, and one for a value that lowers it; a column without an entry gets a plain sentence.
# The sign chooses the sentence, and not the value: write sentences that are true of every value, or have ``{value}`` in them. A third text is for a missing value.
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import limes

rng = np.random.default_rng(0)
applicants = pd.DataFrame(
    {
        "debt_ratio": rng.beta(2, 4, 3000).round(2),
        "utilisation": rng.beta(1.5, 3, 3000).round(2),
        "late_payments": rng.poisson(0.6, 3000),
        "years_of_credit": rng.gamma(3, 3, 3000).round(1),
    }
)
score = (
    2.5 - 3 * applicants["debt_ratio"] - 2.5 * applicants["utilisation"] - 0.9 * applicants["late_payments"]
)
chance = 1 / (1 + np.exp(-score - 0.12 * applicants["years_of_credit"]))
outcome = np.where(rng.random(3000) < chance, "repaid", "defaulted")
model = HistGradientBoostingClassifier(max_depth=3, random_state=0).fit(applicants, outcome)

catalogue = {
    "debt_ratio": ("Debt is low against income.", "R01 Debt is high against income ({value:.0%})."),
    "utilisation": (
        "Little of the credit line is used.",
        "R02 Much of the credit line is used ({value:.0%}).",
    ),
    "late_payments": ("No late payments.", "R03 Late payments in two years: {value}."),
    "years_of_credit": ("Long credit history.", "R04 Credit history of {value} years."),
}
refused = applicants[model.predict_proba(applicants)[:, 1] < 0.5]
explainer = limes.TabularExplainer(model, applicants, output="margin")
explanation = explainer(refused.iloc[[1]])
for reason in explanation.reasons(3, catalogue, sign="-"):
    print(reason, "" if reason.certain else "(its place is not certain)")

# %%
# How to read it
# --------------
#
# The first reason lowers this applicant's score the most, compared with what is usual around this applicant. ``sign="-"`` keeps reasons that lower the score, and
# fewer than three are printed where fewer columns lower it. On the scale of log odds, ``output="margin"``, the order is exact, and the same at each call.
#
# The account behind them:
explanation.plot.bar()

# %%
# The reasons of all refused applicants
# -------------------------------------
#
# One call explains them all; each has its own first reason:
declined = explainer(refused.iloc[:200])
first = [one.reasons(1, sign="-")[0].feature for one in declined]
pd.Series(first).value_counts()

# %%
# If it goes wrong
# ----------------
#
# - *Reasons speak for the applicant*: the score is that of the other class, as the risk. ``print(explanation)`` names the class; ``sign="+"`` keeps what raises its
#   score.
# - *A reason has no code*: its column is missing from the catalogue. Write an entry for each column: ``set(applicants) - set(catalogue)`` is then empty.
# - *"its place is not certain"*: two reasons are equal within their errors. ``output="margin"``, or a larger ``max_calls=`` of a model that has to be asked.
# - *Several columns are one reason*: ``groups={"payment history": ["late_payments", "late_this_year"]}`` gives them one number and one sentence; the
#   catalogue then has ``"payment history"`` in the place of its columns.
# - *A reason is nothing that the applicant can change*: reasons say why. ``SparseExplainer(...).contrast(row, above=0.5, exclude=[...])`` says the fewest
#   changes that are enough.
#
# Next
# ----
#
# :doc:`/guides/plot_1_credit` goes on to the letter, the file and the report of all refusals. ``limes decide`` writes the letter from files, without Python:
# :doc:`/start/command_line`. A proof for a validator: :doc:`/guides/plot_12_certain`.
