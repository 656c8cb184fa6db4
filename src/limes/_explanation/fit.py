"""The fit of surrogates, computed at first access: R² of the rows of an explanation.

An explainer attaches a `Fit`: a selection of rows, features and outputs of its `RowFits`, which compute row
by row and cache. The fields of an explanation that depend on it are ``left_to_fit``: they are computed, and
the `RowFits` are made, when they are first read. JSON and pickles store the numbers, not the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from limes._explanation.effects import ROWS_TOGETHER, Effect, EffectAxes, Effects, Interaction
from limes._explanation.selection import shown_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limes._arrays import Floats

    Positions = NDArray[np.intp]


class RowEffects(NamedTuple):
    """Effects of the columns around one row: lists of d arrays.

    values, errors : (p_j, k)
        E_w[f | cell] - E_w f, and standard errors.
    masses : (p_j,)
        P_w(cell).
    current : d positions
        Positions of the row's cells.
    shares : (d, k)
        Part of Var_w f that each column's effect explains.
    additive, additive_errors : (k,)
        R² of all effects together, and its standard errors.
    """

    values: list[Floats]
    errors: list[Floats]
    masses: list[Floats]
    current: list[int]
    shares: Floats
    additive: Floats
    additive_errors: Floats


class RowPair(NamedTuple):
    """Effects of pairs of cells on one output: values, errors and masses (p, q), and the share of Var_w f."""

    columns: tuple[int, int]
    values: Floats
    errors: Floats
    masses: Floats
    share: float
    share_error: float


class RowFits(Protocol):
    """Computes how well the surrogates of one call's rows fit; threads may share it."""

    def fidelities(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """R² of rows and their standard errors, (k,) each."""
        ...

    def additive(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """R² of all effects of rows together and their standard errors, (k,) each."""
        ...

    def effects(self, rows: Sequence[int]) -> Callable[[int], RowEffects]:
        """Compute the rows' effects together; return the function from a place among the rows to effects."""
        ...

    @property
    def has_curves(self) -> bool:
        """Whether features have several cells each, with an effect in each of them."""
        ...

    @property
    def is_quick(self) -> bool:
        """Whether effects have a closed form, so that those of thousands of rows take seconds."""
        ...

    def pairs(self, row: int, output: int, top: int, columns: Sequence[int]) -> list[RowPair]:
        """The pairs of these columns that explain most beyond the effects, at most ``top``, largest first."""
        ...

    def cell_texts(self, row: int, column: int) -> tuple[str, ...]:
        """The cells of a column in words."""
        ...


@dataclass(frozen=True, eq=False)
class Fit:
    """Rows, features and outputs of `RowFits`, by position.

    ``make`` returns the `RowFits`, which all selections of one explanation share; ``several`` states whether
    arrays have an axis of outputs.
    """

    make: Callable[[], RowFits]
    rows: Positions
    features: Positions
    outputs: Positions
    several: bool

    @classmethod
    def of(cls, make: Callable[[], RowFits], shape: tuple[int, ...]) -> Fit:
        """Return the fit of all rows and features, for values of this shape, (n, d) or (n, d, k)."""
        n, d, *k = shape
        return cls(cache(make), np.arange(n), np.arange(d), np.arange(k[0] if k else 1), bool(k))

    def select(self, positions: Mapping[str, Positions], *, drops_axis: bool) -> Fit:
        """Return the fit at positions of the rows, "n", features, "d", and outputs, "k"."""
        return Fit(
            self.make,
            self.rows[positions["n"]],
            self.features[positions["d"]],
            self.outputs[positions["k"]],
            self.several and not drops_axis,
        )

    @property
    def source(self) -> RowFits:
        """The `RowFits` of the rows."""
        return self.make()

    @property
    def has_curves(self) -> bool:
        """Whether features have several cells each, with an effect in each of them."""
        return self.source.has_curves

    @property
    def is_quick(self) -> bool:
        """Whether effects have a closed form, so that those of thousands of rows take seconds."""
        return self.source.is_quick

    def fidelity(self) -> tuple[Floats, Floats]:
        """R² and its standard errors, (n,) or (n, k) each."""
        return self.stacked(self.source.fidelities(self.rows.tolist()))

    def of_row(self, place: int) -> tuple[Floats, Floats]:
        """R² of one row and its standard errors, (k,) each."""
        ((value, error),) = self.source.fidelities([int(self.rows[place])])
        return value[self.outputs], error[self.outputs]

    def additive(self) -> tuple[Floats, Floats]:
        """R² of all effects together and its standard errors, (n,) or (n, k) each."""
        return self.stacked(self.source.additive(self.rows.tolist()))

    def effects(self, names: Sequence[str], outputs: Sequence[str], predictions: Floats) -> Effects:
        """Effects of the chosen columns, row by row and output by output, under these names.

        ``predictions`` (n,) or (n, k) show whether the outputs are two classes.
        """
        shown = shown_of(predictions) if self.several else [0]
        axes = EffectAxes(len(self.rows), tuple(outputs), tuple(names), shown)
        return Effects(axes, partial(self._effects, axes), range(axes.size))

    def _effects(self, axes: EffectAxes, first: int) -> Callable[[int, int, int], Effect]:
        """Return the function from a row (from the first on), an output and a feature to the effect."""
        rows = self.rows[first : first + ROWS_TOGETHER].tolist()
        numbers = self.source.effects(rows)

        def effect(row: int, output: int, feature: int) -> Effect:
            return self._effect(axes, row, numbers(row - first), output, feature)

        return effect

    def _effect(self, axes: EffectAxes, place: int, numbers: RowEffects, output: int, feature: int) -> Effect:
        j, k = int(self.features[feature]), int(self.outputs[output])
        return Effect(
            feature=axes.features[feature],
            output=axes.outputs[output],
            row=place,
            cells=self.source.cell_texts(int(self.rows[place]), j),
            values=numbers.values[j][:, k],
            standard_errors=numbers.errors[j][:, k],
            masses=numbers.masses[j],
            current=numbers.current[j],
            share=float(numbers.shares[j, k]),
        )

    def interactions(self, names: Sequence[str], outputs: Sequence[str], top: int) -> tuple[Interaction, ...]:
        """The ``top`` pairs of each row and output that explain most, largest first."""
        return tuple(self._interactions(dict(zip(self.features.tolist(), names, strict=True)), outputs, top))

    def _interactions(self, names: dict[int, str], outputs: Sequence[str], top: int) -> Iterator[Interaction]:
        for place, row in enumerate(self.rows.tolist()):
            effects = self.source.effects([row])(0)
            for k, output in zip(self.outputs.tolist(), outputs, strict=True):
                for pair in self.source.pairs(row, k, top, sorted(names)):
                    i, j = pair.columns
                    yield Interaction(
                        features=(names[i], names[j]),
                        output=output,
                        row=place,
                        cells=(self.source.cell_texts(row, i), self.source.cell_texts(row, j)),
                        values=pair.values,
                        standard_errors=pair.errors,
                        masses=pair.masses,
                        current=(effects.current[i], effects.current[j]),
                        share=pair.share,
                        share_error=pair.share_error,
                    )

    def stacked(self, rows: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
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


def fidelity_at(explanation: Any, row: int, output: int) -> tuple[float, float]:
    """Return R² of one row and output of an explanation and its standard error; no other row is computed."""
    state = vars(explanation)
    if state["fidelity"] is None:
        numbers = explanation.fit.of_row(row)
    else:
        numbers = tuple(np.reshape(state[name][row], -1) for name in ("fidelity", "fidelity_errors"))
    return float(numbers[0][output]), float(numbers[1][output])


def left_to_fit() -> Any:
    """Return a field of an explanation that may be None, and is then computed by its ``fit``."""
    return _LeftToFit()
