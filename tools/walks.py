"""How many files of limes does one call cross? ``python tools/walks.py [--functions WALK]``.

Calls an explainer once to warm it up, then again under ``sys.setprofile``. A *switch* is a call of a function
of limes whose file differs from that of the last one. The fewer files, the less a reader has to open to
follow a call. ``--functions`` lists the files of one walk, each with its functions in the order of the call.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline

import limes
from limes.compat.lime.lime_tabular import LimeTabularExplainer

PACKAGE = str(Path(limes.__file__).parent)
Call = Callable[[], object]


@dataclass
class Walk:
    """Functions of limes that a call enters, file by file."""

    files: dict[str, dict[str, int]] = field(default_factory=dict)
    calls: int = 0
    switches: int = 0
    _last: str | None = None

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Count a function of limes that is entered."""
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(PACKAGE):
            return
        functions = self.files.setdefault(path.removeprefix(PACKAGE + "/"), {})
        name = frame.f_code.co_qualname
        functions[name] = functions.get(name, 0) + 1
        self.calls += 1
        self.switches += path != self._last
        self._last = path

    @classmethod
    def of(cls, call: Call) -> Walk:
        """Walk through the second of two calls."""
        call()
        walk = cls()
        sys.setprofile(walk.profile)
        try:
            call()
        finally:
            sys.setprofile(None)
        return walk


def _table() -> tuple[Any, RandomForestRegressor]:
    X, y = load_diabetes(return_X_y=True)
    return X, RandomForestRegressor(10, max_depth=6, random_state=0).fit(X, y)


def forest() -> Call:
    """Explain a row of a forest, exactly."""
    X, model = _table()
    explainer = limes.TabularExplainer(model, X)
    return lambda: explainer(X[0])


def pooled_row() -> Call:
    """Explain a row of a function, from the pool."""
    X, model = _table()
    explainer = limes.TabularExplainer(lambda x: model.predict(x), X, max_calls=2048)
    return lambda: explainer(X[0])


def sampled_row() -> Call:
    """Explain a row of a function by separate draws: slopes have no pool."""
    X, model = _table()
    explainer = limes.TabularExplainer(lambda x: model.predict(x), X, bins=None, max_calls=2048)
    return lambda: explainer(X[0])


def text() -> Call:
    """Explain a text of a linear model on TF-IDF, exactly."""
    texts = ["a good film", "a bad film", "good and long", "bad and long", "long film"]
    model = make_pipeline(TfidfVectorizer(), Ridge()).fit(texts, [1.0, 0.0, 1.0, 0.0, 0.5])
    explainer = limes.TextExplainer(model)
    return lambda: explainer("a good and long film that is not bad")


def image() -> Call:
    """Explain an image of a linear model, exactly."""
    images = np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3), dtype=np.uint8)
    model = LinearRegression().fit(images.reshape(40, -1), np.arange(40.0))
    explainer = limes.ImageExplainer(model, segments="grid")
    return lambda: explainer(images[0])


def sparse() -> Call:
    """Explain a row of a forest by few literals."""
    X, model = _table()
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(X))
    return lambda: explainer(X[0])


def drop_in() -> Call:
    """Explain a row of a forest by lime's call."""
    X, model = _table()
    explainer = LimeTabularExplainer(X, mode="regression")
    return lambda: explainer.explain_instance(X[0], model.predict)


def sparse_table() -> Call:
    """Explain a row of a sparse table by lime's call."""
    X, model = _table()
    positive = sp.csr_matrix(np.maximum(X, 0.0))
    explainer = LimeTabularExplainer(positive, mode="regression")
    return lambda: explainer.explain_instance(positive[0], model.predict)


WALKS = {
    walk.__name__: walk
    for walk in (forest, text, image, sampled_row, pooled_row, sparse, drop_in, sparse_table)
}


def main() -> None:
    """Print a table of the walks, or the functions of one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--functions", choices=WALKS, help="list the functions of one walk")
    chosen = parser.parse_args().functions
    if chosen:
        for path, functions in Walk.of(WALKS[chosen]()).files.items():
            print(f"{path}: {', '.join(functions)}")
        return
    print(f"{'walk':14}{'files':>7}{'switches':>10}{'functions':>11}{'calls':>8}")
    for name, make in WALKS.items():
        walk = Walk.of(make())
        functions = sum(len(names) for names in walk.files.values())
        print(f"{name:14}{len(walk.files):7}{walk.switches:10}{functions:11}{walk.calls:8}")


if __name__ == "__main__":
    main()
