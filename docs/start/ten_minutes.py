"""
Ten minutes
===========

From a fitted model to a page that a colleague can open: a forest predicts how a patient's diabetes progresses, and
limes explains one of its predictions.
"""

# %%
# A model
# -------
#
# Any fitted model will do. This one is a random forest, on a table that scikit-learn ships.
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(random_state=0).fit(X, y)
X.iloc[[3]]

# %%
# An explanation
# --------------
#
# The explainer takes the model and a *background*: a table from which it learns bins and frequencies, usually the training data.
# It is then called with the rows to explain.
import limes

explainer = limes.TabularExplainer(model, X)
explanation = explainer(X.iloc[[3]])
print(explanation)

# %%
# How to read it
# --------------
#
# The first line has the **prediction**, and what is **usual**: the model's average with other values of the columns. Each column is redrawn
# from its values in the background, independently of the others, and rows that keep more of the row's bins count more; with
# ``bandwidth=np.inf`` all count the same, and bins play no part.
#
# A **contribution** is what the row's value adds: from what is usual all contributions together lead to the prediction. They are Shapley
# values, and ``explanation.contributions`` holds them. Of a probability they are percentage points.
#
# **How it was made** is the line below. *exact* means that contributions were computed from the forest itself: the same call gives the same
# numbers every time. Of a model that cannot be read every contribution has an **error**, ±, one standard error, and a line says how many
# calls that took (:doc:`/guides/plot_6_black_box`). A **warning**, behind "!", stands where the number stands that it is about.
#
# LIME answers another question: what does the model do differently around the row when a condition holds? Its coefficients, with conditions
# and R², have a separate view (:doc:`/two-questions`):
print(explanation.coefficients)

# %%
# In a notebook the explanation itself, as the last line of a cell, is a picture:
explanation

# %%
# When not to trust it
# --------------------
#
# ``limes.diagnose`` checks the explanation for known failures, each with a number, a sentence and an advice.
# :doc:`/findings` says what each of them means.
diagnosis = limes.diagnose(explanation, progress=False)
print(diagnosis)

# %%
# A page for a colleague
# ----------------------
#
# ``to_html`` writes one file that opens without a network and contains no script.
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
page = explanation.to_html(folder / "patient.html")
diagnosis.to_html(folder / "diagnosis.html")
print(f"{len(page) / 1000:.0f} kB")

# %%
# The same numbers as a table, for a spreadsheet or a database; ``data`` is what the row has, ``value`` its contribution:
explanation.to_frame()[["feature", "data", "value", "standard_error", "base", "prediction"]]

# %%
# And as sentences, the largest contributions first:
for reason in explanation.reasons(3):
    print(reason)

# %%
# Which class
# -----------
#
# Of a classifier with two classes limes shows the probability of the second of ``model.classes_``; the header names it. Of several
# classes all are explained, and the predicted one is shown first. ``output=`` chooses another, by its label. Arrays such as
# ``explanation.contributions.values`` have an axis for the classes, (n, d, k), and with ``output=`` none, (n, d).
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

tumours = load_breast_cancer(as_frame=True)
forest = RandomForestClassifier(random_state=0).fit(tumours.data, tumours.target_names[tumours.target])
of_benign = limes.TabularExplainer(forest, tumours.data)
of_malignant = limes.TabularExplainer(forest, tumours.data, output="malignant")
[explainer(tumours.data.iloc[[3]]).output_names for explainer in (of_benign, of_malignant)]

# %%
# Many rows
# ---------
#
# One call explains many rows, ``many[3]`` is one of them, ``limes.summary(many)`` sums them up, and some pictures need them:
many = explainer(X.iloc[:200])
many.plot.beeswarm(max_features=6)

# %%
# Categories and missing values
# -----------------------------
#
# Text, booleans and categorical columns are categories. A Pipeline that encodes them is read as a whole, and explained in the
# columns that you pass to it, before the encoding. A column of numbers that stand for groups, such as a class from 1 to 3, is a category
# where an encoder of the model has it, whatever its numbers are, or where you say so: ``categorical=["column"]``. Missing values are a separate condition ("age is missing").
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

patients = X.assign(sex=np.where(X["sex"] == 1, "female", "male"))
encoder = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
pipeline = make_pipeline(encoder, RandomForestRegressor(50, random_state=0)).fit(patients, y)
limes.TabularExplainer(pipeline, patients)(patients.iloc[[3]]).plot.waterfall(max_features=5)

# %%
# Next
# ----
#
# :doc:`/questions/index` has the shortest answers to what people ask most, :doc:`/guides/plot_2_clinical` goes from a model to a page for a committee; :doc:`/exact` lists which models are exact.
