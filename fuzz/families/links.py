"""Probabilities of two classes behind a sum, and means behind a log link."""

from __future__ import annotations

from typing import Any

from fuzz.families.columns import classes, number, pick, size, target
from fuzz.families.linear import few
from fuzz.options import Menu
from fuzz.script import Call, Setup, call
from fuzz.tables import TableCase

_LINEAR = (
    call("sklearn.linear_model.LogisticRegression"),
    call("sklearn.linear_model.LogisticRegression", C=100.0),
    call("sklearn.linear_model.LogisticRegressionCV"),
    call("sklearn.linear_model.SGDClassifier", loss="log_loss", random_state=0),
    call("sklearn.discriminant_analysis.LinearDiscriminantAnalysis"),
    call("sklearn.naive_bayes.GaussianNB"),
    call("sklearn.calibration.CalibratedClassifierCV", call("sklearn.svm.LinearSVC", random_state=0), cv=2),
)
_STUMPS = (
    call("sklearn.ensemble.GradientBoostingClassifier", max_depth=1, n_estimators=8, random_state=0),
    call("sklearn.ensemble.HistGradientBoostingClassifier", max_leaf_nodes=2, max_iter=8, min_samples_leaf=3),
    call("sklearn.naive_bayes.BernoulliNB", binarize=0.3),
)
_MEANS = (
    call("sklearn.linear_model.PoissonRegressor"),
    call("sklearn.linear_model.GammaRegressor"),
    call("sklearn.linear_model.TweedieRegressor", power=1.5, link="log"),
)
_OUTPUTS = (None, "probability", 1)


def _scaled(rng: Any, model: Call) -> Call:
    scaler = pick(rng, (None, "StandardScaler", "RobustScaler"))
    if scaler is None:
        return model
    return Call("sklearn.pipeline.make_pipeline", (call(f"sklearn.preprocessing.{scaler}"), model))


def _task(rng: Any) -> tuple[Call, str, tuple[Any, ...]]:
    if rng.random() < 0.25:
        return _scaled(rng, pick(rng, _MEANS)), f"np.exp(np.clip({target(rng)}, -3, 3))", (None,)
    return _scaled(rng, pick(rng, _LINEAR)), classes(rng, 2), _OUTPUTS


def plain(rng: Any, seed: int) -> TableCase:
    """Smooth laws for one or two columns, laws of points for three."""
    model, y, outputs = _task(rng)
    if rng.random() < 0.4:
        setup = Setup(seed, size(rng, 30, 120), few(rng, 3), y, model)
        return TableCase(model.short, setup, Menu(outputs, laws=("empirical",)), "atoms")
    columns = tuple(number(rng, odd=False) for _ in range(int(rng.choice([1, 2]))))
    return TableCase(model.short, Setup(seed, size(rng), columns, y, model), Menu(outputs), "smooth", 0.5)


def stumps(rng: Any, seed: int) -> TableCase:
    """Steps behind a link, under laws of points."""
    model = pick(rng, _STUMPS)
    setup = Setup(seed, size(rng, 30, 120), few(rng, 3), classes(rng, 2), model)
    return TableCase(model.short, setup, Menu(_OUTPUTS, laws=("empirical",)), "atoms")
