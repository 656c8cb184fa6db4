"""Models of small images, as rows of pixels."""

from __future__ import annotations

from typing import Any

from fuzz.families.columns import pick, seeded
from fuzz.images import ImageCase
from fuzz.script import Call, Setup, call

_PIPE, _SCALER = "sklearn.pipeline.make_pipeline", "sklearn.preprocessing.StandardScaler"
_SHAPES = ((4, 4), (3, 5), (6, 6), (4, 4, 3), (5, 3, 3), (4, 5, 1))


def _head(rng: Any) -> tuple[Call, bool, tuple[Any, ...]]:
    """The model, whether it is a classifier, and its outputs."""
    seed = seeded(rng)
    choices: list[tuple[Call, bool, tuple[Any, ...]]] = [
        (call("sklearn.linear_model.Ridge"), False, (None,)),
        (call("sklearn.linear_model.LogisticRegression", max_iter=50), True, ("margin", "probability")),
        (
            call("sklearn.ensemble.RandomForestRegressor", n_estimators=4, max_depth=4, random_state=seed),
            False,
            (None,),
        ),
        (
            call("sklearn.ensemble.RandomForestClassifier", n_estimators=4, max_depth=4, random_state=seed),
            True,
            ("probability", 1, [0, 1]),
        ),
        (
            call("sklearn.ensemble.GradientBoostingRegressor", n_estimators=5, random_state=seed),
            False,
            (None,),
        ),
        (
            call("sklearn.ensemble.HistGradientBoostingRegressor", max_iter=5, random_state=seed),
            False,
            (None,),
        ),
        (call("lightgbm.LGBMRegressor", n_estimators=4, verbose=-1, n_jobs=1), False, (None,)),
        (Call(_PIPE, (call(_SCALER), call("sklearn.svm.SVR"))), False, (None,)),
        (Call(_PIPE, (call(_SCALER), call("sklearn.svm.SVC"))), True, ("margin",)),
        (
            Call(
                _PIPE,
                (
                    call(_SCALER),
                    call("sklearn.kernel_ridge.KernelRidge", kernel="rbf", gamma=0.02, alpha=1.0),
                ),
            ),
            False,
            (None,),
        ),
        (
            Call(
                _PIPE,
                (call("sklearn.decomposition.PCA", 3, random_state=0), call("sklearn.linear_model.Ridge")),
            ),
            False,
            (None,),
        ),
    ]
    return choices[int(rng.integers(len(choices)))]


def image(rng: Any, seed: int) -> ImageCase:
    """A model of grey or coloured images, whole numbers or not."""
    shape = pick(rng, _SHAPES)
    dtype = pick(rng, ("uint8", "float64"))
    pixels = shape[0] * shape[1] * (shape[2] if len(shape) == 3 else 1)
    draw = f"r.integers(0, 256, (n, {pixels}))"
    model, classifier, outputs = _head(rng)
    unit = 1.0 if dtype == "uint8" else 255.0
    score = f"(X @ np.sin(np.arange({pixels})) + 3 * np.maximum(X[:, 0], X[:, 1])) * {unit / 255!r}"
    y = f"({score} > np.median({score})).astype(int)" if classifier else score
    setup = Setup(seed, int(rng.integers(40, 100)), (draw,), y, model, table=f"C[0] / {unit}")
    name = model.args[-1].short if model.short == "make_pipeline" else model.short
    return ImageCase(name, setup, outputs, shape, dtype)
