"""A new process of a user without a home or a right to write: nothing is compiled or cached."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

import limes

CODE = """
import json, os, sys

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

rng = np.random.default_rng(0)
photograph = rng.random((8, 8))
X = rng.normal(size=(200, 6))
forest = RandomForestRegressor(10, random_state=0).fit(X, X[:, 0] * X[:, 1])
texts = ["a good film", "a bad film", "good good plot", "a dull story"]
words = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [1, 0, 1, 0])
segments = np.add.outer(np.arange(8) // 2 * 4, np.arange(8) // 2)

written, started = [], []


def watch(event, arguments):
    if event == "open" and arguments[2] is not None and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        written.append(str(arguments[0]))
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        started.append(str(arguments[0]))


sys.addaudithook(watch)
import limes

answers = {
    "forest": limes.TabularExplainer(forest, X)(X[:1]),
    "many rows": limes.TabularExplainer(forest, X)(X),
    "black box": limes.TabularExplainer(lambda x: np.tanh(x[:, 0] * x[:, 1]), X, max_calls=256)(X[:1]),
    "text": limes.TextExplainer(words)("a good story, a good plot"),
    "image": limes.ImageExplainer(lambda a: a[:, :4].mean(axis=(1, 2)), segments=segments)(photograph),
    "sparse": limes.SparseExplainer(lambda s: s[:, 0] + s[:, 1] * s[:, 2], k=2, solver="branch_and_bound")(
        np.sign(X[:1])
    ),
}
methods = {name: [answer.method, bool(np.isfinite(answer.values).all())] for name, answer in answers.items()}
print(json.dumps({"user": os.getuid(), "written": written, "started": started, "methods": methods}))
"""


# that numpy can be imported, and the others found, takes a tenth of the time of importing all
PACKAGES = """
import sys

import numpy
from importlib.util import find_spec
sys.exit(find_spec("scipy") is None or find_spec("sklearn") is None)
"""


def environment():
    """No home, and nothing but this process's packages: another interpreter may read them."""
    paths = [str(Path(limes.__file__).parents[1]), *site.getsitepackages()]
    return {"HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


def as_nobody():
    """Interpreter and options to start processes as the user ``nobody``; None where that is impossible."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    user = {"user": 65534, "group": 65534, "extra_groups": []}  # the user `nobody` of most systems
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, shutil.which(version, path="/usr/local/bin:/usr/bin")):
        if python is not None and _runs([python, "-c", PACKAGES], user):
            return python, user
    return None


def _runs(command, user):
    try:
        process = subprocess.run(
            command, env=environment(), cwd="/", capture_output=True, check=False, **user
        )
    except PermissionError:
        return False
    return process.returncode == 0


def answers_of(python, **user):
    process = subprocess.run(
        [python, "-W", "ignore", "-c", CODE],
        env=environment(), cwd="/", capture_output=True, text=True, check=False, **user,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def check(answers):
    assert answers["written"] == []
    assert set(answers["started"]) <= {"lscpu"}  # by which joblib counts cores for scikit-learn
    assert answers["methods"] == {
        "forest": ["exact", True],
        "many rows": ["exact", True],
        "black box": ["sampled", True],
        "text": ["exact", True],
        "image": ["sampled", True],
        "sparse": ["sampled", True],
    }


def test_nothing_is_written_or_started():
    check(answers_of(sys.executable))


def test_another_user_without_a_home_is_answered():
    nobody = as_nobody()
    if nobody is None:
        pytest.skip("only root can start processes of other users, with an interpreter that these may read")
    python, user = nobody
    answers = answers_of(python, **user)
    assert answers["user"] != os.getuid()
    check(answers)
