"""``hold=``: columns that no perturbed row changes, against enumeration and backgrounds with one value."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

import limes
import oracle
from limes.exceptions import InputError

rng = np.random.default_rng(0)
LEVELS = rng.integers(0, [3, 4, 2, 3], size=(200, 4)).astype(float)
ANSWERS = LEVELS[:, 0] * LEVELS[:, 1] + np.sin(LEVELS[:, 3]) * LEVELS[:, 2] + 0.1 * rng.normal(size=200)
EVERY = [0, 1, 2, 3]
HELD = [1, 2]
MODELS = {
    "linear": (LinearRegression(), ANSWERS),
    "forest": (RandomForestRegressor(7, random_state=0), ANSWERS),
    "classes": (RandomForestClassifier(5, random_state=0), (ANSWERS > 1).astype(int)),
    "histograms": (HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=3), ANSWERS),
    "kernels": (SVR(C=50, gamma=0.3), ANSWERS),
    "quadratic": (make_pipeline(PolynomialFeatures(2), LinearRegression()), ANSWERS),
    "probability": (LogisticRegression(), (ANSWERS > 1).astype(int)),
    "network": (
        MLPRegressor(
            hidden_layer_sizes=(4,), activation="tanh", solver="lbfgs", max_iter=5000, random_state=0
        ),
        ANSWERS,
    ),
}


def enumerated(predict, row, bandwidth=None):
    """Intercept and coefficients (k,) and (d, k), and R², by least squares on all such rows."""
    ratio = np.exp(-0.5 / (0.75 * 2.0 if bandwidth is None else bandwidth) ** 2)
    values = [np.unique(column) for column in LEVELS.T]
    shares = [np.mean(LEVELS[:, [j]] == levels, axis=0) for j, levels in enumerate(values)]
    free = [j for j in EVERY if j not in HELD]
    states = np.array(list(itertools.product(*(range(values[j].size) for j in free))))
    x, w = np.tile(row, (len(states), 1)), np.ones(len(states))
    for at, j in zip(states.T, free, strict=True):
        x[:, j] = values[j][at]
        w *= shares[j][at] * np.where(x[:, j] == row[j], 1.0, ratio)
    w /= w.sum()
    f = predict(x).reshape(len(x), -1)
    h = np.column_stack([np.ones(len(x)), (x == row)[:, free]])
    fitted = np.linalg.lstsq(np.sqrt(w)[:, None] * h, np.sqrt(w)[:, None] * f, rcond=None)[0]
    coef = np.zeros((4, f.shape[1]))
    coef[free] = fitted[1:]
    remaining, away = f - h @ fitted, f - w @ f
    variance = w @ away**2
    varies = variance > 1e-20
    return fitted[0], coef, np.where(varies, 1 - (w @ remaining**2) / np.where(varies, variance, 1.0), 1.0)


@pytest.mark.parametrize("options", [{}, {"bandwidth": 0.5}])
@pytest.mark.parametrize("name", MODELS)
def test_held_columns_are_those_of_enumeration(name, options):
    model, y = MODELS[name]
    model.fit(LEVELS, y)
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    explainer = limes.TabularExplainer(model, LEVELS, categorical=EVERY, hold=HELD, **options)
    explanation = explainer(LEVELS[:5], progress=False)
    assert explanation.method == "exact"
    for i, row in enumerate(LEVELS[:5]):
        intercept, coef, r2 = enumerated(predict, row, **options)
        values, size = explanation.coefficients.values[i].reshape(4, -1), np.abs(coef).max()
        np.testing.assert_allclose(values, coef, rtol=0, atol=oracle.EXACT * max(size, 1.0))
        assert not values[HELD].any()
        np.testing.assert_allclose(
            np.reshape(explanation.coefficients.intercepts[i], -1),
            intercept,
            rtol=0,
            atol=oracle.EXACT * max(size, 1.0),
        )
        gap = np.abs(np.reshape(explanation.fidelity[i], -1) - r2)
        assert (gap <= 1e-9 + oracle.Z_LIMIT * np.reshape(explanation.fidelity_errors[i], -1)).all()
        np.testing.assert_allclose(
            explanation.predictions[i], predict(row[None])[0], rtol=oracle.EXACT, atol=1e-12
        )
        effects = explanation[i].effects
        assert [len(effects[j].cells) for j in HELD] == [1, 1]
        assert all(effects[j].values == pytest.approx(0.0, abs=1e-12) for j in HELD)


def test_a_black_box_is_sampled_around_the_held_values():
    def model(x):
        assert (x[:, HELD] == LEVELS[0, HELD]).all() or len(x) != 4096
        return np.exp(0.3 * x[:, 0] * x[:, 1]) + x[:, 2] * x[:, 3]

    z = []
    for seed in range(10):
        explainer = limes.TabularExplainer(
            model, LEVELS, categorical=EVERY, hold=HELD, rng=seed, max_calls=256, control="none"
        )
        explanation = explainer(LEVELS[:1], progress=False)
        assert explanation.method == "sampled"
        _, coef, _ = enumerated(model, LEVELS[0])
        free = explanation.coefficients.standard_errors[0] > 0
        assert free.tolist() == [True, False, False, True]
        z += (
            (explanation.coefficients.values[0] - coef[:, 0])[free]
            / explanation.coefficients.standard_errors[0][free]
        ).tolist()
    assert np.abs(z).max() < oracle.Z_LIMIT


@pytest.mark.parametrize(
    "options",
    [{}, {"weights": "euclidean"}, {"bins": None}, {"law": "empirical"}, {"bins": "decile"}],
    ids=str,
)
@pytest.mark.parametrize("model", [LinearRegression(), RandomForestRegressor(6, random_state=0)])
def test_holding_a_number_is_a_background_that_has_its_value_alone(model, options):
    X = rng.normal(size=(150, 3))
    model.fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    explanation = limes.TabularExplainer(model, X, hold=[1], **options)(X[:3], progress=False)
    for i in range(3):
        same = X.copy()
        same[:, 1] = X[i, 1]
        expected = limes.TabularExplainer(model, same, **options)(X[[i]], progress=False)
        np.testing.assert_allclose(
            explanation.coefficients.values[i], expected.coefficients.values[0], rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            explanation.coefficients.intercepts[i], expected.coefficients.intercepts[0], rtol=1e-9
        )
        assert explanation.conditions[i][1] == f"x1 = {X[i, 1]:.6g}"


def test_held_columns_go_by_name_and_are_stated():
    frame = pd.DataFrame(LEVELS, columns=list("abcd"))
    frame["sex"] = np.where(LEVELS[:, 2] == 0, "f", "m")
    model = make_pipeline(StandardScaler(), LinearRegression())
    model.fit(frame[list("abcd")], ANSWERS)

    def predict(table):
        return model.predict(table[list("abcd")]) + (table["sex"] == "m")

    explainer = limes.TabularExplainer(predict, frame, hold=["sex", "b"], max_calls=256)
    explanation = explainer(frame[:2], progress=False)
    assert explanation.provenance["hold"] == ["b", "sex"]
    assert explanation.conditions[0][4] == f"sex = {frame.sex[0]}"
    assert explanation.conditions[0][1] == f"b = {frame.b[0]:g}"
    assert not explanation[:, ["sex", "b"]].coefficients.values.any()
    assert not explanation[:, ["sex", "b"]].coefficients.standard_errors.any()
    limes.diagnose(explanation)
    assert explanation.to_html()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hold": ["age"]}, "hold='age' is not a column"),
        ({"hold": EVERY}, "hold= names every column"),
        ({"hold": [0], "law": "joint"}, "law='joint' explains with the background's rows"),
    ],
)
def test_columns_that_cannot_be_held_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        limes.TabularExplainer(lambda x: x[:, 0], LEVELS, **options)
