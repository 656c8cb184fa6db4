r"""The whole effect of a column, cell by cell, and what pairs of columns add: a local functional ANOVA.

Under the row's own law w, columns independent,

    f ≈ E_w f + Σ_j effect_j(cell of x_j) + Σ_jk pair_jk(cells of x_j and x_k) + ...
    effect_j(b) = E_w[f | x_j in cell b] - E_w f,

each sum the best function of its kind. Each term explains a share of Var_w f, and shares add up to R². LIME's
coefficient compares the row's cell with the average of the others, one number of this curve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, overload

import numpy as np

from limes._checks import require
from limes._explanation.drawing import Printable
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._arrays import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Effect(Printable):
    """The effect of one column on one output, around one row: arrays (p,), cells in their order.

    Attributes
    ----------
    feature, output, row
        Names, and the position of the row in the explanation.
    cells
        The cells in words, ``"bmi <= 23.2"``.
    values, standard_errors
        E_w[f | cell] - E_w f; errors are 0 where exact. A cell that too few rows of a sample lie in is NaN,
        with an infinite error.
    masses
        P_w(cell), with sum 1.
    current
        Position of the row's cell.
    share
        Part of Var_w f that the curve explains; LIME's coefficient explains a part of that.
    """

    feature: str
    output: str
    row: int
    cells: tuple[str, ...]
    values: Floats
    standard_errors: Floats
    masses: Floats
    current: int
    share: float

    _terminal: ClassVar[str] = "effect_cards"

    def __repr__(self) -> str:
        text = ", ".join(
            f"{cell} {value:+.3g}{' (row)' if b == self.current else ''}"
            for b, (cell, value) in enumerate(zip(self.cells, self.values.tolist(), strict=True))
        )
        return f"<Effect of {self.feature} on {self.output}: {text}; {self.share:.0%} of the variance>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Interaction(Printable):
    """The effect of a pair of columns beyond their single effects on one output of one row: arrays (p, q).

    Attributes
    ----------
    features, output, row
        Two names, the output's, and the position of the row in the explanation.
    cells
        The cells of either column in words.
    values, standard_errors
        E_w[f | both cells] - E_w[f | one] - E_w[f | other] + E_w f; errors are 0 where exact.
    masses
        P_w of both cells.
    current
        Positions of the row's cells.
    share, share_error
        Part of Var_w f that the pair explains beyond the effects, and its standard error.
    """

    features: tuple[str, str]
    output: str
    row: int
    cells: tuple[tuple[str, ...], tuple[str, ...]]
    values: Floats
    standard_errors: Floats
    masses: Floats
    current: tuple[int, int]
    share: float
    share_error: float

    _terminal: ClassVar[str] = "effect_cards"

    def __repr__(self) -> str:
        first, second = self.features
        return f"<Interaction of {first} and {second} on {self.output}: {self.share:.1%} of the variance>"


# Rows whose effects are computed together, the most that are cached
ROWS_TOGETHER = 1000


class EffectAxes(NamedTuple):
    """The axes of effects: a number of rows, names of outputs and of features, in this order.

    ``shown`` are the positions of the outputs that a column's name alone refers to: of two classes the
    second, the positive one.
    """

    rows: int
    outputs: tuple[str, ...]
    features: tuple[str, ...]
    shown: Sequence[int]

    @property
    def size(self) -> int:
        """Number of effects."""
        return self.rows * len(self.outputs) * len(self.features)

    def place(self, position: int) -> tuple[int, int, int]:
        """Row, output and feature of an effect."""
        row, rest = divmod(position, len(self.outputs) * len(self.features))
        return (row, *divmod(rest, len(self.features)))


class Effects(Sequence[Effect], Printable):
    """Effects of the columns, row by row and output by output: a sequence, also by the name of a column.

    Numbers of many rows are computed together, and an `Effect` is made of them when it is indexed.
    """

    _terminal: ClassVar[str] = "effect_cards"

    def __init__(
        self,
        axes: EffectAxes,
        rows_from: Callable[[int], Callable[[int, int, int], Effect]],
        positions: range,
    ) -> None:
        self._axes, self._rows_from, self._positions = axes, rows_from, positions
        # first row, and the function that makes the effects of rows from there on; replaced together
        self._block: tuple[int, Callable[[int, int, int], Effect]] | None = None

    def __repr__(self) -> str:
        axes = self._axes
        sizes = f"{axes.rows} rows, {len(axes.outputs)} outputs, {len(axes.features)} columns"
        return f"<Effects: {len(self)} of {sizes}>"

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._axes.features

    @property
    def shown_outputs(self) -> tuple[str, ...]:
        """Names of the outputs that are shown: of two classes the second, the positive one."""
        return tuple(self._axes.outputs[k] for k in self._axes.shown)

    @overload
    def __getitem__(self, key: int | str) -> Effect: ...
    @overload
    def __getitem__(self, key: slice) -> Effects: ...
    def __getitem__(self, key: int | str | slice) -> Effect | Effects:
        """Return an effect by position or by the name of its column, or a slice of them.

        By name, the effect on the positive class of two is returned.

        Raises
        ------
        InputError
            If no column has this name, or several rows or other outputs have it.
        """
        if isinstance(key, slice):
            return Effects(self._axes, self._rows_from, self._positions[key])
        if isinstance(key, str):
            return self._at(self._named(key))
        return self._at(self._positions[key])

    def _at(self, position: int) -> Effect:
        row, output, feature = self._axes.place(position)
        first = row - row % ROWS_TOGETHER
        block = self._block
        if block is None or block[0] != first:
            block = self._block = first, self._rows_from(first)
        return block[1](row, output, feature)

    def _named(self, name: str) -> int:
        """Return the position of the one effect of a column."""
        features, shown = self._axes.features, set(self._axes.shown)
        named = [p for p in self._positions if features[p % len(features)] == name]
        if not named:
            raise InputError(f"no column is called {name!r}; use one of {', '.join(dict.fromkeys(features))}")
        if len(named) > 1:
            named = [p for p in named if self._axes.place(p)[1] in shown]
        if len(named) == 1:
            return named[0]
        raise InputError(
            f"{len(named)} rows, outputs or columns have an effect of {name!r}: pick a row and an output of "
            f"the explanation first, as in explanation[0, :, {self._axes.outputs[-1]!r}].effects"
        )

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a long data frame: one line a row, output, feature and cell.

        Its columns are row, output, feature, cell, value, standard_error, mass and current, whether it is the
        cell of the row.
        """
        require(backend, f"to_frame(backend={backend!r})")
        import narwhals as nw

        names = ("row", "output", "feature", "cell", "value", "standard_error", "mass", "current")
        lines: dict[str, list[Any]] = {name: [] for name in names}
        for effect in self:
            count = len(effect.cells)
            lines["row"] += [effect.row] * count
            lines["output"] += [effect.output] * count
            lines["feature"] += [effect.feature] * count
            lines["cell"] += effect.cells
            lines["value"] += effect.values.tolist()
            lines["standard_error"] += effect.standard_errors.tolist()
            lines["mass"] += effect.masses.tolist()
            lines["current"] += (np.arange(count) == effect.current).tolist()
        return nw.from_dict(lines, backend=backend).to_native()
