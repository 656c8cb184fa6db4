"""How much of limes does one warm call meet? ``python tools/walks.py [--functions WALK] [--types WALK]``.

Calls an explainer once to warm it up, then again under ``sys.setprofile``, and counts, of limes alone,

- *types*: classes of the values that entered functions hold in local variables,
- *files* and *functions* that are entered, and the *lines* of these functions,
- *switches*: calls of a function whose file differs from that of the last one.

The fewer, the less a reader has to know to follow a call. The options list those of one walk.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
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
    """Functions of limes that a call enters, file by file, and the classes that they hold."""

    files: dict[str, dict[str, int]] = field(default_factory=dict)
    types: dict[str, set[str]] = field(default_factory=dict)  # a class, and the functions that hold it
    spans: dict[tuple[str, str], set[int]] = field(default_factory=dict)  # lines of each function
    calls: int = 0
    switches: int = 0
    _last: str | None = None

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Count a function of limes that is entered, and what it holds when it returns."""
        path = frame.f_code.co_filename
        if not path.startswith(PACKAGE):
            return
        name = frame.f_code.co_qualname
        if event == "call":
            functions = self.files.setdefault(path.removeprefix(PACKAGE + "/"), {})
            functions[name] = functions.get(name, 0) + 1
            self.spans.setdefault((path, name), _lines(frame.f_code))
            self.calls += 1
            self.switches += path != self._last
            self._last = path
        elif event == "return":
            for value in frame.f_locals.values():
                kind = type(value)
                if kind.__module__.split(".")[0] == "limes":
                    self.types.setdefault(f"{kind.__module__}.{kind.__qualname__}", set()).add(name)

    @property
    def lines(self) -> int:
        """Lines of the functions that are entered; one inside another counts once."""
        by_file = dict[str, set[int]]()
        for (path, _), lines in self.spans.items():
            by_file.setdefault(path, set()).update(lines)
        return sum(map(len, by_file.values()))

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


def _lines(code: CodeType) -> set[int]:
    """From the head of a function to its last line, whatever of it runs."""
    lines = [line for _, _, line in code.co_lines() if line is not None]
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            lines += _lines(inner)
    return set(range(code.co_firstlineno, max(lines, default=code.co_firstlineno) + 1))


def _table() -> tuple[Any, RandomForestRegressor]:
    X, y = load_diabetes(return_X_y=True)
    return X, RandomForestRegressor(10, max_depth=6, random_state=0).fit(X, y)


def forest() -> Call:
    """Explain a row of a forest, exactly."""
    X, model = _table()
    explainer = limes.TabularExplainer(model, X)
    return lambda: explainer(X[0])


def contributions() -> Call:
    """Explain a row of a forest by its contributions alone, exactly."""
    X, model = _table()
    explainer = limes.TabularExplainer(model, X)
    return lambda: explainer.contributions(X[0])


def pooled_row() -> Call:
    """Explain a row of a function, from the pool, with contributions."""
    X, model = _table()
    explainer = limes.TabularExplainer(lambda x: model.predict(x), X)
    return lambda: explainer(X[0]).contributions


def pooled_coefficients() -> Call:
    """Explain a row of a function, from the pool, without contributions."""
    X, model = _table()
    explainer = limes.TabularExplainer(lambda x: model.predict(x), X, contributions=False)
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
    for walk in (
        forest,
        contributions,
        text,
        pooled_row,
        pooled_coefficients,
        drop_in,
        sampled_row,
        image,
        sparse,
        sparse_table,
    )
}


def main() -> None:
    """Print a table of the walks, or the functions or types of one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--functions", choices=WALKS, help="list the functions of one walk")
    parser.add_argument(
        "--types", choices=WALKS, help="list the types of one walk, and functions that hold them"
    )
    chosen = parser.parse_args()
    if chosen.functions:
        for path, functions in Walk.of(WALKS[chosen.functions]()).files.items():
            print(f"{path}: {', '.join(functions)}")
        return
    if chosen.types:
        for kind, holders in sorted(Walk.of(WALKS[chosen.types]()).types.items()):
            print(f"{kind}: {', '.join(sorted(holders))}")
        return
    print(f"{'walk':22}{'types':>7}{'files':>7}{'functions':>11}{'lines':>8}{'switches':>10}{'calls':>8}")
    for name, make in WALKS.items():
        walk = Walk.of(make())
        functions = sum(len(names) for names in walk.files.values())
        counts = f"{len(walk.types):7}{len(walk.files):7}{functions:11}{walk.lines:8}"
        counts += f"{walk.switches:10}{walk.calls:8}"
        print(f"{name:22}{counts}")


if __name__ == "__main__":
    main()
