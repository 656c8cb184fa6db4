"""Functions at the same calls as ``lime``, in a new process each, with the machine's own thread settings.

    python -m benchmarks.drop_in.fresh CASE WAY

prints the seconds of wall and CPU of the first call, and the medians of `ROUNDS` further ones, outside of the
model. Ways are ``lime`` itself and the drop-in's engines; nothing is read: the models are functions.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.progress import say

WAYS = ("lime", "limit", "engine lime")
ROUNDS, PROCESSES = 5, 2
COLUMNS, WORDS = (10, 30), (20, 100, 700)
CASES = (
    *(f"table of {d} columns" for d in COLUMNS),
    *(f"text of {d} words" for d in WORDS),
    "image of 224 x 224",
)
GOALS = {
    f"{case}, {way}: times less {clock}": 1.0
    for case in CASES
    for way in WAYS[1:]
    for clock in ("wall", "CPU")
}


def measure() -> dict[str, float]:
    """Medians over processes, the three ways in turn; and how many times less than ``lime``'s they are."""
    figures: dict[str, float] = {}
    for case in CASES:
        say(f"drop-in: {case}")
        runs = [[_process(case, way) for way in WAYS] for _ in range(PROCESSES)]
        wall, cpu, first = np.median(runs, axis=0).T.tolist()
        for k, way in enumerate(WAYS):
            figures[f"{case}, {way}: s of the first call"] = first[k]
            figures[f"{case}, {way}: s outside the model"] = wall[k]
            if k:
                figures[f"{case}, {way}: times less wall"] = wall[0] / wall[k]
                figures[f"{case}, {way}: times less CPU"] = cpu[0] / cpu[k]
    return figures


def _process(case: str, way: str) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.drop_in.fresh", case, way]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(process.stdout.splitlines()[-1])


def _timed(case: str, way: str) -> list[float]:
    """Wall and CPU outside of the model, medians after the first call, and the first call's wall."""
    calls = _calls(case, way)
    model = next(calls)
    costs = []
    for call in calls:
        model.wall = model.cpu = 0.0
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        costs.append((time.perf_counter() - wall - model.wall, time.process_time() - cpu - model.cpu))
    first, *rest = costs
    return [*np.median(rest, axis=0).tolist(), first[0]]


class Timed:
    """A model that knows how much of both clocks it used."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self.ask, self.wall, self.cpu = ask, 0.0, 0.0

    def __call__(self, batch: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        answer = self.ask(batch)
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu
        return answer


def _calls(case: str, way: str) -> Iterator[Any]:
    """The model, then one call after the other."""
    kind, _, size = case.partition(" of ")
    yield from {"table": _table, "text": _text, "image": _image}[kind](way, int(size.split()[0]))


def _table(way: str, columns: int) -> Iterator[Any]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import scale

    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X[:, :columns])
    model = Timed(LogisticRegression(max_iter=1000).fit(X, y).predict_proba)
    yield model
    explainer = _module(way, "lime_tabular").LimeTabularExplainer(X, random_state=0, **_engine(way))
    for row in X[: ROUNDS + 1]:
        yield lambda row=row: explainer.explain_instance(row, model)


def _text(way: str, words: int) -> Iterator[Any]:
    """Words as frequent as in any language, and how many of them speak for one side."""
    rng = np.random.default_rng(0)
    names = np.array([f"word{i}" for i in range(8000)])
    share = 1.0 / np.arange(1, len(names) + 1)
    weight = dict(zip(names.tolist(), rng.normal(size=len(names)).tolist(), strict=True))

    def ask(texts: Any) -> Any:
        score = np.array([sum(weight.get(word, 0.0) for word in text.split()) for text in texts])
        p = 1 / (1 + np.exp(-score / np.sqrt(words)))
        return np.column_stack([1 - p, p])

    model = Timed(ask)
    yield model
    explainer = _module(way, "lime_text").LimeTextExplainer(random_state=0, **_engine(way))
    for _ in range(ROUNDS + 1):
        text = " ".join(rng.choice(names, words, p=share / share.sum()))
        yield lambda text=text: explainer.explain_instance(text, model)


def _image(way: str, side: int) -> Iterator[Any]:
    from benchmarks.drop_in.image import corners, photograph

    image, model = photograph(), Timed(corners)
    assert image.shape[0] == side
    yield model
    explainer = _module(way, "lime_image").LimeImageExplainer(random_state=0, **_engine(way))
    for _ in range(ROUNDS + 1):
        yield lambda: explainer.explain_instance(image, model)


def _module(way: str, name: str) -> Any:
    from importlib import import_module

    return import_module(f"lime.{name}" if way == "lime" else f"limes.compat.lime.{name}")


def _engine(way: str) -> dict[str, str]:
    return {} if way == "lime" else {"engine": way.removeprefix("engine ")}


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    print(json.dumps(_timed(*sys.argv[1:])))
