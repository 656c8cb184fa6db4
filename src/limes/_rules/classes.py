r"""The class that a model predicts, as one answer that is searched: margins of classes less each other.

A model that predicts the class of the largest margin predicts c in the place of a where

    m_a - m_c < 0 for any c ≠ a,    or for one class c:    max_{b≠c} (m_b - m_c) < 0.

The first is searched for each c alone, and bounds of the differences bound their largest. Margins are those
before a softmax, or the probabilities themselves; with ties the model's own ``predict`` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._checks import did_you_mean
from limes._names import text_of
from limes._rules.bounds import Bounds, Box, Crossing, Range, Searched, Texture, bounds_of
from limes._rules.literals import SignRows
from limes._rules.problem import AnswerRange
from limes._threads import LRUCache
from limes.exceptions import InputError, ModelError
from limes.models._algebra import map_outputs
from limes.models._calling.caller import ModelCaller
from limes.models._calling.outputs import Output, resolve
from limes.models._reading import CannotRead, tolerance_of
from limes.models.forms._base import Form, outputs_of

# Methods by which margins are read, the first that is known
_OUTPUTS = ("margin", "probability")
# Goals whose bounds are kept
_GOALS = 64


@dataclass(frozen=True, eq=False)
class LargestBounds(Bounds):
    """Bounds of the largest of several answers."""

    parts: tuple[Bounds, ...]

    def values(self, rows: Floats) -> Floats:
        return np.asarray(np.max([part.values(rows) for part in self.parts], axis=0))

    def texture(self, j: int) -> Texture:
        return reduce(Texture.joined, (part.texture(j) for part in self.parts))

    def __call__(self, box: Box) -> Range:
        parts = [part(box) for part in self.parts]
        low, high = max(part.low for part in parts), max(part.high for part in parts)
        open_ones = [part for part in parts if part.high >= low]  # the others are largest in no row
        return Range(
            low,
            high,
            np.concatenate([part.columns for part in open_ones]),
            np.concatenate([part.thresholds for part in open_ones]),
            np.concatenate([part.stakes for part in open_ones]),
        )


@dataclass(frozen=True)
class ClassGoal:
    """Another class than the one predicted, or one class."""

    now: int
    to: int | None

    def reached(self, classes: Ints) -> Bools:
        return np.asarray(classes != self.now if self.to is None else classes == self.to)


def class_labels(model: Any) -> tuple[Any, ...]:
    """Return the labels of a model that predicts one class of several; () of any other one."""
    classes: Any = getattr(model, "classes_", None)
    is_flat = classes is not None and not isinstance(classes, list) and np.ndim(classes) == 1
    if not is_flat or len(classes) < 2 or not hasattr(model, "predict"):
        return ()
    return tuple(np.asarray(classes).tolist())


@dataclass(frozen=True, eq=False)
class PredictedClass:
    """1 where a model predicts one class, and 0 elsewhere."""

    model: Any
    label: Any

    answer_range: ClassVar[AnswerRange] = AnswerRange(0.0, 1.0, "the range of whether a class is predicted")

    @property
    def output(self) -> Output:
        return Output("", None, (f"class {text_of(self.label)}",))

    def __call__(self, table: Any) -> Floats:
        return np.asarray(np.asarray(self.model.predict(table)).ravel() == self.label, dtype=np.float64)


class Classes:
    """The classes of a model: which one it predicts, and what is searched for another one."""

    def __init__(self, model: Any, rows: SignRows, read: Callable[[Output], Form]) -> None:
        self._model, self._rows, self._read = model, rows, read
        self._searched: LRUCache[ClassGoal, tuple[Searched, ...]] = LRUCache(_GOALS)
        self.labels = class_labels(model)
        if not self.labels:
            raise InputError(
                f"{type(model).__name__} predicts no class of several: pass below= or above=, the number "
                "that the prediction has to cross"
            )
        self._caller = ModelCaller(self._predicted, Output("", None, None), rows.decode)

    def _predicted(self, table: Any) -> Floats:
        """Return the position of the class that the model predicts, (n,)."""
        labels = np.asarray(self._model.predict(table)).ravel()
        places = {label: float(i) for i, label in enumerate(self.labels)}
        try:
            return np.array([places[label] for label in labels.tolist()])
        except KeyError as error:
            raise ModelError(f"predict answers {error.args[0]!r}, which is not among classes_") from error

    def __call__(self, rows: Floats) -> Ints:
        """Return the positions of the classes predicted at rows (n, d)."""
        return self._caller(rows).astype(np.int64)

    def indicator(self, label: Any) -> PredictedClass:
        return PredictedClass(self._model, label)

    def position(self, label: Any) -> int:
        """Return the position of a class by its label, or the text of it."""
        for i, its in enumerate(self.labels):
            if label == its or (isinstance(label, str) and label == str(its)):
                return i
        advice = did_you_mean(label, map(text_of, self.labels))
        raise InputError(
            f"to={label!r} is no class of the model{advice}; its classes are {list(self.labels)}"
        )

    def text(self, place: int) -> str:
        return str(self.labels[place])

    def searched(self, goal: ClassGoal) -> tuple[Searched, ...]:
        """Return answers of which one is below 0 where the goal is reached; none where no box bounds them."""
        return self._searched.get(goal, lambda: next(filter(None, (self._by(o, goal) for o in _OUTPUTS)), ()))

    def _by(self, name: str, goal: ClassGoal) -> tuple[Searched, ...]:
        try:
            output = resolve(self._model, name)
            form = self._read(output)
        except (CannotRead, InputError):
            return ()
        rows, count = self._rows.checked_rows(form.size), len(self.labels)
        values, answers = form.predict(rows), ModelCaller(self._model, output, self._rows.decode)(rows)
        tolerance, size = tolerance_of(self._model), float(np.abs(values).max())
        if answers.shape != values.shape or not (np.abs(answers - values) <= tolerance * size).all():
            return ()
        if outputs_of(form) == (count,):
            unit = np.eye(count)
        elif name == "margin" and values.ndim == 1 and count == 2:
            unit = np.array([-0.5, 0.5])  # one number: the margin of the second class
        else:
            return ()

        def bounds(a: int, b: int) -> Bounds | None:
            try:
                return bounds_of(map_outputs(form, unit[a] - unit[b]))
            except InputError:
                return None

        others = [c for c in range(count) if c != (goal.now if goal.to is None else goal.to)]
        parts = [bounds(goal.now, c) if goal.to is None else bounds(c, goal.to) for c in others]
        bounded = tuple(part for part in parts if part is not None)
        if len(bounded) < len(parts):
            return ()
        if goal.to is not None and len(bounded) > 1:
            bounded = (LargestBounds(bounded),)
        # a difference has the roundings of two margins
        its = tuple(Searched(part, None, 2.0 * tolerance, size) for part in bounded)
        return its if self._agree(its, rows, goal) else ()

    def _agree(self, searched: Sequence[Searched], rows: Floats, goal: ClassGoal) -> bool:
        """Return whether signs of what is searched say the class that the model predicts, but for ties."""
        values = np.min([its.bounds.values(rows) for its in searched], axis=0)
        apart = np.abs(values) > crossing_of(searched[0]).threshold
        return bool(((values < 0.0) == goal.reached(self(rows)))[apart].all())


def crossing_of(its: Searched) -> Crossing:
    """Return the goal on what is searched: below 0, or so close to it that rounding may decide."""
    return Crossing(1.0, its.tolerance * its.size, np.inf)
