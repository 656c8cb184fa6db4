"""A model that ends the program is an error; a signal ends the program."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import limes
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.exceptions import Interrupted, ModelError

X = np.random.default_rng(0).normal(size=(60, 3))


def leave(error):
    raise error


EXITS = [
    (lambda: sys.exit(0), SystemExit, r"called sys\.exit\(0\)"),
    (lambda: sys.exit(9), SystemExit, r"called sys\.exit\(9\)"),
    (sys.exit, SystemExit, r"called sys\.exit\(\)"),
    (lambda: sys.exit("no licence"), SystemExit, r"called sys\.exit\('no licence'\)"),
    (partial(leave, GeneratorExit()), GeneratorExit, "raised GeneratorExit"),
    (partial(leave, RuntimeError("gone")), RuntimeError, "raised RuntimeError.*: gone"),
]


def causes(error):
    while error is not None:
        yield error
        error = error.__cause__


class Switched:
    """A model that fails once it is switched on."""

    def __init__(self, fail):
        self.fail = fail
        self.on = False

    def __call__(self, rows):
        if self.on:
            self.fail()
        return np.asarray([float(np.sum(np.asarray(row, dtype=float))) for row in rows])


def tabular(fail):
    model = Switched(fail)
    explainer = limes.TabularExplainer(model, X, law="joint")
    model.on = True
    return explainer(X[:1])


def at_once(fail):
    model = Switched(fail)
    model.on = True
    return limes.TabularExplainer(model, X)(X[:1])


def sparse(fail):
    model = Switched(fail)
    explainer = limes.SparseExplainer(model, k=1, literals=limes.Literals.fit(X))
    model.on = True
    return explainer(X[:1])


def text(fail):
    def model(texts):
        fail()

    return limes.TextExplainer(model)("a few words")


def text_step(fail):
    texts, y = ["good film", "bad film", "good", "bad"], [1, 0, 1, 0]
    switch = Switched(fail)

    def step(counts):
        if switch.on:
            fail()
        return counts

    model = make_pipeline(CountVectorizer(), FunctionTransformer(step), LogisticRegression()).fit(texts, y)
    switch.on = True
    return limes.TextExplainer(model)("good bad film")


def image(fail):
    def model(images):
        fail()

    return limes.ImageExplainer(model, segments="grid")(np.zeros((16, 16, 3)))


def by_lime(fail):
    explainer = LimeTabularExplainer(X, mode="regression")
    return explainer.explain_instance(X[0], lambda rows: fail())


@pytest.mark.parametrize("explain", [tabular, at_once, sparse, text, text_step, image, by_lime])
@pytest.mark.parametrize(("fail", "kind", "message"), EXITS[:1] + EXITS[4:])
def test_every_explainer_reports_it_as_an_error_of_the_model(explain, fail, kind, message):
    with pytest.raises(ModelError, match=message) as caught:
        explain(fail)
    assert kind in [type(error) for error in causes(caught.value)]


@pytest.mark.parametrize(("fail", "kind", "message"), EXITS)
def test_the_error_is_the_cause_and_the_text_has_the_code(fail, kind, message):
    with pytest.raises(ModelError, match=message) as caught:
        at_once(fail)
    assert type(caught.value.__cause__) is kind


@contextmanager
def handled(number, handler):
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


class Handlers:
    """Handlers of every shape that Python calls."""

    def method(self, number, frame):
        sys.exit(143)

    def __call__(self, number, frame):
        sys.exit(143)


def plain(number, frame):
    sys.exit(143)


def bound(code, number, frame):
    sys.exit(code)


@pytest.mark.parametrize("handler", [plain, Handlers().method, Handlers(), partial(bound, 143)])
def test_a_signal_whose_handler_exits_ends_the_program(handler):
    with handled(signal.SIGTERM, handler), pytest.raises(SystemExit) as ended:
        at_once(lambda: signal.raise_signal(signal.SIGTERM))
    assert ended.value.code == 143


def interrupt(number, frame):
    raise KeyboardInterrupt


@pytest.mark.parametrize("handler", [signal.default_int_handler, interrupt])
@pytest.mark.parametrize("explain", [at_once, tabular, text])
def test_ctrl_c_stops_the_explanation(explain, handler):
    with handled(signal.SIGINT, handler), pytest.raises(KeyboardInterrupt):
        explain(lambda: signal.raise_signal(signal.SIGINT))


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL, interrupt])
def test_a_keyboard_interrupt_that_no_key_caused_is_an_error_of_the_model(handler):
    with handled(signal.SIGINT, handler), pytest.raises(ModelError, match="raised KeyboardInterrupt"):
        at_once(partial(leave, KeyboardInterrupt()))


def test_a_keyboard_interrupt_is_the_users_where_python_cannot_tell():
    with handled(signal.SIGINT, signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        at_once(partial(leave, KeyboardInterrupt()))


def test_in_threads_of_workers_every_interrupt_is_the_models():
    def model(texts):
        raise KeyboardInterrupt

    with pytest.raises(ModelError, match="raised KeyboardInterrupt") as caught:
        limes.TextExplainer(model)(["one text", "two texts"], workers=2)
    assert not isinstance(caught.value, Interrupted)
