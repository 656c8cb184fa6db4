"""The model's own answers as float64, by each library's own calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

Array = Any
Answer = Callable[[Any], Array]

# Exact results against exact oracles: the library's promise.
EXACT = 1e-9
# Libraries that add up in float32 and offer no float64 sum: 2^-24 for each of a few dozen sums.
SINGLE = 3e-6


@dataclass(frozen=True)
class Answers:
    """Answers of a model: how to ask, how closely coefficients and how closely levels must agree.

    ``level`` is the tolerance of intercepts and predictions. It is wider where float64 answers were put
    together from a library's trees, whose common start is known in float32 only.
    """

    ask: Answer
    slope: float = EXACT
    level: float = EXACT


def answers_of(model: Any, output: Any, sample: Any) -> Answers:
    """How to ask for an output; ``sample`` are rows on which float64 sums are held against the library's."""
    library = type(model).__module__.split(".")[0]
    plain = _plain(model, output, library)
    if library == "xgboost":
        return _xgboost(model, plain, sample)
    return Answers(plain, *_tolerances(model))


def _tolerances(model: Any) -> tuple[float, float]:
    return (SINGLE, SINGLE) if "xgboost" in _libraries(model) else (EXACT, EXACT)


def _libraries(model: Any) -> set[str]:
    """Libraries of a model and its parts."""
    result = {type(model).__module__.split(".")[0]}
    parts = [
        getattr(model, name, None) for name in ("estimators_", "estimator_", "best_estimator_", "regressor_")
    ]
    parts += [step for _, step in getattr(model, "steps", [])]
    for part in parts:
        flat = part if isinstance(part, list) else [part]
        for each in flat:
            if hasattr(each, "predict"):
                result |= _libraries(each)
    return result


def _plain(model: Any, output: Any, library: str) -> Answer:
    if output == "margin":
        return _columns(_margin(model, library))
    classes = getattr(model, "classes_", None)
    if classes is None or not hasattr(model, "predict_proba"):
        if classes is not None and hasattr(model, "decision_function"):
            return _columns(model.decision_function)
        return _columns(model.predict)
    if output is None or output == "probability":
        return _columns(model.predict_proba)
    wanted = output if isinstance(output, list) else [output]
    places = [list(map(str, classes)).index(str(label)) for label in wanted]
    return lambda table: np.asarray(model.predict_proba(table), dtype=float)[:, places]


def _margin(model: Any, library: str) -> Answer:
    if library == "xgboost":
        return lambda table: model.predict(table, output_margin=True)
    if library == "lightgbm":
        return lambda table: model.predict(table, raw_score=True)
    if library == "catboost":
        return lambda table: model.predict(table, prediction_type="RawFormulaVal")
    if hasattr(model, "decision_function"):
        result: Answer = model.decision_function
        return result
    if hasattr(model, "coefs_"):
        return lambda table: _output_sums(model, table)
    if hasattr(model, "predict_log_proba"):
        return lambda table: _log_odds(model.predict_log_proba(table))
    return lambda table: np.log(model.predict(table))  # regressors behind a log link


def _output_sums(model: Any, table: Any) -> Array:
    """The sums of a network's last layer: the log odds of saturated probabilities have no digits."""
    hidden = {"tanh": np.tanh, "logistic": scipy.special.expit, "identity": np.asarray}[model.activation]
    values = np.asarray(table, dtype=float)
    for weights, offsets in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
        values = hidden(values @ weights + offsets)
    return values @ model.coefs_[-1] + model.intercepts_[-1]


def _log_odds(log_proba: Array) -> Array:
    """For two classes the log odds of the second."""
    return log_proba[:, 1] - log_proba[:, 0] if log_proba.shape[1] == 2 else log_proba


def _columns(ask: Answer) -> Answer:
    def answer(table: Any) -> Array:
        result = np.asarray(ask(table), dtype=float)
        return result.reshape(len(result), -1)

    return answer


def _xgboost(model: Any, plain: Answer, sample: Any) -> Answers:
    """Leaves that the library itself finds, added up in float64; its float32 sum where that fails."""
    import xgboost

    booster = model.get_booster() if hasattr(model, "get_booster") else model
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    trainer = learner["gradient_booster"]
    trees = trainer.get("model", trainer.get("gbtree", {}).get("model", {}))
    if "trees" not in trees:
        return Answers(plain, SINGLE, SINGLE)
    drop = np.asarray(trainer.get("weight_drop", np.ones(len(trees["trees"]))), dtype=np.float32).astype(
        float
    )
    values = [np.asarray(tree["split_conditions"], dtype=np.float32).astype(float) for tree in trees["trees"]]
    group = np.asarray(trees["tree_info"])
    categorical = any(kind == "c" for kind in booster.feature_types or ())

    def leaves(table: Any) -> Array:
        options = {"feature_types": booster.feature_types} if isinstance(table, np.ndarray) else {}
        matrix = xgboost.DMatrix(table, enable_categorical=categorical, **options)
        result = np.asarray(booster.predict(matrix, pred_leaf=True))
        result = result.reshape(len(result), -1).astype(int)
        total = np.zeros((len(result), int(group.max()) + 1))
        for t, leaf in enumerate(values):
            total[:, group[t]] += drop[t] * leaf[result[:, t]]
        return total

    expected = plain(sample)
    try:
        raw = leaves(sample)
    except (ValueError, xgboost.core.XGBoostError, IndexError):
        return Answers(plain, SINGLE, SINGLE)
    if raw.shape != expected.shape:
        return Answers(plain, SINGLE, SINGLE)
    start = (expected - raw).mean(axis=0)
    gap = np.abs(raw + start - expected).max()
    if gap > SINGLE * max(1.0, float(np.abs(expected).max())):
        return Answers(plain, SINGLE, SINGLE)
    return Answers(lambda table: leaves(table) + start, EXACT, SINGLE)
