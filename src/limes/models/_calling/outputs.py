"""The output of a model that is explained: its method, the callable behind it, and columns of its result.

scikit-learn has three methods: predict, predict_proba, decision_function. Boosting libraries have the last
one under other names, and one of them needs its own kind of table; networks are called with tensors. The
callable is looked up by the class or a base of it, as readers are, so that no library is imported for it:
``METHODS`` of the library's reader (``readers/__init__.py``), or the table below.

For classifiers of several targets scikit-learn returns one array (n, classes) a target; here these lie side
by side, and each column is called "target: class", with targets counted from 0. Numbers of clusters are
names, and what is explained does not depend on them: the answer of a clusterer is its membership, a column a
cluster, 1 where ``predict`` names it, 0 elsewhere. Mixtures have probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np

from limes._arrays import Floats, are_probabilities
from limes._checks import did_you_mean
from limes._warnings import sentence
from limes.exceptions import InputError
from limes.models._calling.counts import count_answers
from limes.models._calling.networks import one_column, onnx_session, probabilities, torch_module
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
    """Return what predicts like a method, by the model's booster; None if that saves nothing."""
    name = qualified_name(type(model))
    find = _declared(name, "DIRECT", {}).get((name, method))
    return None if find is None else find(model, method)


def _declared(name: str, table: str, default: Mapping[tuple[str, str], Any]) -> Any:
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


def _margin_of(part: str) -> Callable[[Any], Predict | None]:
    return lambda model: prediction_method(getattr(model, part, None), "decision_function")


# Classes of scikit-learn, and how their margin is called
_MARGINS: Mapping[str, Callable[[Any], Predict | None]] = {
    "Pipeline": _pipeline_margin,
    "FrozenEstimator": _margin_of("estimator"),
    "BaseSearchCV": _margin_of("best_estimator_"),
    **dict.fromkeys(
        ("GammaRegressor", "PoissonRegressor", "TweedieRegressor"),
        lambda model: model.predict if has_identity_link(model) else _log_of_prediction(model),
    ),
    "HistGradientBoostingRegressor": lambda model: (
        _log_of_prediction(model) if model.loss in ("poisson", "gamma") else model.predict
    ),
    **dict.fromkeys(("BernoulliNB", "ComplementNB", "GaussianNB", "MultinomialNB"), _joint_log_likelihood),
    "MLPClassifier": _network_margin,
}
_METHODS: Methods = {
    **{(f"sklearn.{name}", "decision_function"): margin for name, margin in _MARGINS.items()},
    ("torch.Module", ""): torch_module,
    ("torch.Module", "predict_proba"): probabilities,
    ("onnxruntime.InferenceSession", ""): onnx_session,
    ("onnxruntime.InferenceSession", "predict_proba"): probabilities,
}


# -- clusters ------------------------------------------------------------------------------------------


# Attributes of composed models with the part that answers
_ANSWERING = ("best_estimator_", "estimator_", "estimator")


def kind_of(model: Any) -> str | None:
    """scikit-learn's type of an estimator, such as "clusterer"; None of anything else."""
    kind = getattr(model, "_estimator_type", None)
    if kind is None and hasattr(model, "__sklearn_tags__"):
        try:
            kind = model.__sklearn_tags__().estimator_type
        except (AttributeError, TypeError, ValueError):  # of a class that only looks like an estimator
            return None
    return kind if isinstance(kind, str) else None


def clusters_of(model: Any) -> tuple[Any, ...] | None:
    """The numbers of a model's clusters, increasing; None if it has none, or does not list them."""
    if getattr(model, "classes_", None) is not None or not hasattr(model, "predict"):
        return None
    kind, last = kind_of(model), _answering(model)
    if kind == "density_estimator" and hasattr(last, "predict_proba"):
        return tuple(range(len(last.weights_))) if hasattr(last, "weights_") else None
    if kind != "clusterer":
        return None
    centres, labels_ = (getattr(last, name, None) for name in ("cluster_centers_", "labels_"))
    labels = set() if labels_ is None else {*np.unique(labels_).tolist()}
    labels |= set() if centres is None else {*range(len(centres))}
    return tuple(sorted(labels)) or None


def _answering(model: Any) -> Any:
    """The last step of a pipeline, or the estimator that a search chose."""
    while True:
        parts = [getattr(model, name) for name in _ANSWERING if hasattr(model, name)]
        if isinstance(getattr(model, "steps", None), list) and model.steps:
            parts = [model.steps[-1][1]]
        if not parts:
            return model
        model = parts[0]


def membership(model: Any) -> Callable[[Any], Floats] | None:
    """Table -> (n, clusters), 1 in the column of the cluster that ``predict`` names."""
    clusters = clusters_of(model)
    if clusters is None:
        return None

    def predict(table: Any) -> Floats:
        of_cluster = np.asarray(model.predict(table))[:, None] == np.array(clusters)
        return np.asarray(of_cluster, dtype=np.float64)

    return predict


def positions_of_names(model: Any, output: Any, names: Callable[[], Sequence[str]]) -> Any:
    """The option ``output`` of a function with positions for names that its answers give to their columns.

    The function is asked for ``names`` where the option has texts alone; another option, and that of any
    other model, is returned as it is.
    """
    if not named_by_answers(model, output):
        return output
    several = isinstance(output, list)
    entries, answered = output if several else [output], [*names()]
    unknown = [one for one in entries if one not in answered]
    if unknown and answered:
        raise InputError(
            f"output={unknown[0]!r} is not among the outputs {answered} of the function"
            f"{did_you_mean(unknown[0], answered)}"
        )
    positions = output if unknown else [answered.index(one) for one in entries]
    return positions if unknown or several else positions[0]


def named_by_answers(model: Any, output: Any) -> bool:
    """Whether the option ``output`` of a function has texts alone."""
    entries = output if isinstance(output, list) else [output]
    if _has_methods(model) or _is_probability_of_logits(model, output):
        return False
    return bool(entries) and all(isinstance(one, str) for one in entries)


def _is_probability_of_logits(model: Any, output: Any) -> bool:
    wanted = isinstance(output, str) and output == "probability"
    return wanted and not _has_methods(model) and prediction_method(model, "predict_proba") is not None


def _has_methods(model: Any) -> bool:
    return hasattr(model, "predict") or hasattr(model, "predict_proba")


@dataclass(frozen=True)
class Output:
    """A method of a model ("" if the model itself is called) and the selected columns of its result."""

    method: str
    columns: int | list[int] | None  # all of them, one (which drops the axis), or several
    labels: tuple[str, ...] | None

    @property
    def is_of_several_classes(self) -> bool:
        """Whether each of three classes or more has an answer, as none was chosen."""
        return self.columns is None and self.labels is not None and len(self.labels) > 2

    def pick(self, predictions: Floats) -> Floats:
        return predictions if self.columns is None else predictions[:, self.columns]

    def names(self, shape: tuple[int, ...], answered: Sequence[str] = ()) -> tuple[str, ...]:
        """Names of the selected outputs; ``shape`` is that of the predictions without their rows.

        ``answered`` are the names that the model's answers gave to all their columns, if they gave any.
        """
        if answered and not self.method:
            chosen = range(len(answered)) if self.columns is None else np.atleast_1d(self.columns)
            return tuple(answered[k] for k in chosen)
        if self.labels is not None:
            # one number a row of two classes is a score of the second
            return self.labels[1:] if not shape and len(self.labels) == 2 else self.labels
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

    Of a network of torch or ONNX, "probability" is the logistic function of its logit, or the softmax of
    several.

    "margin" is the ``decision_function``. Other models of scikit-learn have a margin where a known link is
    applied to a sum: the logarithm of the prediction, log odds or joint log-likelihoods of naive Bayes.

    A bare Booster (of XGBoost or LightGBM) is no classifier, whatever its objective: None is its own
    ``predict``, which for an objective with a link is the probability or the mean, and "margin" is the sum of
    its trees. The same holds for regressors with a link, such as Poisson's, of these libraries.
    """
    output = output.tolist() if isinstance(output, np.ndarray) else output
    if isinstance(model, type):
        raise InputError(f"model is the class {model.__name__}: pass a fitted instance of it")
    if not _has_methods(model):
        if prediction_method(model, "") is None:
            raise InputError(
                f"model must have predict_proba, a predict method or be callable, got {type(model).__name__}"
            )
        if _is_probability_of_logits(model, output):
            return Output("predict_proba", None, None)
        return _positions("", output)
    clusters = clusters_of(model)
    if clusters is not None:
        return _clusters(model, clusters, output)
    classes = getattr(model, "classes_", None)
    # skorch's regressors have a predict_proba, too
    is_amount = kind_of(model) == "regressor" or not hasattr(model, "predict_proba")
    if (classes is None or len(classes) == 0) and is_amount:
        if isinstance(output, str) and output == "margin" and prediction_method(model, "decision_function"):
            return Output("decision_function", None, None)
        return _positions("predict", output, getattr(model, "output_names_", ()))
    return _classifier(model, classes, output)


def _positions(method: str, output: Any, names: Sequence[str] = ()) -> Output:
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
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 0)


def _classifier(model: Any, classes: Any, output: Any) -> Output:
    if isinstance(classes, list):
        return _targets(model, classes, output)
    classes = [] if classes is None else classes
    names = tuple(str(c) for c in classes)
    whole = {
        None: "predict_proba" if hasattr(model, "predict_proba") else "decision_function",
        "probability": "predict_proba",
        "margin": "decision_function",
    }
    if output is None or (isinstance(output, str) and output in whole):
        method = whole[output]
        if prediction_method(model, method) is None:
            raise InputError(_lacks(model, method, output))
        shown = _margin_names(model, names) if method == "decision_function" else names
        return Output(method, None, shown or None)
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"output={output!r} is the probability of a class, and {type(model).__name__} has no "
            "predict_proba; use output='margin'"
        )
    problem = f" is not a class of the model; pass one of {[*names]}, or 'probability' or 'margin'"
    return _chosen("predict_proba", output, names, [(label,) for label in classes], problem)


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


def _margin_names(model: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of margins: the second of two classes, each of several, or each pair where pairs are compared."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if len(names) == 2 and not _is_multilabel(last):
        return names[1:]
    if getattr(last, "decision_function_shape", "ovr") == "ovo":
        return tuple(" vs ".join(pair) for pair in combinations(names, 2))
    return names


def _is_multilabel(model: Any) -> bool:
    """Whether labels do not exclude each other, so that two of them have two margins."""
    binarizer = getattr(model, "_label_binarizer", None)  # of RidgeClassifier
    return bool(
        getattr(model, "multilabel_", False) or getattr(binarizer, "y_type_", "").startswith("multilabel")
    )


def add_up_to_one(model: Any, output: Output) -> bool:
    """Whether all explained answers together may be probabilities of classes, of which one is true.

    Of functions nothing else is known. Amounts, margins and labels that do not exclude each other are not.
    """
    if output.columns is not None or output.method not in ("predict_proba", ""):
        return False
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return not (isinstance(getattr(last, "classes_", None), list) or _is_multilabel(last))


def _targets(model: Any, classes: Sequence[Any], output: Any) -> Output:
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"{type(model).__name__} predicts several targets, and has no probabilities: explain the "
            "classifier of one target, or pass a callable"
        )
    pairs = [(target, label) for target, labels in enumerate(classes) for label in labels]
    names = [f"{target}: {label}" for target, label in pairs]
    problem = (
        ": the model predicts several targets at once, so output may be a pair (target, label), such as "
        f"{(pairs[-1][0], str(pairs[-1][1]))!r}, or its name, or a list of these. Known: {names}"
    )
    entries = [*zip(names, pairs, strict=True)]
    return _chosen("predict_proba", output, names, entries, problem, pairs=True)


def _clusters(model: Any, clusters: tuple[Any, ...], output: Any) -> Output:
    method = "predict_proba" if hasattr(model, "predict_proba") else MEMBERSHIP
    names = [f"cluster {cluster}" for cluster in clusters]
    problem = f" is no cluster of the model: pass one of {list(clusters)}"
    entries = [*zip(clusters, names, strict=True)]
    return _chosen(method, output, names, entries, problem, kind="cluster")


def _chosen(
    method: str,
    output: Any,
    names: Sequence[str],
    entries: Sequence[tuple[Any, ...]],
    problem: str,
    *,
    kind: str = "class",
    pairs: bool = False,
) -> Output:
    """The columns that an option names by one of their entries: all, one, or a list or tuple of them."""
    if output is None or (isinstance(output, str) and output == "probability"):
        return Output(method, None, tuple(names))
    several = isinstance(output, list) or (isinstance(output, tuple) and not pairs)
    columns = []
    for one in output if several else [output]:
        column = next((k for k, each in enumerate(entries) if any(_is_same(one, e) for e in each)), None)
        if column is None:
            raise InputError(f"output={one!r}{problem}{did_you_mean(one, names)}")
        columns.append(column)
    if not columns:
        raise InputError(f"output=[] is empty: pass one {kind} or more")
    return Output(method, columns if several else columns[0], tuple(names[k] for k in columns))


def _is_same(option: Any, entry: Any) -> bool:
    """Whether values are equal or spelt alike, pairs one by one."""
    if isinstance(entry, tuple):
        is_pair = isinstance(option, tuple) and len(option) == 2 and not isinstance(option[0], bool)
        return is_pair and all(map(_is_same, option, entry))
    return np.ndim(option) == 0 and bool(option == entry or str(option) == str(entry))


# -- probabilities, margins and scores -----------------------------------------------------------------------


# Where a decision is made: probabilities by 0.5, margins by their sign
THRESHOLDS: Mapping[str, float] = {"predict_proba": 0.5, "decision_function": 0.0}
# What ``predict_proba`` answers where these are no probabilities, as provenance has it
SCORE = "score"


class FirstAnswers(list[Floats]):
    """Batches of a model's answers, all columns, of which it is known whether they are probabilities."""

    _verdict: tuple[tuple[int, bool], bool] | None = None

    def are_probabilities(self, *, add_up: bool) -> bool:
        key, verdict = (len(self), add_up), self._verdict
        if verdict is None or verdict[0] != key:
            # replaced whole, as threads may ask at the same time
            self._verdict = verdict = key, bool(self) and are_probabilities(self.joined, add_up=add_up)
        return verdict[1]

    @property
    def joined(self) -> Floats:
        """All answers, (m, k)."""
        return np.concatenate([np.reshape(answers, (len(answers), -1)) for answers in self])


def first_answers(ask: Any) -> FirstAnswers:
    """Answers of ``predict_proba``, all columns; ``ask`` is what called the model."""
    answers: FirstAnswers | None = getattr(ask, "first", None)
    return FirstAnswers() if answers is None else answers


def no_probabilities(model: Any, method: str, first: FirstAnswers, predictions: Floats) -> str:
    """A warning that ``predict_proba`` answers no probabilities, or "".

    ``first`` are answers (m, ...) to earlier rows, of all columns, ``predictions`` (n, ...) those of a call,
    of all columns or of some.
    """
    if method != "predict_proba":
        return ""
    # answers of some classes alone make no claim
    exclusive = bool(first) and add_up_to_one(model, Output(method, None, None))
    whole = bool(first) and predictions.shape[1:] == first[0].shape[1:]
    shares = are_probabilities(predictions, add_up=exclusive and whole)
    if shares and (not first or first.are_probabilities(add_up=exclusive)):
        return ""
    seen = first.joined if first else np.reshape(predictions, (len(predictions), -1))
    inside = are_probabilities(predictions, add_up=False) and are_probabilities(seen, add_up=False)
    name = type(model).__name__
    numbers = np.concatenate([seen.ravel(), predictions.ravel()])
    if inside:
        sums = np.concatenate([seen.sum(axis=1), *([predictions.sum(axis=1)] if whole else [])])
        return sentence("scores", "sums", model=name, low=sums.min(), high=sums.max())
    return sentence("scores", "range", model=name, low=numbers.min(), high=numbers.max())


# -- warnings ------------------------------------------------------------------------------------------------


# Distinct whole numbers that are probably classes or clusters
_FEWEST, _MOST = 3, 20


def replaced_labels(model: Any, method: str, *, by_predict: bool) -> str:
    """A warning that a ``method`` is explained in the place of labels, or "".

    ``by_predict`` says whether the user passed the model's ``predict``, and not the model.
    """
    name = type(model).__name__
    if method == "predict" and kind_of(model) == "outlier_detector":
        return sentence("labels", "outliers", model=name)
    if method == "predict" or not by_predict:
        return ""
    if method == MEMBERSHIP:
        return sentence("labels", "clusters", model=name)
    return sentence("labels", "classes", model=name, method=method)


def answered_names(ask: Any) -> tuple[str, ...]:
    """Names that answers gave to their columns, () if they gave none; ``ask`` is what called the model."""
    names: tuple[str, ...] = getattr(ask, "names", ())
    return names


@dataclass(eq=False)
class NotedAnswers:
    """A model (n, d) -> (n,) or (n, k), and whether all answers so far look like numbers of labels."""

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
    def names(self) -> tuple[str, ...]:
        return answered_names(self.ask)

    @property
    def remark(self) -> str:
        distinct = sorted(map(int, self._distinct)) if self._are_labels else []
        if distinct == [-1, 1]:
            return sentence("labels", "signs")
        if len(distinct) < _FEWEST or distinct[0] not in (-1, 0, 1):
            return ""
        return sentence("labels", "whole numbers", low=distinct[0], high=distinct[-1])


def noted(ask: Callable[[Floats], Floats], model: Any, method: str) -> Callable[[Floats], Floats]:
    """Return what calls a model's ``method``, with notes of its answers if these may be labels."""
    # amounts of a regressor may be whole numbers
    is_amount = method not in ("", "predict") or kind_of(model) == "regressor"
    return ask if is_amount else NotedAnswers(ask)


# -- bound methods ---------------------------------------------------------------------------------------


def behind_method(model: Any, output: Any = None) -> tuple[Any, Any]:
    """The estimator and output behind a bound method, such as ``model.predict_proba``.

    A model that can be read is read, and its classes keep their names. Positions of columns, which a
    callable is passed, become labels. ``predict`` of a classifier or clusterer, whose labels are no amounts,
    becomes what is explained of the model itself. Anything else is returned as it is: functions, methods that
    an instance replaces.
    """
    owner, name = getattr(model, "__self__", None), getattr(model, "__name__", "")
    if name not in _IN_PLACE_OF or not _has_methods(owner) or getattr(owner, name, None) != model:
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
    """Whether a margin is the log-odds of the second of two classes, by predictions for a table."""
    if output.method != "decision_function" or len(output.labels or ()) != 1:
        return False
    from scipy.special import expit

    margin, probability = (prediction_method(model, name) for name in ("decision_function", "predict_proba"))
    if margin is None or probability is None:
        return False
    odds = expit(np.ravel(np.asarray(margin(table), dtype=np.float64)))
    second = np.reshape(np.asarray(probability(table), dtype=np.float64), (len(odds), -1))[:, -1]
    count_answers(2 * len(odds))
    return np.allclose(odds, second, rtol=0.0, atol=_SAME_PROBABILITY)


# Probabilities in single precision differ by less
_SAME_PROBABILITY = 1e-5
