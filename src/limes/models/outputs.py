"""Which number of a model is explained: its method, and the columns of what that method returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError, ModelError
from limes.models.asking import answer_of
from limes.models.several_targets import chosen_columns, side_by_side


@dataclass(frozen=True)
class Output:
    """A method of a model ("" where the model itself is called) and the columns wanted of its answer.

    ``columns`` is None for all of them, a position for one (which drops the axis), a list for several.
    """

    method: str
    columns: int | list[int] | None
    labels: tuple[str, ...] | None

    def pick(self, answer: Floats) -> Floats:
        """Select the wanted columns of an answer (n, k)."""
        return answer if self.columns is None else answer[:, self.columns]

    def names(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        """Names of the outputs that are left, for an answer of the given shape without its rows."""
        if self.labels is not None:
            return self.labels
        if not shape:
            return ("output",)
        wanted = range(shape[0]) if not isinstance(self.columns, list) else self.columns
        return tuple(str(i) for i in wanted)


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
        if answer_of(model, "") is None:
            raise InputError(f"model must have a predict method or be callable, got {type(model).__name__}")
        return _positions("", output)
    classes = getattr(model, "classes_", None)
    if (classes is None or len(classes) == 0) and not hasattr(model, "predict_proba"):
        if isinstance(output, str) and output == "margin" and answer_of(model, "decision_function"):
            return Output("decision_function", None, None)
        return _positions("predict", output)
    return _classifier(model, classes, output)


def _positions(method: str, output: Any) -> Output:
    wanted = output if isinstance(output, list) else [output]
    if output is None:
        return Output(method, None, None)
    if not wanted or not all(_is_position(i) for i in wanted):
        raise InputError(
            f"output={output!r}: this model has no classes; output may be None, or the position of a column "
            "of its answer, or a list of positions"
        )
    return Output(method, output, tuple(str(i) for i in wanted))


def _is_position(candidate: Any) -> bool:
    whole = isinstance(candidate, int | np.integer) and not isinstance(candidate, bool)
    return whole and bool(candidate >= 0)


def _classifier(model: Any, classes: Any, output: Any) -> Output:
    if isinstance(classes, list):
        return Output("predict_proba", *chosen_columns(model, classes, output))
    names = tuple(str(c) for c in classes) if classes is not None else None
    whole = {
        None: _default_method(model),
        "probability": "predict_proba",
        "margin": "decision_function",
    }
    if output is None or (isinstance(output, str) and output in whole):
        method = whole[output]
        if answer_of(model, method) is None:
            raise InputError(_lacks(model, method, output))
        return Output(method, None, _margin_names(model, names) if method == "decision_function" else names)
    return _labels(model, classes, output)


def _lacks(model: Any, method: str, output: Any) -> str:
    """What to do where the model has no such method."""
    name = type(model).__name__
    if hasattr(model, "predict_proba") or answer_of(model, "decision_function") is not None:
        return f"output={output!r} needs {name}.{method}, which it does not have"
    advice = (
        "fit it with voting='soft' to explain probabilities, or explain one of model.estimators_"
        if getattr(model, "voting", None) == "hard"
        else "pass a callable, for instance lambda X: model.predict(X) == label, which is sampled"
    )
    return f"{name} answers labels only, it has neither probabilities nor margins: {advice}"


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
    known: Sequence[Any] = [] if classes is None else list(classes)
    several = isinstance(output, list | tuple | np.ndarray)
    wanted = list(output) if several else [output]
    if not wanted:
        raise InputError("output=[] asks for no class at all")
    columns = [_column(label, known) for label in wanted]
    names = tuple(str(known[c]) for c in columns)
    return Output("predict_proba", columns if several else columns[0], names)


def _column(label: Any, known: Sequence[Any]) -> int:
    for position, candidate in enumerate(known):
        if candidate == label or str(candidate) == str(label):
            return position
    close = get_close_matches(str(label), [str(c) for c in known], n=1)
    advice = f"; did you mean {close[0]!r}?" if close else ""
    raise InputError(
        f"output={label!r} is no class of the model{advice} Known: {[str(c) for c in known]}, "
        "or 'probability', 'margin'"
    )


@dataclass(frozen=True)
class ModelCaller:
    """Asks the user's own model: checks what it answers and says which rows it failed on.

    ``decode`` turns a matrix (n, d) into whatever table the model was fitted on.
    """

    model: Any
    output: Output
    decode: Callable[[Floats], Any]

    def __call__(self, x: Floats) -> Floats:
        """Answers (n,) or (n, k) at rows (n, d).

        Raises
        ------
        ModelError
            If the model raises, or answers with another number of rows, too many axes, or NaN or inf.
        """
        name = self._name
        call = answer_of(self.model, self.output.method)
        if call is None:
            raise ModelError(f"there is no {name}")
        table = self.decode(x)
        try:
            raw = call(table)
        except Exception as error:
            raise ModelError(
                f"{name} raised {type(error).__name__} on a batch of {len(x)} rows: {error}", batch=table
            ) from error
        try:
            return self.output.pick(self._checked(raw, len(x)))
        except ModelError as error:
            error.batch = table
            raise

    @property
    def _name(self) -> str:
        owner = getattr(self.model, "__name__", type(self.model).__name__)
        return f"{owner}.{self.output.method}" if self.output.method else f"{owner}()"

    def _checked(self, raw: Any, rows: int) -> Floats:
        targets = getattr(self.model, "classes_", None)
        if isinstance(targets, list) and self.output.method == "predict_proba":
            raw = side_by_side(raw, targets, self._name)
        elif isinstance(raw, list) and raw and np.ndim(raw[0]) == 2:
            raise ModelError(
                f"{self._name} returned a list of {len(raw)} arrays; pass a callable that returns one of them"
            )
        answer = self._numbers(raw)
        if answer.ndim not in (1, 2) or len(answer) != rows or 0 in answer.shape[1:]:
            raise ModelError(
                f"{self._name} was given {rows} rows and returned shape {answer.shape}; "
                f"expected ({rows},) or ({rows}, outputs)"
            )
        wanted = self.output.columns
        if wanted is not None and (answer.ndim == 1 or np.max(wanted) >= answer.shape[1]):
            raise ModelError(
                f"{self._name} returned shape {answer.shape}, which has no column {np.max(wanted)}"
            )
        bad = ~np.isfinite(answer).all(axis=tuple(range(1, answer.ndim)))
        if bad.any():
            row = int(np.argmax(bad))
            raise ModelError(
                f"{self._name} returned {answer[row]} for row {row} of a batch of {rows}; "
                "every answer must be finite"
            )
        return answer

    def _numbers(self, raw: Any) -> Floats:
        """What was answered as floats; torch's tensors with gradients say themselves what to do."""
        try:
            found = np.asarray(raw)
            odd = [] if found.dtype.kind in "biuf" else found.ravel().tolist()
            strange = [value for value in odd if isinstance(value, str | complex)]
            answer = None if strange else found.astype(np.float64)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ModelError(f"{self._name} did not return numbers: {error}") from error
        if answer is None:
            raise ModelError(f"{self._name} did not return numbers, but {strange[0]!r}")
        return answer
