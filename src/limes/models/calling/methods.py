"""Which callable gives an answer, for the libraries where it is not the method of that name.

scikit-learn names three answers: predict, predict_proba, decision_function. Boosting libraries have the last
one under other names, and one of them wants its own kind of table; networks are called with tensors. A way is
found by the class or a base of it, as readers are, so that no library is imported for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from limes.exceptions import ModelError
from limes.models.identity import qualified_name

Answer = Callable[[Any], Any]


def prediction_method(model: Any, method: str) -> Answer | None:
    """The callable table -> answer that stands for a method of a model, None where it has none.

    The method "" is the model itself, where it is called.
    """
    for kind in type(model).__mro__:
        way = _WAYS.get((qualified_name(kind), method))
        if way is not None:
            return way(model)
        if method in vars(kind):
            break  # a subclass that says it itself
    if not method:
        return model if callable(model) else None
    return getattr(model, method, None)


def _torch_module(model: Any) -> Answer:
    """A network on numbers: evaluated on its own device and in its own precision, without gradients."""
    torch = import_module("torch")

    def answer(table: Any) -> Any:
        weight = next(model.parameters(), None)
        given = table if torch.is_tensor(table) else np.asarray(table, dtype=np.float64)
        rows = torch.as_tensor(given)
        rows = rows.to(torch.float32) if weight is None else rows.to(weight.device, weight.dtype)
        was_training = model.training
        model.eval()  # dropout and batch statistics would make answers random
        try:
            with torch.inference_mode():
                return _one_column(model(rows).double().cpu().numpy())
        finally:
            model.train(was_training)

    return answer


def _onnx_session(model: Any) -> Answer:
    """A session with one input of numbers, or an input a column; its last output of numbers is explained."""
    inputs, outputs = model.get_inputs(), model.get_outputs()
    wanted = [output.name for output in outputs if "float" in output.type or "double" in output.type]
    if not wanted:
        raise ModelError(
            f"the ONNX model has no output of numbers, but {[output.type for output in outputs]}: convert it "
            "with probabilities as a tensor (zipmap=False)"
        )

    def answer(table: Any) -> Any:
        rows = np.asarray(table)
        columns = list(rows.T[..., None]) if len(inputs) > 1 else [rows]
        if len(columns) != len(inputs):
            raise ValueError(f"the ONNX model has {len(inputs)} inputs, the table {len(columns)} columns")
        feed = {
            entry.name: column.astype(ONNX_TYPES.get(entry.type, np.float32), copy=False)
            for entry, column in zip(inputs, columns, strict=True)
        }
        return _one_column(_in_parts(partial(_run, model, wanted[-1]), feed, inputs[0].shape))

    return answer


ONNX_TYPES: Mapping[str, Any] = {
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(string)": np.str_,
}


def _run(session: Any, output: str, feed: Mapping[str, Any]) -> Any:
    return session.run([output], feed)[0]


def _in_parts(run: Callable[[Mapping[str, Any]], Any], feed: Mapping[str, Any], shape: Any) -> Any:
    """Run in parts where a file was written for batches of one size; the last part repeats its last row."""
    size = shape[0] if shape and isinstance(shape[0], int) else 0
    rows = len(next(iter(feed.values())))
    if size < 1 or size == rows:
        return run(feed)
    parts = []
    for start in range(0, rows, size):
        places = np.minimum(np.arange(start, start + size), rows - 1)
        parts.append(run({name: column[places] for name, column in feed.items()}))
    return np.concatenate(parts)[:rows]


def _one_column(found: Any) -> Any:
    """Networks often answer (n, 1): that is one number a row."""
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def _xgboost_margin(model: Any) -> Answer:
    return lambda table: model.predict(table, output_margin=True)


def _xgboost_booster(model: Any) -> Answer:
    return lambda table: model.predict(_matrix(model, table))


def _xgboost_booster_margin(model: Any) -> Answer:
    return lambda table: model.predict(_matrix(model, table), output_margin=True)


def _matrix(model: Any, table: Any) -> Any:
    """A table as XGBoost takes it; columns without names go by position."""
    matrix = import_module("xgboost").DMatrix
    if isinstance(table, np.ndarray):
        return matrix(table, feature_names=model.feature_names, feature_types=model.feature_types)
    return matrix(table, enable_categorical=True)


def _lightgbm_margin(model: Any) -> Answer:
    return lambda table: model.predict(table, raw_score=True)


def _catboost_margin(model: Any) -> Answer:
    return lambda table: model.predict(table, prediction_type="RawFormulaVal")


def _pipeline_margin(model: Any) -> Answer | None:
    own: Answer | None = getattr(model, "decision_function", None)
    if own is not None or len(model.steps) < 2:
        return own or prediction_method(model.steps[-1][1], "decision_function")
    last = prediction_method(model.steps[-1][1], "decision_function")
    return None if last is None else lambda table: last(model[:-1].transform(table))


def _frozen_margin(model: Any) -> Answer | None:
    return prediction_method(model.estimator, "decision_function")


def _search_margin(model: Any) -> Answer | None:
    best = getattr(model, "best_estimator_", None)
    return None if best is None else prediction_method(best, "decision_function")


def _log_of_prediction(model: Any) -> Answer:
    """The sum behind a log link. Where the prediction is 0 in float64 the answer is -inf."""

    def answer(table: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(model.predict(table))

    return answer


def has_identity_link(model: Any) -> bool:
    """Whether a generalised linear model of scikit-learn predicts its margin itself."""
    link = getattr(model, "link", "log")  # TweedieRegressor alone has the choice
    return bool(link == "identity" or (link == "auto" and model.power <= 0))


def _generalized_margin(model: Any) -> Answer:
    return model.predict if has_identity_link(model) else _log_of_prediction(model)


def _histogram_margin(model: Any) -> Answer:
    return _log_of_prediction(model) if model.loss in ("poisson", "gamma") else model.predict


def _joint_log_likelihood(model: Any) -> Answer:
    """The log odds (n,) of two classes; the joint log-likelihoods (n, k) of several."""

    def answer(table: Any) -> Any:
        joint = np.asarray(model.predict_joint_log_proba(table))
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    return answer


_WAYS: Mapping[tuple[str, str], Callable[[Any], Answer | None]] = {
    ("xgboost.XGBModel", "decision_function"): _xgboost_margin,
    ("xgboost.Booster", "predict"): _xgboost_booster,
    ("xgboost.Booster", "decision_function"): _xgboost_booster_margin,
    ("lightgbm.LGBMModel", "decision_function"): _lightgbm_margin,
    ("lightgbm.Booster", "decision_function"): _lightgbm_margin,
    ("catboost.CatBoost", "decision_function"): _catboost_margin,
    ("sklearn.Pipeline", "decision_function"): _pipeline_margin,
    ("sklearn.FrozenEstimator", "decision_function"): _frozen_margin,
    ("sklearn.BaseSearchCV", "decision_function"): _search_margin,
    ("sklearn.GammaRegressor", "decision_function"): _generalized_margin,
    ("sklearn.PoissonRegressor", "decision_function"): _generalized_margin,
    ("sklearn.TweedieRegressor", "decision_function"): _generalized_margin,
    ("sklearn.HistGradientBoostingRegressor", "decision_function"): _histogram_margin,
    ("sklearn.BernoulliNB", "decision_function"): _joint_log_likelihood,
    ("sklearn.ComplementNB", "decision_function"): _joint_log_likelihood,
    ("sklearn.GaussianNB", "decision_function"): _joint_log_likelihood,
    ("sklearn.MultinomialNB", "decision_function"): _joint_log_likelihood,
    ("torch.Module", ""): _torch_module,
    ("onnxruntime.InferenceSession", ""): _onnx_session,
}
