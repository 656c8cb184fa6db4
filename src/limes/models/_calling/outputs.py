"""Methods of a model, and the callables behind them.

scikit-learn has three methods: predict, predict_proba, decision_function. Boosting libraries have the last
one under other names, and one of them needs its own kind of table; networks are called with tensors. The
callable is looked up by the class or a base of it, as readers are, so that no library is imported for it:
``METHODS`` of the library's reader (``readers/__init__.py``), or the table below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.models._calling.networks import one_column, onnx_session, torch_module
from limes.models._identity import qualified_name
from limes.models.readers import LIBRARIES

MEMBERSHIP = "membership"
# table -> predictions
Predict = Callable[[Any], Any]
# (class or a base of it, method) -> find(model), None if it has none
Methods = Mapping[tuple[str, str], Callable[[Any], Predict | None]]


def prediction_method(model: Any, method: str) -> Predict | None:
    """Return table -> predictions of a model's method, "" for the model itself; None if it has none."""
    if method == MEMBERSHIP:
        return membership(model)
    for kind in type(model).__mro__:
        name = qualified_name(kind)
        find = _declared(name, "METHODS", _METHODS).get((name, method))
        if find is not None:
            predict: Predict | None = find(model)
            return predict
        if method in vars(kind):
            break  # a subclass that overrides the method
    if not method:
        return model if callable(model) else None
    return getattr(model, method, None)


def direct_question(model: Any, method: str) -> Predict | None:
    """Return a function that predicts like a method, by the model's booster; None if that saves nothing."""
    name = qualified_name(type(model))
    find = _declared(name, "DIRECT", {}).get((name, method))
    direct: Predict | None = None if find is None else find(model, method)
    return direct


def _declared(name: str, table: str, default: Mapping[tuple[str, str], Any]) -> Mapping[tuple[str, str], Any]:
    """A table of the reader's module of a class's library, or the one for other libraries."""
    library = name.split(".")[0]
    if library not in LIBRARIES:
        return default
    return getattr(import_module(f"limes.models.readers.{library}"), table, {})


def _pipeline_margin(model: Any) -> Predict | None:
    method: Predict | None = getattr(model, "decision_function", None)
    if method is not None or len(model.steps) < 2:
        return method or prediction_method(model.steps[-1][1], "decision_function")
    last = prediction_method(model.steps[-1][1], "decision_function")
    return None if last is None else lambda table: last(model[:-1].transform(table))


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
    return lambda table: one_column(np.asarray(plain._forward_pass_fast(table)))  # noqa: SLF001 - without the link


_METHODS: Methods = {
    ("sklearn.Pipeline", "decision_function"): _pipeline_margin,
    ("sklearn.FrozenEstimator", "decision_function"): lambda model: prediction_method(
        model.estimator, "decision_function"
    ),
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
    ("torch.Module", ""): torch_module,
    ("onnxruntime.InferenceSession", ""): onnx_session,
}


# -- clusters ------------------------------------------------------------------------------------------


# Attributes of composed models with the part that answers
_ANSWERING = ("best_estimator_", "estimator_", "estimator")


def kind_of(model: Any) -> str | None:
    """Return scikit-learn's type of an estimator, such as "clusterer"; None of anything else."""
    kind = getattr(model, "_estimator_type", None)
    if kind is None and hasattr(model, "__sklearn_tags__"):
        try:
            kind = model.__sklearn_tags__().estimator_type
        except (AttributeError, TypeError, ValueError):  # of a class that only looks like an estimator
            return None
    return kind if isinstance(kind, str) else None


def clusters_of(model: Any) -> tuple[Any, ...] | None:
    """Return the numbers of a model's clusters, increasing; None if it has none, or does not list them."""
    if getattr(model, "classes_", None) is not None or not hasattr(model, "predict"):
        return None
    kind, last = kind_of(model), _answering(model)
    if kind == "density_estimator" and hasattr(last, "predict_proba"):
        return tuple(range(len(last.weights_))) if hasattr(last, "weights_") else None
    if kind != "clusterer":
        return None
    centres = getattr(last, "cluster_centers_", None)
    labels = set() if getattr(last, "labels_", None) is None else {*np.unique(last.labels_).tolist()}
    labels |= set() if centres is None else {*range(len(centres))}
    return tuple(sorted(labels)) or None


def _answering(model: Any) -> Any:
    """Return the last step of a pipeline, or the estimator that a search found best."""
    while True:
        parts = [getattr(model, name) for name in _ANSWERING if hasattr(model, name)]
        if isinstance(getattr(model, "steps", None), list) and model.steps:
            parts = [model.steps[-1][1]]
        if not parts:
            return model
        model = parts[0]


def membership(model: Any) -> Callable[[Any], Floats] | None:
    """Return table -> (n, clusters), 1 in the column of the cluster that ``predict`` names."""
    clusters = clusters_of(model)
    if clusters is None:
        return None

    def predict(table: Any) -> Floats:
        of_cluster = np.asarray(model.predict(table))[:, None] == np.array(clusters)
        return np.asarray(of_cluster, dtype=np.float64)

    return predict


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
        return _clusters(model, clusters, output)
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
        return _targets(model, classes, output)
    names = tuple(str(c) for c in classes) if classes is not None else None
    whole = {
        None: "predict_proba" if hasattr(model, "predict_proba") else "decision_function",
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


def _labels(model: Any, classes: Any, output: Any) -> Output:
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"output={output!r} is the probability of a class, and {type(model).__name__} has no "
            "predict_proba; use output='margin'"
        )
    candidates: Sequence[Any] = [] if classes is None else list(classes)
    return _chosen("predict_proba", output, [str(c) for c in candidates], partial(_column, candidates))


def _chosen(
    method: str,
    output: Any,
    names: Sequence[str],
    column: Callable[[Any], int],
    *,
    kind: str = "class",
    pairs: bool = False,
) -> Output:
    """The columns that an option names, one or a list of them; a tuple is a list, unless it is a pair."""
    several = isinstance(output, list) or (isinstance(output, tuple) and not pairs)
    columns = [column(one) for one in (output if several else [output])]
    if not columns:
        raise InputError(f"output=[] names no {kind}")
    return Output(method, columns if several else columns[0], tuple(names[k] for k in columns))


def _is_all(output: Any) -> bool:
    return output is None or (isinstance(output, str) and output == "probability")


def _column(candidates: Sequence[Any], label: Any) -> int:
    for position, candidate in enumerate(candidates):
        if np.ndim(label) == 0 and (candidate == label or str(candidate) == str(label)):
            return position
    close = get_close_matches(str(label), [str(c) for c in candidates], n=1)
    advice = f" (did you mean {close[0]!r}?)" if close else ""
    raise InputError(
        f"output={label!r} is not a class of the model{advice}; pass one of {[str(c) for c in candidates]}, "
        "or 'probability' or 'margin'"
    )


# -- several targets -------------------------------------------------------------------------------------


def _targets(model: Any, classes: Sequence[Any], output: Any) -> Output:
    """All probabilities, or those of pairs (target, label), or of their names."""
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"{type(model).__name__} predicts several targets, and has no probabilities: explain the "
            "classifier of one target, or pass a callable"
        )
    pairs = [(target, label) for target, labels in enumerate(classes) for label in labels]
    names = [f"{target}: {label}" for target, label in pairs]
    if _is_all(output):
        return Output("predict_proba", None, tuple(names))
    return _chosen("predict_proba", output, names, partial(_target_column, pairs, names), pairs=True)


def _target_column(pairs: Sequence[tuple[int, Any]], names: Sequence[str], output: Any) -> int:
    """The column of the probability of a pair (target, label), or of its name."""
    if isinstance(output, str) and output in names:
        return names.index(output)
    if isinstance(output, tuple) and len(output) == 2:
        for column, (target, label) in enumerate(pairs):
            if str(output[0]) == str(target) and (output[1] == label or str(output[1]) == str(label)):
                return column
    raise InputError(
        f"output={output!r}: the model predicts several targets at once, so output may be a pair (target, "
        f"label), such as {(pairs[-1][0], str(pairs[-1][1]))!r}, or its name, or a list of these. Known: "
        f"{list(names)}"
    )


# -- clusters --------------------------------------------------------------------------------------------


# Distinct whole numbers that are probably classes or clusters
_FEWEST, _MOST = 3, 20


def _clusters(model: Any, clusters: tuple[Any, ...], output: Any) -> Output:
    method = "predict_proba" if hasattr(model, "predict_proba") else MEMBERSHIP
    names = tuple(f"cluster {cluster}" for cluster in clusters)
    if _is_all(output):
        return Output(method, None, names)
    return _chosen(method, output, names, partial(_column_of_cluster, clusters, names), kind="cluster")


def _column_of_cluster(clusters: tuple[Any, ...], names: tuple[str, ...], output: Any) -> int:
    for position, (cluster, name) in enumerate(zip(clusters, names, strict=True)):
        if np.ndim(output) == 0 and str(output) in (str(cluster), name):
            return position
    raise InputError(f"output={output!r} is no cluster of the model: pass one of {list(clusters)}")


# -- warnings ------------------------------------------------------------------------------------------------


def replaced_labels(model: Any, method: str, *, by_predict: bool) -> str:
    """Return a warning about labels: that a ``method`` is explained in the place of ``predict``, or "".

    ``by_predict`` says whether the user passed the model's ``predict``, and not the model.
    """
    name = type(model).__name__
    if method == "predict" and kind_of(model) == "outlier_detector":
        return (
            f"{name}.predict answers 1 for inliers and -1 for outliers, which are explained as amounts: "
            "output='margin' explains the score behind them (decision_function)"
        )
    if method == "predict" or not by_predict:
        return ""
    if method == MEMBERSHIP:
        return (
            f"{name}.predict answers numbers of clusters, which are no amounts: membership of each "
            "cluster (1 inside, 0 outside) is explained in their place"
        )
    return f"{name}.predict answers labels, which are no amounts: {method} is explained in their place"


@dataclass(eq=False)
class NotedAnswers:
    """A model (n, d) -> (n,) or (n, k), and whether all answers so far look like numbers of labels.

    It notes answers that are asked for anyway, so that no row is asked about for a warning.
    """

    ask: Callable[[Floats], Floats]
    _distinct: frozenset[float] = frozenset()
    _are_labels: bool = True

    def __call__(self, x: Floats) -> Floats:
        answers = self.ask(x)
        if self._are_labels:
            whole = answers.ndim == 1 and bool((answers == np.rint(answers)).all())
            # replaced whole: threads may lose answers of one batch, and never see half of a change
            self._distinct |= frozenset(np.unique(answers).tolist() if whole else ())
            self._are_labels = whole and len(self._distinct) <= _MOST
        return answers

    @property
    def remark(self) -> str:
        """A warning if the answers look like numbers of classes or clusters, or ""."""
        distinct = sorted(map(int, self._distinct)) if self._are_labels else []
        if distinct == [-1, 1]:
            return (
                "the model answers -1 and 1 alone, which are explained as amounts: if it tells outliers or "
                "classes, pass a function of its decision_function or predict_proba"
            )
        if len(distinct) < _FEWEST or distinct[0] not in (-1, 0, 1):
            return ""
        return (
            f"the model answers whole numbers from {distinct[0]} to {distinct[-1]} alone, which are "
            "explained as amounts: if they are classes or clusters, pass the fitted model itself, or a "
            "function of probabilities or distances"
        )


def noted(ask: Callable[[Floats], Floats], model: Any, method: str) -> Callable[[Floats], Floats]:
    """Return what calls a model's ``method``, with notes of its answers if these may be labels."""
    # amounts of a regressor may be whole numbers
    is_amount = method not in ("", "predict") or kind_of(model) == "regressor"
    return ask if is_amount else NotedAnswers(ask)


def label_remark(predict: Callable[[Floats], Floats]) -> str:
    """Return the warning about answers of a model that `noted` returned, or ""."""
    return predict.remark if isinstance(predict, NotedAnswers) else ""


# -- bound methods ---------------------------------------------------------------------------------------


def behind_method(model: Any, output: Any = None) -> tuple[Any, Any]:
    """Return the estimator and output behind a bound method, such as ``model.predict_proba``.

    A model that can be read is read, and its classes keep their names. Positions of columns, which a
    callable is passed, become labels. ``predict`` of a classifier or clusterer, whose labels are no amounts,
    becomes what is explained of the model itself. Anything else is returned as it is: functions, methods that
    an instance replaces.
    """
    owner, name = getattr(model, "__self__", None), getattr(model, "__name__", "")
    if name not in _IN_PLACE_OF or not hasattr(owner, "predict") or getattr(owner, name, None) != model:
        return model, output
    translated = _output_of_model(name, getattr(owner, "classes_", None), output)
    try:
        same = translated is not None and resolve(owner, translated[0]).method in (name, *_IN_PLACE_OF[name])
    except InputError:
        return model, output
    return (owner, translated[0]) if translated is not None and same else (model, output)


def _output_of_model(name: str, classes: Any, output: Any) -> tuple[Any] | None:
    """The option ``output`` of a model for that of its method, in a tuple; None without one."""
    if name == "decision_function":
        return ("margin",) if output is None else None
    if name == "predict":
        return (output,)
    if classes is None or isinstance(classes, list):  # positions run through the labels of several targets
        return None
    several = isinstance(output, list)
    positions = output if several else [output]
    if output is None or not all(is_position(i) and i < len(classes) for i in positions):
        return (output,)
    labels = [classes[i] for i in positions]
    return (labels if several else labels[0],)


# Methods that are explained in the place of one that answers labels
_IN_PLACE_OF: Mapping[str, tuple[str, ...]] = {
    "predict": ("predict_proba", "decision_function", MEMBERSHIP),
    "predict_proba": (),
    "decision_function": (),
}


def is_log_odds(model: Any, output: Output, table: Any) -> bool:
    """Return whether a margin is the log-odds of the second of two classes, by predictions for a table."""
    if output.method != "decision_function" or len(output.labels or ()) != 1:
        return False
    from scipy.special import expit

    margin, probability = (prediction_method(model, name) for name in ("decision_function", "predict_proba"))
    if margin is None or probability is None:
        return False
    odds = expit(np.asarray(margin(table), dtype=np.float64))
    return np.allclose(odds, np.asarray(probability(table))[:, -1], rtol=0.0, atol=_SAME_PROBABILITY)


# Probabilities in single precision differ by less
_SAME_PROBABILITY = 1e-5
