"""Checks that a model predicts as its class does, and that it was not fitted again.

A reader knows what ``sklearn.linear_model.LinearRegression.predict`` computes. It must not read another class
of the same name, nor a ``predict`` that was put on the instance or on the class.

Calling a model takes milliseconds, inspecting it microseconds. A fit replaces attributes, or fills arrays
anew: attributes are compared by identity, arrays by their bytes. A call may do so, too: where objects are
others, their values are compared. Libraries that store their fit outside of Python's objects, as boosting
libraries do, may change it unseen, and a user's own classes may change by being called: such a state is not
``complete``, and a `Watch` compares answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limes._arrays import ROUNDING, Floats, power_of_two

# Methods that readers replace
_METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "inverse_transform",
)


def _library_of(module: str) -> str:
    return module.split(".")[0]


def qualified_name(kind: type) -> str:
    """``library.Class``, the key of readers; "" if the class's module does not contain it under that name."""
    owner: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        owner = getattr(owner, "__dict__", {}).get(part)  # runs no code of the owner's
    return f"{_library_of(kind.__module__)}.{kind.__qualname__}" if owner is kind else ""


def replaced_method(model: Any) -> str | None:
    """The first method that is not defined by the model's library; None if all are."""
    attributes = getattr(model, "__dict__", {})
    kind = type(model)
    library = _library_of(kind.__module__)
    for method in _METHODS:
        if method in attributes:
            return method
        module = getattr(getattr(kind, method, None), "__module__", None)
        if module is not None and _library_of(module) != library:
            return method
    return None


# -- the state of a fitted model ---------------------------------------------------------------------------

# Bytes of an array that is compared by its content
_SMALL = 1 << 18
# Values that say all of themselves
_PLAIN = (str, bytes, bool, int, float, complex, np.generic, np.dtype, type(None))
# A longer list is a forest's, whose trees are new objects after a fit; members of a shorter one may be
# refitted in place
_FEW_MEMBERS = 16


class ModelState(NamedTuple):
    """The objects that a model refers to, down to the models inside it; they are kept alive."""

    # the model, and the models inside it, with the values of their attributes, compared by identity
    attributes: list[tuple[Any, tuple[Any, ...]]]
    entries: list[tuple[Sequence[Any], tuple[Any, ...]]]  # lists among these values, compared by identity
    contents: list[tuple[NDArray[Any], bytes]]  # small arrays among these values
    complete: bool  # whether every change of the fit is visible in the three

    def equals(self, other: ModelState) -> bool:
        """Whether both hold the same values, in the same objects or in others."""
        return (
            [len(each) for each in self[:3]] == [len(each) for each in other[:3]]
            and all(
                type(a) is type(b) and len(values) == len(others) and all(map(_alike, values, others))
                for (a, values), (b, others) in zip(self.attributes, other.attributes, strict=True)
            )
            and all(_alike(a, b) for (_, a), (_, b) in zip(self.entries, other.entries, strict=True))
            and all(a == b for (_, a), (_, b) in zip(self.contents, other.contents, strict=True))
        )


def same_objects(
    attributes: list[tuple[Any, tuple[Any, ...]]],
    entries: list[tuple[Sequence[Any], tuple[Any, ...]]],
    contents: list[tuple[NDArray[Any], bytes]],
) -> bool:
    """Whether models and lists refer to the objects that they did, and small arrays have their content."""
    return (
        all(_are(_values(model), values) for model, values in attributes)
        and all(_are(its, values) for its, values in entries)
        and all(array.tobytes() == content for array, content in contents)
    )


def state_of(model: Any) -> ModelState:
    state = ModelState([], [], [], complete=True)
    return state._replace(complete=_collect(model, state))


def _values(model: Any) -> Collection[Any]:
    return getattr(model, "__dict__", {}).values()


def _are(present: Collection[Any], recorded: tuple[Any, ...]) -> bool:
    return len(present) == len(recorded) and all(map(is_, present, recorded))


def _alike(a: Any, b: Any) -> bool:
    """Whether two values of attributes are one, as far as states do not compare what is in them elsewhere."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return False
        if a.dtype.hasobject:
            return all(map(is_, a.ravel().tolist(), b.ravel().tolist()))
        return a.nbytes <= _SMALL or a.tobytes() == b.tobytes()  # small ones are among the contents
    if isinstance(a, list | tuple):
        same = _alike if len(a) <= _FEW_MEMBERS or not _is_model(a[0]) else is_
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return [*a] == [*b] and all(
            x is y if _is_model(x) else _alike(x, y) for x, y in zip(a.values(), b.values(), strict=True)
        )
    return _is_model(a) or (isinstance(a, _PLAIN) and bool(a == b))


def _collect(model: Any, state: ModelState) -> bool:
    """Add a model to a state; return whether that is complete."""
    values = tuple(_values(model))
    state.attributes.append((model, values))
    complete = _library_of(type(model).__module__) == "sklearn"
    for value in values:
        if isinstance(value, np.ndarray):
            small = value.nbytes <= _SMALL and not value.dtype.hasobject
            complete &= small or value.dtype.hasobject
            if small:
                state.contents.append((value, value.tobytes()))
        elif isinstance(value, list | tuple):
            state.entries.append((value, tuple(value)))
            complete &= _collect_all(_members(value), state)
        else:
            complete &= _collect_all((value,), state)
    return complete


def _members(values: list[Any] | tuple[Any, ...]) -> Iterable[Any]:
    """Estimators of a list: named steps, or a few bare ones."""
    if values and isinstance(values[0], tuple):
        return (entry for named in values for entry in named)
    return values if len(values) <= _FEW_MEMBERS else ()


def _collect_all(values: Iterable[Any], state: ModelState) -> bool:
    complete = True
    for value in values:
        if _is_model(value):
            complete &= _collect(value, state)
    return complete


def _is_model(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


# -- has it been fitted again? -----------------------------------------------------------------------------

Predict: TypeAlias = Callable[[Floats], Floats]
# Rows of a call at which answers are compared, if a new fit may not show in the model's attributes
_ROWS = 64
FITTED_AGAIN = "the model was fitted again since this explanation: explain the rows again"
# Rows that are asked again in each call
WITNESSES = 8
# Answers that two batches give to one row differ by less without a new fit: relative to their size, and to
# their spread; but float32 may take this much of the size
REFIT_ROUNDING, _OF_SPREAD, _IN_SINGLE = 1e-5, 1e-3, 5e-7
# Spreads of a random model's answers by which two of them may differ
SPREADS = 3.0
# Rows that are asked again differ from those that were compared before: they are allowed this many times more
_CAUTION = 4.0


def few_rows(rows: Floats) -> Floats:
    """At most 64 of the rows, evenly spread."""
    return rows[:: -(-len(rows) // _ROWS)]


def rounding_of(answers: Floats, single: float = _IN_SINGLE) -> Floats:
    """Return what of a difference of answers (n, ...) is no new fit, of each output: less than they spread.

    ``single`` is what numbers in float32 may lose of their size.
    """
    size = np.abs(answers).max(axis=0, initial=0.0)
    unit = power_of_two(size)  # squares of large answers are no finite numbers
    spread = unit * (answers / unit).std(axis=0)
    return np.asarray(np.minimum(REFIT_ROUNDING * size, np.maximum(single * size, _OF_SPREAD * spread)))


@dataclass(eq=False)
class Witnesses:
    """Rows of the background that a model is asked about again in each call, and what it answered first.

    The first answers may be to some of the rows only: the next ones are kept, if they agree.
    """

    ask: Predict
    rows: Floats  # (m, d)
    answers: Floats  # (m, ...), or to the first of the rows
    moved: Floats  # by how much those moved when they were repeated at once, (...)
    spread: float  # of a random model's answers; 0 of a function

    @classmethod
    def of(
        cls,
        ask: Predict,
        background: Floats,
        answered: tuple[Floats, Floats, Floats],
        spread: float,
        count: int = WITNESSES,
    ) -> Witnesses:
        """Take rows with answers, and what these moved by, and add others of a background (n, d)."""
        rows, answers, moved = answered
        rows, answers = rows[:count], answers[:count]
        places = np.linspace(0, len(background) - 1, count - len(rows) + 2)[1:-1]
        both = np.concatenate([rows, background[places.astype(np.int64)]])
        return cls(ask, both, answers, moved, spread)

    def repeat(self) -> bool:
        """Ask again, and return whether the model is the same; one that varies more than it did is."""
        if not len(self.rows):  # few calls have none to spare
            return True
        present, before = self.ask(self.rows), self.answers
        if present.shape[1:] != before.shape[1:]:
            return False
        apart = np.abs(present[: len(before)] - before).max(axis=0)
        if (apart <= self.allowed).all():
            self.answers = before if len(before) == len(present) else present
            return True
        # a new fit repeats its answers
        again = np.abs(self.ask(self.rows) - present).max(axis=0)
        if (again <= self.allowed).all():
            return False
        self.moved = np.maximum(self.moved, apart)
        return True

    @property
    def allowed(self) -> Floats:
        """Return what answers may move by without a new fit, of each output."""
        if not len(self.answers):
            return np.asarray(_CAUTION * self.moved + SPREADS * self.spread)
        # the same batch has the same rounding, whatever the size of the answers
        is_same_batch = len(self.answers) == len(self.rows)
        rounding = rounding_of(self.answers, ROUNDING if is_same_batch else _IN_SINGLE)
        return np.asarray(np.maximum(rounding, _CAUTION * self.moved + SPREADS * self.spread))


@dataclass(eq=False)
class RefitDetector:
    """Detects that a model was fitted again since it was read, by its state and its answers.

    Answers of a model that was read are compared with its form's, unless its state says all; a model that is
    asked itself is asked about its ``witnesses`` again.
    """

    model: Any
    ask: Predict | None = None  # the model's own answers
    predict: Predict | None = None  # those of what was read of it
    allowed: Floats | float = 0.0  # largest difference of the two, among answers as large as the background's
    size: float = np.inf  # of the background's answers
    background: Floats | None = None  # at most 64 of its rows
    witnesses: Witnesses | None = None
    _state: ModelState | None = field(init=False, default=None)
    _replaced: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._state = state_of(self.model)
        self._replaced = replaced_method(self.model)

    def unchanged(self, rows: Floats) -> bool:
        """Return whether the model is the one that was read, as far as explained rows (n, d) show it."""
        if not (self.same_state() and self.repeats()):
            return False
        both = np.concatenate([few_rows(rows), self.beside(rows)])
        return self.ask is None or not self._may_hide or self.agrees(both, self.ask(both), self.ask)

    @property
    def tolerated(self) -> Floats | float:
        """Return what answers to one row may differ by without a new fit, of each output."""
        return _CAUTION * self.allowed if self.witnesses is None else self.witnesses.allowed

    def same_state(self) -> bool:
        """Return whether the state says that the model is the same, or cannot tell: it is not complete."""
        if self._holds():
            return True
        # answers may come from what the library keeps, past a method that was put on the instance
        return not self._recorded.complete and replaced_method(self.model) == self._replaced

    def repeats(self) -> bool:
        """Return whether a model that is asked itself answers a few rows as before."""
        return self.witnesses is None or self.witnesses.repeat()

    def beside(self, rows: Floats) -> Floats:
        """Rows (m, d) that `agrees` is to be asked about beside those of a call, as one may hide a new fit.

        They are more where the state is another one, which calls alone may have made.
        """
        if self.background is None or not self._may_hide:
            return rows[:0]
        return self.background[:: -(-len(self.background) // WITNESSES) if self._holds() else 1]

    def agrees(self, rows: Floats, answers: Floats, by: Predict) -> bool:
        """Return whether model and form agree at rows, if the state may hide a new fit.

        ``answers`` are those at the rows, and ``by`` the function that returned them.
        """
        if not self._may_hide or self.ask is None or self.predict is None:
            return True
        expected, computed = (answers if by == its else its(rows) for its in (self.ask, self.predict))
        if expected.shape != computed.shape:
            return False
        # rows far from the background may have larger answers
        largest = float(np.abs(expected).max(initial=0.0))
        allowed = self.allowed * max(1.0, largest / self.size if self.size > 0 else 1.0)
        if not (np.abs(expected - computed) <= _CAUTION * allowed).all():
            return False
        if not self._holds():  # by being asked it has another one
            self._state = state_of(self.model)
        return True

    @property
    def _may_hide(self) -> bool:
        """Whether the state may hide a new fit of a model that was read."""
        return self.ask is not None and self.predict is not None and not self._recorded.complete

    @property
    def _recorded(self) -> ModelState:
        if self._state is None:  # the copy of a model has its own state
            self._state = state_of(self.model)
        return self._state

    def _holds(self) -> bool:
        """Whether the state is the recorded one, in the same objects or in others of the same values."""
        if same_objects(*self._recorded[:3]):
            return True
        present = state_of(self.model)
        if not self._recorded.equals(present):
            return False
        self._state = present
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_state": None}
