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
# ``Literals`` cuts columns into bins. A fact names the bin that holds the row's value.
literals = limes.Literals.fit(X, bins=4)
print(literals.names[:6])

# %%
# A rule
# ------
#
# The base and the weights of the ``k`` facts add up to the prediction. For another row, a fact that does not hold adds nothing.
explainer = limes.SparseExplainer(model, literals=literals, k=4)
short = explainer(X.iloc[[3]])
print(short.rule())

# %%
# The certificate
# ---------------
#
# The certificate has the rule's errors on fresh perturbed rows, with upper bounds that hold together at 95 % confidence; the model's range over all rows
# that satisfy the rule; and whether any other rule of this size is better.
print(short.certificate)

# %%
# ``k="smallest"`` finds the shortest rule within an error of your choice:
longer = limes.SparseExplainer(
    model, literals=literals, k="smallest", error=24.0, scale="auto", certify="fidelity"
)(X.iloc[[3]])
print(longer.rule())

# %%
# Rules that hold
# ---------------
#
# ``objective="precision"`` asks another question: under which facts does the prediction move least? Such a rule has no weights. The certificate states how
# little the prediction moves in 90 % of the neighbours with these facts and, where it is proved, that no other facts do better in the sample. It also says what
# the neighbours are, and how many of the table's own rows with the facts lie as near.
holding = limes.SparseExplainer(model, literals=literals, k=3, objective="precision")(X.iloc[[3]])
print(holding.certificate)

# %%
# The fewest facts under which the prediction moves by no more than 20 on average, at 95 % confidence:
fewest = limes.SparseExplainer(model, literals=literals, k="smallest", error=20.0, objective="precision")
print(fewest(X.iloc[[3]]).rule())

# %%
# Neighbours keep 73 % of the other columns. With ``law="background"`` they keep none: all but the facts is that of another row of the table, as it is for anchors.
# Such a claim is larger, and takes more facts:
anchor = limes.SparseExplainer(model, literals=literals, k=3, objective="precision", law="background")
print(anchor(X.iloc[[3]]).certificate)

# %%
# For classifiers, ``objective="class"`` finds the facts under which the class changes least often: :doc:`/gallery/rules/plot_2_anchors`.

# %%
# Without a column
# ----------------
#
# ``exclude`` finds the best rule that does not mention a column:
without = limes.SparseExplainer(model, literals=literals, k=4, exclude=["sex", "age"])
print(without(X.iloc[[3]]).rule())

# %%
# The smallest change of the prediction
# -------------------------------------
#
# A contrast changes as few columns as possible. Bounds of the model may prove that fewer are not enough; ``proved`` says whether they do.
contrast = explainer.contrast(X.iloc[[3]], below=110)
print(contrast)
contrast.proved

# %%
# The mathematics is that of :doc:`/papers/koriche-2025`.
#
# On the command line: ``limes explain model.skops table.csv --row 3 --sparse 4 --exclude sex``, and ``limes explain-table ... --sparse 4`` adds a column ``rule`` to
# every row. ``--objective precision`` finds a rule that holds, ``--law background`` under anchors' law.
#
# Choices
# -------
#
# Base and weights are the best of their size, in closed form, under a law in which columns leave their bin at random. ``intercept=False`` drops the
# base, as in the paper (:doc:`call by call </papers/calls-2025>`). ``solver="branch_and_bound"`` proves the optimum of a sample instead. ``worst_case="exact"`` searches
# for the ends of the range where the bounds of a forest are too wide. Contrasts are proved for trees, forests and sums, and for probabilities and means
# that are a link of one (boosted classifiers, softmax, GLMs); for other models they are the best among random rows.
# :class:`limes.MapleExplainer` is one of the paper's baselines.
