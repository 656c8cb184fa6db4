"""Every number that is shown with a coefficient, at all bandwidths, against enumeration of the model."""

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import beside
import limes
import oracle
from effort import crossed, repeats

rng = np.random.default_rng(0)
TABLE = rng.integers(0, [5, 4, 3, 6], size=(300, 4)) + 0.0
TABLE[:, 3] = np.round(TABLE[:, 3] ** 1.3, 2)
ANSWERS = 0.3 * TABLE[:, 0] * TABLE[:, 1] + np.sin(TABLE[:, 3]) * TABLE[:, 2] + 0.1 * rng.normal(size=300)
TWO = np.digitize(ANSWERS, [np.median(ANSWERS)])
THREE = np.digitize(ANSWERS, np.quantile(ANSWERS, [0.33, 0.66]))
ROWS = TABLE[[0, 7]]
SCALE = np.sqrt(TABLE.shape[1])
MODELS = {
    "sum": (Ridge(), ANSWERS),
    "products": (make_pipeline(PolynomialFeatures(2), Ridge()), ANSWERS),
    "kernels": (SVR(C=50, gamma=0.3), ANSWERS),
    "tree": (DecisionTreeRegressor(max_depth=5, random_state=0), ANSWERS),
    "forest": (RandomForestRegressor(12, random_state=0), ANSWERS),
    "classes": (RandomForestClassifier(5, random_state=0), THREE),
    "boosting": (GradientBoostingRegressor(n_estimators=20, random_state=0), ANSWERS),
    "logistic": (LogisticRegression(C=10), TWO),
    "stumps": (GradientBoostingClassifier(n_estimators=20, max_depth=1, random_state=0), TWO),
    "pairs behind a link": (GradientBoostingClassifier(n_estimators=12, max_depth=2, random_state=0), TWO),
    "exponential": (PoissonRegressor(), np.abs(ANSWERS)),
    "softmax": (LogisticRegression(), THREE),
    "kinks": (
        MLPRegressor(hidden_layer_sizes=(5,), solver="lbfgs", alpha=1.0, max_iter=50000, random_state=0),
        ANSWERS,
    ),
    "network": (
        MLPRegressor(
            hidden_layer_sizes=(5,),
            activation="tanh",
            solver="lbfgs",
            alpha=1.0,
            max_iter=50000,
            random_state=0,
        ),
        ANSWERS,
    ),
    "mixed": (
        VotingRegressor([("a", Ridge()), ("b", RandomForestRegressor(4, random_state=0))]),
        ANSWERS,
    ),
}
EDGES = [None, [1.5], [0.5], [1.5, 4.0]]
BINS = [None, [-1.0, 1.5, 9.0], [-1.0, 0.5, 9.0], [-1.0, 1.5, 4.0, 99.0]]
# options, inner edges, and whether weights are smooth
LAWS = {
    "cells": ({"categorical": [0, 1, 2, 3]}, [None] * 4, False),
    "bins": ({"categorical": [0], "bins": BINS}, EDGES, False),
    "distances": ({"categorical": [0], "bins": BINS, "weights": "euclidean"}, EDGES, True),
}
BANDWIDTHS = (0.1, 0.25, 0.75, np.inf)


def laws_around(row, nu, edges, smooth):
    return [
        beside.column(TABLE[:, j], row[j], nu, "distances" if smooth and cut is not None else "bins", cut)
        for j, cut in enumerate(edges)
    ]


class Comparison:
    """Numbers and their errors against the truth: exact ones, and how far estimates are off."""

    def __init__(self):
        self.worst, self.scores = 0.0, []

    def add(self, value, error, expected, size):
        value, error, expected = (np.asarray(each, dtype=float) for each in (value, error, expected))
        assert value.shape == expected.shape
        assert not np.isnan(value).any()
        gap = np.abs(value - expected)
        allowed = oracle.EXACT * np.broadcast_to(size, gap.shape)
        exact = np.broadcast_to(error, gap.shape) == 0
        self.worst = max(self.worst, float((gap[exact] / allowed[exact]).max(initial=0.0)))
        assert np.isfinite(error).all()
        # an error of an estimate may be below the rounding of the number
        beyond = np.maximum(gap - allowed, 0.0)[~exact]
        self.scores += (beyond / np.broadcast_to(error, gap.shape)[~exact]).tolist()


def compare(explanation, predict, options, nu):
    """Compare all numbers of an explanation."""
    _, edges, smooth = options
    answers, size = beside.answers(predict, TABLE.T), None
    d, size = TABLE.shape[1], float(np.abs(answers).max())
    compared = Comparison()
    for i, row in enumerate(ROWS):
        truth = beside.truth(answers, laws_around(row, nu, edges, smooth))
        k = truth.coef.shape[1]
        compared.add(explanation.coefficients.values[i].reshape(d, k), 0.0, truth.coef, size)
        compared.add(explanation.coefficients.intercepts[i].reshape(k), 0.0, truth.intercept, size)
        for name in ("fidelity", "additive_fidelity"):
            expected = truth.r_squared if name == "fidelity" else truth.additive
            numbers, errors = (getattr(explanation, each)[i] for each in (name, f"{name}_errors"))
            compared.add(np.reshape(numbers, k), np.reshape(errors, k), expected, 1.0)
        one, names, outputs = explanation[i], explanation.feature_names, explanation.output_names
        effects = list(one.effects)
        assert len(effects) == d * k
        for effect in effects:
            j, output = names.index(effect.feature), outputs.index(effect.output)
            compared.add(effect.values, effect.standard_errors, truth.effects[j][:, output], size)
            compared.add(effect.masses, 0.0, truth.masses[j], 1.0)
            compared.add(effect.share, effect.share_error, truth.shares[j, output], 1.0)
        for pair in one.interactions(6):
            output = outputs.index(pair.output)
            both, share = truth.pairs[tuple(names.index(name) for name in pair.features)]
            compared.add(pair.values, pair.standard_errors, both[..., output], size)
            compared.add(pair.share, pair.share_error, share[output], 1.0)
    return compared


@pytest.mark.parametrize(
    ("name", "law", "factor"),
    crossed(MODELS, LAWS, BANDWIDTHS, share=3),
)
def test_every_number_is_that_of_enumeration(name, law, factor):
    model, y = MODELS[name]
    model.fit(TABLE, y)
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    output = {"output": 1} if hasattr(model, "predict_proba") and y is TWO else {}
    if output:
        predict = lambda x: model.predict_proba(x)[:, 1]  # noqa: E731
    nu = float(factor * SCALE)
    explainer = limes.TabularExplainer(
        model, TABLE, law="empirical", method="exact", bandwidth=nu, rng=1, **LAWS[law][0], **output
    )
    compared = compare(explainer(ROWS, progress=False), predict, LAWS[law], nu)
    assert compared.worst <= 1.0
    assert np.max(compared.scores, initial=0.0) < oracle.Z_LIMIT


@pytest.mark.parametrize("factor", BANDWIDTHS)
@pytest.mark.parametrize("name", ["forest", "kernels", "kinks"])
def test_errors_of_r_squared_cover_and_are_not_much_too_wide(name, factor):
    """For what has no closed form: their intervals cover, and root mean squares of scores are near 1."""
    model, y = MODELS[name]
    model.fit(TABLE, y)
    options, edges, smooth = LAWS["cells"]
    answers, nu = beside.answers(model.predict, TABLE.T), float(factor * SCALE)
    truths = [beside.truth(answers, laws_around(row, nu, edges, smooth)) for row in ROWS]
    scores = []
    for seed in range(repeats(200, 24)):
        explanation = limes.TabularExplainer(
            model, TABLE, law="empirical", bandwidth=nu, rng=seed, **options
        )(ROWS, progress=False)
        for i, truth in enumerate(truths):
            for number, error, expected in (
                (explanation.fidelity[i], explanation.fidelity_errors[i], truth.r_squared),
                (explanation.additive_fidelity[i], explanation.additive_fidelity_errors[i], truth.additive),
            ):
                scores.append((number - float(expected[0])) / max(error, oracle.EXACT))
    assert np.mean(np.abs(scores) < 1.96) > 0.93
    assert factor == 0.1 or np.sqrt(np.mean(np.square(scores))) > 0.3


BLACK_BOXES = {
    "rare": lambda x: ((x[:, 0] == 4) & (x[:, 1] == 3)).astype(float),
    "parity": lambda x: np.prod(2.0 * (x[:, :3] > 1) - 1.0, axis=1),
    "product": lambda x: x[:, 0] * x[:, 1] + x[:, 2],
    "exponential": lambda x: np.exp(0.5 * x[:, :3].sum(axis=1)),
    "constant nearby": lambda x: (x[:, 3] > 8).astype(float),
    "probability": lambda x: 1.0 / (1.0 + np.exp(3.0 - x[:, 0] * x[:, 2])),
}


def estimates(explanation, i, truth):
    """Values, errors and truths of effects, their shares, R² of all, and the largest pairs of one row."""
    one = explanation[i]
    yield explanation.additive_fidelity[i], explanation.additive_fidelity_errors[i], truth.additive[0]
    for j, effect in enumerate(one.effects):
        yield effect.values, effect.standard_errors, truth.effects[j][:, 0]
        yield effect.share, effect.share_error, truth.shares[j, 0]
    for pair in one.interactions(2):
        both, share = truth.pairs[tuple(one.feature_names.index(name) for name in pair.features)]
        yield pair.values, pair.standard_errors, both[..., 0]
        yield pair.share, pair.share_error, share[0]


@pytest.mark.parametrize("factor", BANDWIDTHS)
def test_errors_of_sampled_effects_cover(factor):
    """They are within their errors, or unknown with an infinite one."""
    options, edges, smooth = LAWS["cells"]
    nu, inside = float(factor * SCALE), []
    for model in BLACK_BOXES.values():
        answers = beside.answers(model, TABLE.T)
        truths = [beside.truth(answers, laws_around(row, nu, edges, smooth)) for row in ROWS]
        for seed in range(repeats(200, 2)):
            explainer = limes.TabularExplainer(
                model,
                TABLE,
                law="empirical",
                bandwidth=nu,
                rng=seed,
                max_calls=1104,
                contributions=False,
                **options,
            )
            explanation = explainer(ROWS, progress=False)
            for i, truth in enumerate(truths):
                for numbers in estimates(explanation, i, truth):
                    value, error, expected = (np.atleast_1d(np.asarray(n, dtype=float)) for n in numbers)
                    unknown = np.isnan(value)
                    assert np.isinf(error[unknown]).all()
                    allowed = 1.96 * error + oracle.EXACT * float(np.abs(answers).max())
                    inside += (np.abs(value - expected) <= allowed)[~unknown].ravel().tolist()
    assert np.mean(inside) > 0.93
