"""The callable behind an output, for libraries where it is not the method of that name.

scikit-learn has three methods: predict, predict_proba, decision_function. Boosting libraries have the last
one under other names, and one of them needs its own kind of table; networks are called with tensors. The
callable is looked up by the class or a base of it, as readers are, so that no library is imported for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from limes.exceptions import ModelError
from limes.models.identity import qualified_name

# table -> predictions
Predict = Callable[[Any], Any]


def prediction_method(model: Any, method: str) -> Predict | None:
    """The callable table -> predictions of a method of a model; None if the model has no such method.

    The method "" calls the model itself.
    """
    for kind in type(model).__mro__:
        find = _METHODS.get((qualified_name(kind), method))
        if find is not None:
            return find(model)
        if method in vars(kind):
            break  # a subclass that overrides the method
    if not method:
        return model if callable(model) else None
    return getattr(model, method, None)


def _torch_module(model: Any) -> Predict:
    """A network on numbers: evaluated on the network's device and in its precision, without gradients."""
    torch = import_module("torch")

    def predict(table: Any) -> Any:
        weight = next(model.parameters(), None)
        rows = torch.as_tensor(table if torch.is_tensor(table) else np.asarray(table, dtype=np.float64))
        rows = rows.to(torch.float32) if weight is None else rows.to(weight.device, weight.dtype)
        was_training = model.training
        model.eval()  # dropout and batch statistics would make predictions random
        try:
            with torch.inference_mode():
                return _one_column(model(rows).double().cpu().numpy())
        finally:
            model.train(was_training)

    return predict


def _onnx_session(model: Any) -> Predict:
    """A session with one input of numbers, or an input for each column; its last output of numbers."""
    inputs, outputs = model.get_inputs(), model.get_outputs()
    numeric = [output.name for output in outputs if "float" in output.type or "double" in output.type]
    if not numeric:
        raise ModelError(
            f"the ONNX model has no output of numbers, but {[output.type for output in outputs]}: convert it "
            "with probabilities as a tensor (zipmap=False)"
        )

    def predict(table: Any) -> Any:
        rows = np.asarray(table)
        columns = list(rows.T[..., None]) if len(inputs) > 1 else [rows]
        if len(columns) != len(inputs):
            raise ValueError(f"the ONNX model has {len(inputs)} inputs, the table {len(columns)} columns")
        feed = {
            entry.name: column.astype(ONNX_TYPES.get(entry.type, np.float32), copy=False)
            for entry, column in zip(inputs, columns, strict=True)
        }
        return _one_column(_in_parts(partial(_run, model, numeric[-1]), feed, inputs[0].shape))

    return predict


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
    """Run in parts if the model accepts batches of one size only; the last part repeats its last row."""
    size = shape[0] if shape and isinstance(shape[0], int) else 0
    rows = len(next(iter(feed.values())))
    if size < 1 or size == rows:
        return run(feed)
    parts = []
    for start in range(0, rows, size):
        positions = np.minimum(np.arange(start, start + size), rows - 1)
        parts.append(run({name: column[positions] for name, column in feed.items()}))
    return np.concatenate(parts)[:rows]


def _one_column(predictions: Any) -> Any:
    """Drop the axis of one output: networks often return (n, 1)."""
    single = predictions.ndim == 2 and predictions.shape[1] == 1
    return predictions[:, 0] if single else predictions


def _xgboost_margin(model: Any) -> Predict:
    return lambda table: model.predict(table, output_margin=True)


def _xgboost_booster(model: Any) -> Predict:
    return lambda table: model.predict(_matrix(model, table))


def _xgboost_booster_margin(model: Any) -> Predict:
    return lambda table: model.predict(_matrix(model, table), output_margin=True)


def _matrix(model: Any, table: Any) -> Any:
    """Convert a table to XGBoost's; columns without names go by position."""
    matrix = import_module("xgboost").DMatrix
    if isinstance(table, np.ndarray):
        return matrix(table, feature_names=model.feature_names, feature_types=model.feature_types)
    return matrix(table, enable_categorical=True)


def _lightgbm_margin(model: Any) -> Predict:
    return lambda table: model.predict(table, raw_score=True)


def _catboost_margin(model: Any) -> Predict:
    return lambda table: model.predict(table, prediction_type="RawFormulaVal")


def _pipeline_margin(model: Any) -> Predict | None:
    method: Predict | None = getattr(model, "decision_function", None)
    if method is not None or len(model.steps) < 2:
        return method or prediction_method(model.steps[-1][1], "decision_function")
    last = prediction_method(model.steps[-1][1], "decision_function")
    return None if last is None else lambda table: last(model[:-1].transform(table))


def _frozen_margin(model: Any) -> Predict | None:
    return prediction_method(model.estimator, "decision_function")


def _search_margin(model: Any) -> Predict | None:
    best = getattr(model, "best_estimator_", None)
    return None if best is None else prediction_method(best, "decision_function")


def _log_of_prediction(model: Any) -> Predict:
    """The sum behind a log link; -inf where the prediction is 0 in float64."""

    def predict(table: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(model.predict(table))

    return predict


def has_identity_link(model: Any) -> bool:
    """Whether a generalised linear model of scikit-learn predicts its margin itself."""
    link = getattr(model, "link", "log")  # only TweedieRegressor has other links
    return bool(link == "identity" or (link == "auto" and model.power <= 0))


def _generalized_margin(model: Any) -> Predict:
    return model.predict if has_identity_link(model) else _log_of_prediction(model)


def _histogram_margin(model: Any) -> Predict:
    return _log_of_prediction(model) if model.loss in ("poisson", "gamma") else model.predict


def _joint_log_likelihood(model: Any) -> Predict:
    """The log odds (n,) of two classes; the joint log-likelihoods (n, k) of several."""

    def predict(table: Any) -> Any:
        joint = np.asarray(model.predict_joint_log_proba(table))
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    return predict


_METHODS: Mapping[tuple[str, str], Callable[[Any], Predict | None]] = {
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
