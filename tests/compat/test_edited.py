"""Explanations whose ``local_exp`` a client shortens, sorts or extends, of both engines."""

from __future__ import annotations

from copy import copy
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import limes
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.compat.lime.lime_text import LimeTextExplainer

plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6))
CLASSES = LogisticRegression().fit(X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0))
AMOUNTS = LinearRegression().fit(X, X @ np.arange(6.0))
NAMES = ["zqoak", "zqelm", "zqash", "zqfir", "zqyew", "zqbay"]
TEXT = "good food and bad service here"
WORDS = TEXT.split()


def kind_of_text(texts):
    good = [0.3 + 0.4 * ("good" in text) - 0.2 * ("bad" in text and "service" in text) for text in texts]
    return np.column_stack([good, np.subtract(1.0, good)])


def table(engine, mode="classification"):
    explainer = LimeTabularExplainer(X, mode=mode, feature_names=NAMES, random_state=0, engine=engine)
    if mode == "regression":
        return explainer.explain_instance(
            X[0], lambda x: AMOUNTS.predict(x) + np.sin(x[:, 0]), num_features=6, num_samples=600
        )
    ask = lambda x: CLASSES.predict_proba(x)  # noqa: E731 - a function is sampled, and has errors
    return explainer.explain_instance(X[0], ask, labels=(0, 1, 2), num_features=6, num_samples=600)


def text(engine, **options):
    explainer = LimeTextExplainer(random_state=0, engine=engine)
    return explainer.explain_instance(TEXT, kind_of_text, num_features=6, num_samples=200, **options)


KINDS = {
    "table": table,
    "regression": lambda engine: table(engine, "regression"),
    "text": lambda engine: text(engine, labels=(0, 1)),
    "top labels": lambda engine: text(engine, top_labels=2),
}


@cache
def explained(kind, engine):
    return KINDS[kind](engine)


def copied(kind, engine):
    explanation = copy(explained(kind, engine))
    explanation.local_exp = {label: list(pairs) for label, pairs in explanation.local_exp.items()}
    return explanation


# what clients do to {label: [(feature, coefficient)]}, of label 1
EDITS = {
    "none": lambda pairs: pairs,
    "shorter": lambda pairs: pairs[:3],
    "one": lambda pairs: pairs[2:3],
    "empty": lambda pairs: [],
    "reversed": lambda pairs: pairs[::-1],
    "by feature": sorted,
    "positive": lambda pairs: [(j, value) for j, value in pairs if value > 0],
    "tuples": tuple,
    "lists": lambda pairs: [[j, value] for j, value in pairs],
    "of numpy": lambda pairs: [(np.int64(j), np.float32(value)) for j, value in pairs],
    "doubled": lambda pairs: [(j, 2 * value) for j, value in pairs],
    "twice": lambda pairs: [*pairs, *pairs],
    "extended": lambda pairs: [*pairs[:2], (pairs[-1][0], 0.25)],
}


@pytest.mark.parametrize("engine", ["limit", "lime"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("edit", EDITS)
def test_edited_explanations_are_listed_and_drawn(kind, edit, engine, tmp_path):
    explanation = copied(kind, engine)
    errors = dict(explanation.standard_errors[1])
    pairs = explanation.local_exp[1] = EDITS[edit](explanation.local_exp[1])
    values = [float(value) for _, value in pairs]
    assert [value for _, value in explanation.as_list(1)] == values
    assert explanation.as_map()[1] is pairs
    figure = explanation.as_pyplot_figure(1)
    (axes,) = figure.axes
    bars = [bar for bar in axes.patches if bar.get_height() > 0]
    assert [bar.get_width() for bar in bars] == values[::-1]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        str(name) for name, _ in explanation.as_list(1)[::-1]
    ]
    segments = [line for part in axes.collections for line in part.get_segments()]
    reach = [1.96 * errors[int(j)] for j, _ in pairs][::-1]
    if any(reach):
        widths = [0.5 * np.ptp(segment[:, 0]) for segment in segments]
        np.testing.assert_allclose(widths, reach, rtol=1e-3, atol=1e-12)
    plt.close(figure)
    page = explanation.as_html(labels=[1])
    assert page == explanation.as_html(labels=[1])
    conditions = {str(name) for name, _ in explanation.as_list(1)}
    if kind in ("table", "regression"):
        for name in NAMES:
            kept = any(name in condition for condition in conditions)
            assert (name in page) == kept
    explanation.save_to_file(tmp_path / "page.html")
    assert explanation._repr_html_()


@pytest.mark.parametrize("engine", ["limit", "lime"])
@pytest.mark.parametrize("kind", ["table", "text", "top labels"])
def test_pages_of_labels_keep_their_outputs(kind, engine):
    """Labels are looked up by name: another order, or fewer of them, gave a page of another class."""
    explanation = copied(kind, engine)
    page = explanation.as_html(labels=[1])
    explanation.local_exp = dict(reversed(explanation.local_exp.items()))
    assert explanation.as_html(labels=[1]) == page
    explanation.local_exp.pop(0)
    assert explanation.as_html(labels=[1]) == page
    assert explanation.as_html()
    explanation.local_exp[2] = explanation.local_exp[1][:2]
    assert explanation.as_html(labels=[2])
    explanation.standard_errors = {}
    assert explanation.as_html(labels=[1])
    plt.close(explanation.as_pyplot_figure(1))


def test_the_page_of_a_label_is_that_of_its_class():
    """Numbers of the page against the explanation of limes itself."""
    explanation = copied("table", "limit")
    explanation.local_exp = {2: explanation.local_exp[2], 1: explanation.local_exp[1]}
    shown = explanation._shown([1])
    assert isinstance(shown, limes.Explanation)
    assert shown.predictions.item() == pytest.approx(CLASSES.predict_proba(X[:1])[0, 1])
