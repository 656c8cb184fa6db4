"""
Explain each decision online
============================

A service that decides about one row at a time can answer with the contributions, too, a few milliseconds later. ``explainer.compiled()`` is a function from a row
to plain arrays, which is stored beside the model. It needs ``pip install '.[pandas]'`` from a checkout, and ``joblib``.

.. index:: online, service, latency, real time, deployment, API endpoint, FastAPI
"""

# %%
# Once, after training
# --------------------
#
# Replace ``X`` and ``model`` by your table and your fitted model. ``output=`` is the label of the class that is explained; without it a classifier's arrays have a
# last axis with all classes. A regression needs none.
import tempfile
from pathlib import Path

import joblib
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import limes

data = load_breast_cancer(as_frame=True)
X = data.data
model = RandomForestClassifier(100, random_state=0).fit(X, data.target_names[data.target])

file = Path(tempfile.mkdtemp()) / "explain.joblib"
explain = limes.TabularExplainer(model, X, output="malignant").compiled()
joblib.dump(explain, file)
print(explain)

# %%
# In the service, for each request
# --------------------------------
explain = joblib.load(file)
row = X.iloc[20].to_dict()  # the request, as JSON has it
answer = explain(row)

print(f"prediction {answer.predictions[0]:.3f}, of which {answer.base_values[0]:.3f} is usual")
largest = sorted(zip(explain.feature_names, answer.values[0], strict=True), key=lambda pair: -abs(pair[1]))
for name, value in largest[:4]:
    print(f"{value:+.3f} {name}")
print("warnings:", answer.warnings[0])

# %%
# How to read it
# --------------
#
# The base and all values add up to the prediction, which is the model's own, so that the service needs no second call. The numbers are those of
# ``explainer.contributions(row)``, to the last bit. Warnings are codes for the log, such as "outside" for a value that the table does not reach.
#
# The time of a row, on the machine that built this page:
from timeit import repeat

print(f"{min(repeat(lambda: explain(row), number=20, repeat=3)) / 20 * 1000:.1f} ms")

# %%
# Requests at the same time
# -------------------------
#
# ``Batcher`` explains together what arrives within a few milliseconds, from threads or asyncio, and each caller gets its own row back.
from limes.serve import Batcher

with Batcher(explain, max_rows=64, wait=0.003) as batcher:
    waiting = [batcher.submit(X.iloc[i].to_dict()) for i in range(8)]
    print([round(float(one.result().predictions[0]), 2) for one in waiting])

# %%
# If it goes wrong
# ----------------
#
# - *It takes 50 milliseconds or more*: ``print(explain)`` says that it samples. ``output="margin"`` is exact for boosted trees.
# - *A request has a column too few, or a text for a number*: an ``InputError`` names the column and the value: answer it with status 422.
#   A missing value is ``None``.
# - *The model was fitted again*: make and store the function again. It explains the model as it was.
# - *Rows are slow where all cores are busy*: one process a core; a compiled function computes in the calling thread.
# - *The request is sentences, and not numbers*: ``explainer.contributions(row).reasons(3)`` makes them: :doc:`reason_codes`.
#
# Next
# ----
#
# :doc:`/serving` has a whole service in forty lines, processes and threads, figures of its latency, MLflow and ONNX. Millions of rows by night: :doc:`/scale`.
