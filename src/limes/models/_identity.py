"""Checks that a model predicts as its class does, and that it was not fitted again.

A reader knows what ``sklearn.linear_model.LinearRegression.predict`` computes. It must not read another class
of the same name, nor a ``predict`` that was put on the instance or on the class.

Calling a model takes milliseconds, inspecting it microseconds. A fit replaces attributes, or fills arrays
anew: attributes are compared by identity, arrays by their bytes. Libraries that store their fit outside of
Python's objects, as boosting libraries do, may change it unseen: such a state is not ``complete``, and a
`Watch` compares answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limes._arrays import Floats

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

    def holds(self) -> bool:
        return (
            all(_are(_values(model), values) for model, values in self.attributes)
            and all(_are(entries, values) for entries, values in self.entries)
            and all(array.tobytes() == content for array, content in self.contents)
        )


def state_of(model: Any) -> ModelState:
    state = ModelState([], [], [], complete=True)
    return state._replace(complete=_collect(model, state))


def _values(model: Any) -> Collection[Any]:
    return getattr(model, "__dict__", {}).values()


def _are(present: Collection[Any], recorded: tuple[Any, ...]) -> bool:
    return len(present) == len(recorded) and all(map(is_, present, recorded))


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
        if hasattr(value, "get_params") and not isinstance(value, type):
            complete &= _collect(value, state)
    return complete


# -- has it been fitted again? -----------------------------------------------------------------------------

Predict: TypeAlias = Callable[[Floats], Floats]
# Rows of a call at which answers are compared, if a new fit may not show in the model's attributes
_ROWS = 64
# Relative rounding of answers that were added up in float32
REFIT_ROUNDING = 1e-5


def few_rows(rows: Floats) -> Floats:
    """At most 64 of the rows, evenly spread."""
    return rows[:: -(-len(rows) // _ROWS)]


@dataclass(eq=False)
class Watch:
    """Detects that a model was fitted again since it was read, by its state and the answers of its form."""

    model: Any
    has_reader: bool  # other models are not watched
    ask: Predict | None = None  # the model's own answers
    predict: Predict | None = None  # those of what was read of it
    allowed: float = 0.0  # largest difference of the two, among answers as large as the background's
    _state: ModelState | None = field(init=False)

    def __post_init__(self) -> None:
        self._state = self._present()

    def unchanged(self, rows: Floats) -> bool:
        """Return whether the model is the one that was read, as far as explained rows (n, d) show it."""
        return self.same_state() and self.agrees(rows)

    def same_state(self) -> bool:
        if self._state is None and self.has_reader:  # the copy of a model has its own state
            self._state = self._present()
        return self._state is None or self._state.holds()

    def agrees(self, rows: Floats, answers: Floats | None = None, by: Predict | None = None) -> bool:
        """Return whether model and form agree at explained rows, if the state may hide a new fit.

        ``answers`` are those at all rows, if the caller has them, and ``by`` the function that returned them.
        """
        if self.ask is None or self.predict is None or self._state is None or self._state.complete:
            return True
        expected, computed = (
            few_rows(answers) if answers is not None and by == source else source(few_rows(rows))
            for source in (self.ask, self.predict)
        )
        # rows far from the background may have larger answers
        allowed = self.allowed + REFIT_ROUNDING * float(np.abs(expected).max())
        return expected.shape == computed.shape and bool((np.abs(expected - computed) <= allowed).all())

    def _present(self) -> ModelState | None:
        return state_of(self.model) if self.has_reader else None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_state": None}
