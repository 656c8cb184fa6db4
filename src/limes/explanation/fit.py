"""How well surrogates fit, computed when somebody looks: R² of the rows of an explanation.

An explainer attaches a `Fit`: a selection of rows, features and outputs of its `RowFits`, which compute row
by row and cache. The fields of an explanation that depend on it are ``left_to_fit``: nothing is spent on them
until they are first read. JSON and pickles store the numbers, not the fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limes._arrays import Floats

    Positions = NDArray[np.intp]


class RowFits(Protocol):
    """Computes how well the surrogates of one call's rows fit; threads may share it."""

    def fidelity(self, row: int) -> tuple[Floats, Floats]:
        """R² of one row and its standard errors, (k,) each."""
        ...


@dataclass(frozen=True, eq=False)
class Fit:
    """Rows, features and outputs of `RowFits`, by position.

    ``several`` tells whether arrays have an axis of outputs.
    """

    source: RowFits
    rows: Positions
    features: Positions
    outputs: Positions
    several: bool

    @classmethod
    def of(cls, source: RowFits, shape: tuple[int, ...]) -> Fit:
        """Return the fit of all rows and features, for values of this shape, (n, d) or (n, d, k)."""
        n, d, *k = shape
        return cls(source, np.arange(n), np.arange(d), np.arange(k[0] if k else 1), bool(k))

    def select(self, positions: Mapping[str, Positions], *, drops_axis: bool) -> Fit:
        """Return the fit at positions of the rows, "n", features, "d", and outputs, "k"."""
        return Fit(
            self.source,
            self.rows[positions["n"]],
            self.features[positions["d"]],
            self.outputs[positions["k"]],
            self.several and not drops_axis,
        )

    def fidelity(self) -> tuple[Floats, Floats]:
        """R² and its standard errors, (n,) or (n, k) each."""
        return self.stacked([self.source.fidelity(row) for row in self.rows.tolist()])

    def stacked(self, rows: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        """Stack values and errors (k,) of the rows, with an axis of the chosen outputs if they have one."""
        both = np.array(rows, dtype=np.float64).reshape(len(rows), 2, -1)[:, :, self.outputs]
        values, errors = (both if self.several else both[:, :, 0]).swapaxes(0, 1)
        for array in (values, errors):
            array.flags.writeable = False
        return values, errors


class _LeftToFit:
    """A field that is computed, with the other ones that its fit computes, when it is first read.

    Threads may compute it at the same time, and get the same numbers.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, explanation: Any, owner: type) -> Any:
        if explanation is None:
            return None  # the default of the dataclass
        state = vars(explanation)
        if state[self._name] is None and explanation.fit is not None:
            state["fidelity"], state["fidelity_errors"] = explanation.fit.fidelity()
        return state[self._name]

    def __set__(self, explanation: Any, value: Any) -> None:
        vars(explanation)[self._name] = value


def left_to_fit() -> Any:
    """Return a field of an explanation that may be None, and is then computed by its ``fit``."""
    return _LeftToFit()
