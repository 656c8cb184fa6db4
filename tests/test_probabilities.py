"""One answer to "are these probabilities?": of all callers, for answers in any precision."""

from __future__ import annotations

import numpy as np
import pytest

import limes
from internals import (
    FirstAnswers,
    are_probabilities,
    misleading_surrogates,
    no_probabilities,
    odd_probabilities,
    shown_of,
)

RNG = np.random.default_rng(0)


def softmax(k, n=200, spread=1.0, seed=0):
    scores = spread * np.random.default_rng(seed).normal(size=(n, k))
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def bfloat16(p):
    """The upper half of float32's bits, rounded."""
    bits = p.astype(np.float32).view(np.uint32) + np.uint32(1 << 15)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32).astype(float)


# What stores or sends probabilities, and what comes back
PRECISIONS = {
    "float64": lambda p: p,
    "float32": lambda p: p.astype(np.float32).astype(float),
    "float16": lambda p: p.astype(np.float16).astype(float),
    "bfloat16": bfloat16,
    "bytes": lambda p: np.rint(255 * p) / 255,
    **{f"{digits} digits": (lambda p, d=digits: p.round(d)) for digits in range(1, 8)},
    "3 digits in float32": lambda p: p.round(3).astype(np.float32).astype(float),
    "cut after 5 digits": lambda p: np.floor(p * 1e5 + 0.5) / 1e5,
    "labels": lambda p: np.eye(p.shape[1])[p.argmax(axis=1)],
}
NO_PROBABILITIES = {
    "log odds": lambda k: RNG.normal(size=(200, k)),
    "percentages": lambda k: 100.0 * softmax(k),
    "percentages in 1 digit": lambda k: (100.0 * softmax(k)).round(1),
    "labels that do not exclude each other": lambda k: RNG.uniform(size=(200, k)),
    "such labels in 2 digits": lambda k: RNG.uniform(size=(200, k)).round(2),
    "such labels as 0 and 1": lambda k: (RNG.uniform(size=(200, k)) > 0.5).astype(float),
    "without normalisation": lambda k: 0.9 * softmax(k),
    "off in the third of six digits": lambda k: softmax(k).round(6) + np.r_[0.002 * k, np.zeros(k - 1)],
    "one row of many adds up to 2": lambda k: np.vstack([softmax(k), np.full((1, k), 2.0 / k)]),
}
CASES = [
    *[(f"{name}, {k}", make(softmax(k)), True) for name, make in PRECISIONS.items() for k in (2, 3, 10, 40)],
    *[(f"{name}, {k}", make(k), False) for name, make in NO_PROBABILITIES.items() for k in (2, 3, 10)],
]


def of_function(answers):
    """Whether a surrogate on the other side of 1/2, or beyond 1, has a warning."""
    return any(misleading_surrogates(answers, answers + 2.0, "call", [*map(str, range(answers.shape[1]))]))


def of_classifier(answers):
    class Model:
        classes_ = np.arange(answers.shape[1])

    return no_probabilities(Model(), "predict_proba", FirstAnswers([answers]), answers) == ""


CALLERS = {"function": of_function, "classifier": of_classifier}


@pytest.mark.parametrize(("name", "answers", "expected"), CASES, ids=[case[0] for case in CASES])
def test_every_caller_has_the_same_answer(name, answers, expected):
    verdicts = {caller: decide(answers) for caller, decide in CALLERS.items()}
    verdicts["itself"] = are_probabilities(answers)
    if answers.shape[1] == 2:
        verdicts["shown outputs"] = shown_of(answers) == [1]
    assert set(verdicts.values()) == {expected}, (name, verdicts)
    if expected:
        assert odd_probabilities(answers) == {}


def test_answers_of_some_classes_make_no_claim():
    assert are_probabilities(softmax(3)[:, :2], add_up=False)
    assert not are_probabilities(softmax(3)[:, :2])
    assert not are_probabilities(np.full((2, 2), np.nan))


@pytest.mark.parametrize("digits", [2, 3, None])
def test_no_row_of_a_function_that_rounds_is_without_its_warning(digits):
    """Counted from predictions and surrogates alone: the sides of 1/2, and what lies beyond 0 and 1."""
    W, X = np.random.default_rng(3).normal(size=(4, 10)), np.random.default_rng(4).normal(size=(300, 4))

    def model(x):
        powers = np.exp(x @ W)
        p = powers / powers.sum(axis=1, keepdims=True)
        return p if digits is None else p.round(digits)

    explainer = limes.TabularExplainer(model, X, max_calls=512, contributions=False)
    explanation = explainer(X[:100], progress=False)
    f, g = explanation.predictions, explanation.coefficients.surrogate_predictions
    across = ((f - 0.5) * (g - 0.5) < 0).any(axis=1)
    beyond = (((g < -1e-9) | (g > 1 + 1e-9)) & ~((f - 0.5) * (g - 0.5) < 0)).any(axis=1)
    codes = [{w.code for w in row} for row in explanation.row_warnings]
    assert across.sum() > 5
    assert ["other side" in row for row in codes] == across.tolist()
    assert ["no probability" in row for row in codes] == beyond.tolist()
    assert not any("probabilities" in row for row in codes)
