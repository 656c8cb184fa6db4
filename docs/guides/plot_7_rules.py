"""
A rule to read out
==================

On the telephone a rule of four facts says more than ten coefficients. This one adds up to the prediction, and a certificate states how far
it can be wrong.

.. index:: rule, scorecard, sparse explanation, certificate, anchors
"""

# %%
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X, y)

# %%
# Facts
# -----
#
# ``Literals`` cuts columns into bins. A fact says in which bin the row is.
literals = limes.Literals.fit(X, bins=4)
print(literals.names[:6])

# %%
# A rule
# ------
#
# A base, and the weights of the ``k`` facts that hold: together they are the prediction. A fact that does not hold adds nothing.
explainer = limes.SparseExplainer(model, literals=literals, k=4)
short = explainer(X.iloc[[3]])
print(short.rule())

# %%
# The certificate
# ---------------
#
# Errors of the rule on fresh perturbed rows, with upper bounds that hold together at 95 % confidence; the range of the model over all rows
# that satisfy the rule; and whether any other rule of this size is better.
print(short.certificate)

# %%
# Where a rule is not enough, a longer one is found for an error of your choice:
longer = limes.SparseExplainer(
    model, literals=literals, k="smallest", error=24.0, scale="auto", certify="fidelity"
)(X.iloc[[3]])
print(longer.rule())

# %%
# Rules that hold
# ---------------
#
# ``objective="precision"`` asks another question: under which facts does the prediction move least? Its rule has no weights. The certificate states how far the prediction
# stays in 90 % of the neighbours with these facts, and that no other facts do better in the sample, where that is proved.
holding = limes.SparseExplainer(model, literals=literals, k=3, objective="precision")(X.iloc[[3]])
print(holding.certificate)

# %%
# The fewest facts under which the prediction moves by no more than 20 on average, at 95 % confidence:
fewest = limes.SparseExplainer(model, literals=literals, k="smallest", error=20.0, objective="precision")
print(fewest(X.iloc[[3]]).rule())

# %%
# Of classifiers, ``objective="class"`` finds the facts under which the class changes least often.

# %%
# Without a column
# ----------------
#
# ``exclude`` finds the best rule that does not mention a column:
without = limes.SparseExplainer(model, literals=literals, k=4, exclude=["sex", "age"])
print(without(X.iloc[[3]]).rule())

# %%
# What would change the prediction
# --------------------------------
#
# A contrast changes as few columns as possible. It says whether bounds of the model prove that fewer do not suffice.
contrast = explainer.contrast(X.iloc[[3]], below=110)
print(contrast)
contrast.proved

# %%
# The mathematics is that of :doc:`/papers/koriche-2025`.
#
# On the command line: ``limes explain model.skops table.csv --row 3 --sparse 4 --exclude sex``, and ``limes explain-table ... --sparse 4`` adds a column ``rule`` to
# every row. ``--objective precision`` finds a rule that holds.
#
# Choices
# -------
#
# Base and weights are the best of their size, in closed form, under a law in which columns leave their bin at random. ``intercept=False`` drops the
# base, as in the paper (:doc:`call by call </papers/calls-2025>`). ``solver="branch_and_bound"`` proves the optimum of a sample instead. ``worst_case="exact"`` searches
# for the ends of the range where the bounds of a forest are too wide. A contrast is proved by bounds of trees, forests and sums, and else searched for among rows drawn. :class:`limes.MapleExplainer` is one of
# the paper's baselines.
