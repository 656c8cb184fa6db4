"""The output of a model that is explained: its method, the callable behind it, and columns of its result.

For classifiers of several targets scikit-learn returns one array (n, classes) a target; here these lie side
by side, and each column is called "target: class", with targets counted from 0.

scikit-learn has three methods: predict, predict_proba, decision_function. Boosting libraries have the last
one under other names, and one of them needs its own kind of table; networks are called with tensors. The
callable is looked up by the class or a base of it, as readers are, so that no library is imported for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from inspect import signature
from itertools import combinations
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError, ModelError
from limes.models._calling.clusters import MEMBERSHIP, cluster_answers, clusters_of, membership
from limes.models._calling.evaluating import evaluating
from limes.models._calling.targets import target_columns
from limes.models._identity import qualified_name

# table -> predictions
Predict = Callable[[Any], Any]


def prediction_method(model: Any, method: str) -> Predict | None:
    """Return table -> predictions of a model's method, "" for the model itself; None if it has none."""
    if method == MEMBERSHIP:
        return membership(model)
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
        # a tensor shares its memory with an array, which torch wants to be writable: pandas' need not be
        rows = torch.as_tensor(table if torch.is_tensor(table) else np.require(table, np.float64, ["W"]))
        rows = rows.to(torch.float32) if weight is None else rows.to(weight.device, weight.dtype)
        with evaluating(model), torch.inference_mode():
            return _one_column(model(rows).double().cpu().numpy())

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
    """Convert a table to XGBoost's; columns without names are matched by position."""
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
    """Return whether a generalised linear model of scikit-learn predicts its margin itself."""
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


def _network_margin(model: Any) -> Predict:
    """The sums of the output layer, before the logistic function or the softmax."""
    plain = copy(model)
    plain.out_activation_ = "identity"
    return lambda table: _one_column(np.asarray(plain._forward_pass_fast(table)))  # noqa: SLF001 - without the link


def _linear_predictor(model: Any) -> Predict:
    """The sum behind a result of statsmodels; models without a curve have no such option."""
    options = signature(model.model.predict).parameters
    return partial(model.predict, **({"which": "linear"} if "which" in options else {}))


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
    ("sklearn.MLPClassifier", "decision_function"): _network_margin,
    ("statsmodels.ResultsWrapper", "decision_function"): _linear_predictor,
    ("torch.Module", ""): _torch_module,
    ("onnxruntime.InferenceSession", ""): _onnx_session,
}


@dataclass(frozen=True)
class Output:
    """A method of a model ("" if the model itself is called) and the selected columns of its result.

    ``columns`` is None for all of them, a position for one (which drops the axis), a list for several.
    """

    method: str
    columns: int | list[int] | None
    labels: tuple[str, ...] | None

    def pick(self, predictions: Floats) -> Floats:
        """Select the columns of predictions (n, k)."""
        return predictions if self.columns is None else predictions[:, self.columns]

    def names(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        """Names of the selected outputs; ``shape`` is that of the predictions without their rows."""
        if self.labels is not None:
            return self.labels
        if not shape:
            return ("output",)
        columns = range(shape[0]) if not isinstance(self.columns, list) else self.columns
        return tuple(str(i) for i in columns)


def resolve(model: Any, output: Any = None) -> Output:
    """Turn the public option ``output`` into a method and columns.

    None: ``predict`` of regressors, ``predict_proba`` of classifiers (``decision_function`` where there are
    no probabilities), the call itself of a callable. "margin", "probability": as named. A class label, or a
    list of labels: its probability. For callables and regressors with several outputs: a position or a list
    of positions. For classifiers of several targets: a pair (target, label), where targets are counted from
    0, or its name "target: label", or a list of these. Clusterers: membership of each cluster, or of
    those that are named.

    "margin" is the ``decision_function``. Other models of scikit-learn have a margin where a known link is
    applied to a sum: the logarithm of the prediction, log odds or joint log-likelihoods of naive Bayes.

    A bare Booster (of XGBoost or LightGBM) is no classifier, whatever its objective: None is its own
    ``predict``, which for an objective with a link is the probability or the mean, and "margin" is the sum of
    its trees. The same holds for regressors with a link, such as Poisson's, of these libraries.

    Raises
    ------
    InputError
        If the model has no such method or no such class.
    """
    output = output.tolist() if isinstance(output, np.ndarray) else output
    if isinstance(model, type):
        raise InputError(f"model is the class {model.__name__}: pass a fitted instance of it")
    if not hasattr(model, "predict"):
        if prediction_method(model, "") is None:
            raise InputError(f"model must have a predict method or be callable, got {type(model).__name__}")
        return _positions("", output)
    clusters = clusters_of(model)
    if clusters is not None:
        return Output(*cluster_answers(model, clusters, output))
    classes = getattr(model, "classes_", None)
    if (classes is None or len(classes) == 0) and not hasattr(model, "predict_proba"):
        if isinstance(output, str) and output == "margin" and prediction_method(model, "decision_function"):
            return Output("decision_function", None, None)
        return _positions("predict", output, getattr(model, "output_names_", ()))
    return _classifier(model, classes, output)


def _positions(method: str, output: Any, names: Sequence[str] = ()) -> Output:
    """Resolve the option ``output`` of a model without classes, whose outputs may have ``names``."""
    if output is None:
        return Output(method, None, tuple(names) or None)
    several = isinstance(output, list)
    entries = output if several else [output]
    positions = [names.index(i) if i in names else i for i in entries]
    if not positions or not all(is_position(i) and (not names or i < len(names)) for i in positions):
        also = f", or one of {list(names)}" if names else ""
        raise InputError(
            f"output={output!r}: this model has no classes; output may be None, or the position of a column "
            f"of its predictions{also}, or a list of these"
        )
    labels = tuple(names[i] if names else str(i) for i in positions)
    return Output(method, positions if several else positions[0], labels)


def is_position(value: Any) -> bool:
    """Return whether the value can be the position of a column: a whole number from 0."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 0)


def _classifier(model: Any, classes: Any, output: Any) -> Output:
    if isinstance(classes, list):
        return Output("predict_proba", *target_columns(model, classes, output))
    names = tuple(str(c) for c in classes) if classes is not None else None
    whole = {
        None: _default_method(model),
        "probability": "predict_proba",
        "margin": "decision_function",
    }
    if output is None or (isinstance(output, str) and output in whole):
        method = whole[output]
        if prediction_method(model, method) is None:
            raise InputError(_lacks(model, method, output))
        return Output(method, None, _margin_names(model, names) if method == "decision_function" else names)
    return _labels(model, classes, output)


def _lacks(model: Any, method: str, output: Any) -> str:
    """Return advice for a model that lacks the method."""
    name = type(model).__name__
    if hasattr(model, "predict_proba") or prediction_method(model, "decision_function") is not None:
        return f"output={output!r} needs {name}.{method}, which it does not have"
    advice = (
        "fit it with voting='soft' to explain probabilities, or explain one of model.estimators_"
        if getattr(model, "voting", None) == "hard"
        else "pass a callable, for instance lambda X: model.predict(X) == label, which is sampled"
    )
    return f"{name} returns labels only, it has neither probabilities nor margins: {advice}"


def _margin_names(model: Any, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Names of margins: the second of two classes, each of several, or each pair where pairs are compared."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if names is None or (len(names) == 2 and not _is_multilabel(last)):
        return None if names is None else names[1:]
    if getattr(last, "decision_function_shape", "ovr") == "ovo":
        return tuple(" vs ".join(pair) for pair in combinations(names, 2))
    return names


def _is_multilabel(model: Any) -> bool:
    """Return whether labels do not exclude each other, so that two of them have two margins."""
    binarizer = getattr(model, "_label_binarizer", None)  # of RidgeClassifier
    return bool(
        getattr(model, "multilabel_", False) or getattr(binarizer, "y_type_", "").startswith("multilabel")
    )


def add_up_to_one(model: Any, output: Output) -> bool:
    """Return whether all explained answers together may be probabilities of classes, of which one is true.

    Of functions nothing else is known. Amounts, margins and labels that do not exclude each other are not.
    """
    if output.columns is not None or output.method not in ("predict_proba", ""):
        return False
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return not (isinstance(getattr(last, "classes_", None), list) or _is_multilabel(last))


def _default_method(model: Any) -> str:
    return "predict_proba" if hasattr(model, "predict_proba") else "decision_function"


def _labels(model: Any, classes: Any, output: Any) -> Output:
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"output={output!r} is the probability of a class, and {type(model).__name__} has no "
            "predict_proba; use output='margin'"
        )
    candidates: Sequence[Any] = [] if classes is None else list(classes)
    several = isinstance(output, list | tuple)
    labels = list(output) if several else [output]
    if not labels:
        raise InputError("output=[] names no class")
    columns = [_column(label, candidates) for label in labels]
    names = tuple(str(candidates[c]) for c in columns)
    return Output("predict_proba", columns if several else columns[0], names)


def _column(label: Any, candidates: Sequence[Any]) -> int:
    for position, candidate in enumerate(candidates):
        if np.ndim(label) == 0 and (candidate == label or str(candidate) == str(label)):
            return position
    close = get_close_matches(str(label), [str(c) for c in candidates], n=1)
    advice = f" (did you mean {close[0]!r}?)" if close else ""
    raise InputError(
        f"output={label!r} is not a class of the model{advice}; pass one of {[str(c) for c in candidates]}, "
        "or 'probability' or 'margin'"
    )
