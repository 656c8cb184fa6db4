"""Which number of a model is explained: its method, and the columns of what that method returns.

Of classifiers of several targets scikit-learn returns one array (n, classes) a target; here they lie side by
side, and each column is called "target: class", with targets counted from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.models.calling.methods import prediction_method


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
    0, or its name "target: label", or a list of these.

    "margin" is the ``decision_function``. Models of scikit-learn that lack one have a margin too where a sum
    stands behind a known link: the logarithm of the prediction with a log link, log odds (of two classes) or
    joint log-likelihoods (of several) of naive Bayes.

    A bare Booster (of XGBoost or LightGBM) is no classifier, whatever its objective: None is its own
    ``predict``, which for an objective with a link is the probability or the mean, and "margin" is the sum of
    its trees. The same holds for regressors with a link, such as Poisson's, of these libraries.

    Raises
    ------
    InputError
        If the model has no such method or no such class.
    """
    if not hasattr(model, "predict"):
        if prediction_method(model, "") is None:
            raise InputError(f"model must have a predict method or be callable, got {type(model).__name__}")
        return _positions("", output)
    classes = getattr(model, "classes_", None)
    if (classes is None or len(classes) == 0) and not hasattr(model, "predict_proba"):
        if isinstance(output, str) and output == "margin" and prediction_method(model, "decision_function"):
            return Output("decision_function", None, None)
        return _positions("predict", output)
    return _classifier(model, classes, output)


def _positions(method: str, output: Any) -> Output:
    positions = output if isinstance(output, list) else [output]
    if output is None:
        return Output(method, None, None)
    if not positions or not all(_is_position(i) for i in positions):
        raise InputError(
            f"output={output!r}: this model has no classes; output may be None, or the position of a column "
            "of its predictions, or a list of positions"
        )
    return Output(method, output, tuple(str(i) for i in positions))


def _is_position(candidate: Any) -> bool:
    whole = isinstance(candidate, int | np.integer) and not isinstance(candidate, bool)
    return whole and bool(candidate >= 0)


def _classifier(model: Any, classes: Any, output: Any) -> Output:
    if isinstance(classes, list):
        return Output("predict_proba", *_target_columns(model, classes, output))
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
    """Advice where the model has no such method."""
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
    """Whether labels do not exclude each other, so that two of them have two margins."""
    binarizer = getattr(model, "_label_binarizer", None)  # of RidgeClassifier
    return bool(
        getattr(model, "multilabel_", False) or getattr(binarizer, "y_type_", "").startswith("multilabel")
    )


def _default_method(model: Any) -> str:
    return "predict_proba" if hasattr(model, "predict_proba") else "decision_function"


def _labels(model: Any, classes: Any, output: Any) -> Output:
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"output={output!r} is the probability of a class, and {type(model).__name__} has no "
            "predict_proba; use output='margin'"
        )
    candidates: Sequence[Any] = [] if classes is None else list(classes)
    several = isinstance(output, list | tuple | np.ndarray)
    labels = list(output) if several else [output]
    if not labels:
        raise InputError("output=[] names no class")
    columns = [_column(label, candidates) for label in labels]
    names = tuple(str(candidates[c]) for c in columns)
    return Output("predict_proba", columns if several else columns[0], names)


def _column(label: Any, candidates: Sequence[Any]) -> int:
    for position, candidate in enumerate(candidates):
        if candidate == label or str(candidate) == str(label):
            return position
    close = get_close_matches(str(label), [str(c) for c in candidates], n=1)
    advice = f"; did you mean {close[0]!r}?" if close else ""
    raise InputError(
        f"output={label!r} is no class of the model{advice} Known: {[str(c) for c in candidates]}, "
        "or 'probability', 'margin'"
    )


# -- classifiers of several targets ----------------------------------------------------------------------


def _target_columns(
    model: Any, classes: Sequence[Any], output: Any
) -> tuple[int | list[int] | None, tuple[str, ...]]:
    """Resolve the option ``output`` of a classifier of several targets: columns (as of ``Output``) and names.

    Parameters
    ----------
    model
        A classifier whose ``classes_`` is a list.
    classes
        This list: the labels of each target.
    output
        None or "probability" for all; a pair (target, label), or its name; a list of these.

    Raises
    ------
    InputError
        If the model has no probabilities, or no such target or label.
    """
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"{type(model).__name__} predicts several targets, and has no probabilities: explain the "
            "classifier of one target, or pass a callable"
        )
    pairs = [(target, label) for target, labels in enumerate(classes) for label in labels]
    names = [f"{target}: {label}" for target, label in pairs]
    if output is None or (isinstance(output, str) and output == "probability"):
        return None, tuple(names)
    if not isinstance(output, list):
        column = _target_column(output, pairs, names)
        return column, (names[column],)
    columns = [_target_column(each, pairs, names) for each in output]
    if not columns:
        raise InputError("output=[] names no class")
    return columns, tuple(names[column] for column in columns)


def _target_column(output: Any, pairs: Sequence[tuple[int, Any]], names: Sequence[str]) -> int:
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
