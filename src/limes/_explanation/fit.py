r"""R², whole effects and pairs of an explanation, computed at first access: a local functional ANOVA.

Under the row's own law w, columns independent,

    f ≈ E_w f + Σ_j effect_j(cell of x_j) + Σ_jk pair_jk(cells of x_j and x_k) + ...
    effect_j(b) = E_w[f | x_j in cell b] - E_w f,

each sum the best function of its kind. Each term explains a share of Var_w f, and shares add up to R². LIME's
coefficient compares the row's cell with the average of the others, one number of this curve.

An explainer attaches a `Fit`: a selection of rows, features and outputs of its `RowFits`, which compute row
by row and cache. What depends on it is computed, and the `RowFits` are made, when it is first read. JSON and
pickles store the numbers, not the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Never, Protocol, overload

import numpy as np

from limes._explanation.attribution import Coefficients, Contributions, requested
from limes._explanation.drawing import Card, Printable, drawer
from limes._explanation.selection import by_size, shown_of
from limes._explanation.wording import difference
from limes._names import AmbiguousNameError, Names, is_whole, text_of
from limes._threads import progress_of
from limes.exceptions import InputError, ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limes._arrays import Floats
    from limes._fidelity.weighted_rows import PairEffect
    from limes._sampling.least_squares import Tolerance
    from limes._shapley.exact import RowContributions
    from limes._warnings import RowWarning

    Positions = NDArray[np.intp]


class _Drawn(Printable):
    def _card(self) -> Card:
        card: Card = drawer("terminal").effect_card(self)
        return card


@dataclass(frozen=True, kw_only=True, eq=False)
class Effect(_Drawn):
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
    share, share_error
        Part of Var_w f that the curve explains, and its standard error; LIME's coefficient explains a part of
        that. NaN where the sample cannot tell.
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
    share_error: float = 0.0

    def __repr__(self) -> str:
        text = ", ".join(
            f"{cell} {difference(value, 3)}{' (row)' if b == self.current else ''}"
            for b, (cell, value) in enumerate(zip(self.cells, self.values.tolist(), strict=True))
        )
        return f"<Effect of {self.feature} on {self.output}: {text}; {self.share:.0%} of the variance>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Interaction(_Drawn):
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

    def __repr__(self) -> str:
        first, second = self.features
        return f"<Interaction of {first} and {second} on {self.output}: {self.share:.1%} of the variance>"


# Rows whose effects are computed together, the most that are cached
ROWS_TOGETHER = 1000
# Seconds a row within which long tables and summaries have exact contributions by default
QUICK = 2e-3
# Rows whose contributions are computed together, where a bar shows how far they are
_AT_ONCE = 200


class Effects(Sequence[Effect], _Drawn):
    """Effects of the columns, row by row and output by output: a sequence, also by the name of a column.

    Numbers of many rows are computed together, and an `Effect` is made of them when it is indexed.
    """

    def __init__(
        self,
        rows_from: Callable[[int], Callable[[int, int, int], Effect]],
        rows: int,
        outputs: Sequence[str],
        features: Names,
        shown: Sequence[int],
        positions: range | None = None,
    ) -> None:
        # returns what makes the effects of rows from a first one on
        self._rows_from = rows_from
        self._rows, self._outputs, self._names = rows, outputs, features
        # positions of the outputs that a column's name alone refers to: of two classes the second, positive
        self._shown = shown
        whole = range(rows * len(outputs) * len(features))
        self._positions = whole if positions is None else positions

    def __repr__(self) -> str:
        sizes = f"{self._rows} rows, {len(self._outputs)} outputs, {len(self._names)} columns"
        return f"<Effects: {len(self)} of {sizes}>"

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(map(text_of, self._names.names))

    @property
    def shown_outputs(self) -> tuple[str, ...]:
        """Names of the outputs that are shown: of two classes the second, the positive one."""
        return tuple(self._outputs[k] for k in self._shown)

    @overload
    def __getitem__(self, key: Hashable) -> Effect: ...
    @overload
    def __getitem__(self, key: slice) -> Effects: ...
    def __getitem__(self, key: Hashable | slice) -> Effect | Effects:
        """Return an effect by position or by the name of its column, or a slice of them.

        By name, the effect on the positive class of two is returned.

        Raises
        ------
        InputError
            If no column has this name, several rows or other outputs have it, or a whole number is the name
            of one column and the position of another.
        """
        if isinstance(key, slice):
            axes = self._rows, self._outputs, self._names, self._shown
            return Effects(self._rows_from, *axes, self._positions[key])
        named = self._names.called(key)
        if not is_whole(key) or (named and not -len(self) <= key < len(self)):
            return self._at(self._named(key))
        position = self._positions[key]
        if named and position % len(self._names) not in named:
            raise AmbiguousNameError(
                f"{key!r} is the name of a column, and the position of another one's effect: pass a text, "
                f"effects[{text_of(key)!r}], or a slice, effects[{key!r}:][0]"
            )
        return self._at(position)

    def __iter__(self) -> Iterator[Effect]:
        return map(self._at, self._positions)

    def at(self, position: int) -> Effect:
        """Return the effect at a position, whatever columns are called."""
        return self._at(self._positions[position])

    def _at(self, position: int) -> Effect:
        row, output, feature = self._place(position)
        return self._rows_from(row - row % ROWS_TOGETHER)(row, output, feature)

    def _place(self, position: int) -> tuple[int, int, int]:
        row, rest = divmod(position, len(self._outputs) * len(self._names))
        return (row, *divmod(rest, len(self._names)))

    def _named(self, name: Any) -> int:
        """Return the position of the one effect of a column."""
        features, shown = set(self._names.called(name)), set(self._shown)
        named = [p for p in self._positions if p % len(self._names) in features]
        if not named:
            texts = dict.fromkeys(map(text_of, self._names.names))
            raise InputError(f"no column is called {name!r}; use one of {', '.join(texts)}")
        if len(named) > 1:
            named = [p for p in named if self._place(p)[1] in shown]
        if len(named) == 1:
            return named[0]
        raise InputError(
            f"{len(named)} rows, outputs or columns have an effect of {name!r}: pick a row and an output of "
            f"the explanation first, as in explanation[0, :, {self._outputs[-1]!r}].effects"
        )

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a long data frame: one line a row, output, feature and cell.

        Its columns are row, output, feature, cell, value, standard_error, mass and current, whether it is the
        cell of the row.
        """
        return drawer("exports").frame_of_effects(self, backend)


class RowEffects(NamedTuple):
    """Effects of the columns around one row: lists of d arrays."""

    values: list[Floats]  # E_w[f | cell] - E_w f, (p_j, k)
    errors: list[Floats]  # (p_j, k)
    masses: list[Floats]  # P_w(cell), (p_j,)
    current: list[int]  # positions of the row's cells
    shares: Floats  # part of Var_w f that each column's effect explains, (d, k)
    share_errors: Floats  # their standard errors, (d, k)


class WithinGroup(NamedTuple):
    """How the columns of a group share its contribution: Owen's value.

    Attributes
    ----------
    names
        Names of the columns, m of them.
    values : (n, m) or (n, m, k)
        Parts of the contribution; of each row they add up to it.
    standard_errors : as ``values``
        0 where exact.
    """

    names: tuple[str, ...]
    values: Floats
    standard_errors: Floats


class RowFit(Protocol):
    """All effects around one row together."""

    @property
    def r_squared(self) -> tuple[Floats, Floats]:
        """R² of all effects and its standard errors, (k,) each."""
        ...

    @property
    def effects(self) -> RowEffects: ...

    @property
    def hidden(self) -> Floats | None:
        """Shares of Var_w f, (d, k), of the effects that matter and that coefficients hide, NaN of others.

        None where effects are estimated.
        """
        ...


class RowFits(Protocol):
    """Computes how well the surrogates of one call's rows fit; threads may share it."""

    @property
    def has_curves(self) -> bool:
        """Whether features have several cells each, with an effect in each of them."""
        ...

    @property
    def is_quick(self) -> bool:
        """Whether effects have a closed form, so that those of thousands of rows take seconds."""
        ...

    def fidelities(self, rows: Sequence[int]) -> Sequence[tuple[Floats, Floats]]:
        """R² of rows and their standard errors, 0 where exact, (k,) each."""
        ...

    def additive(self, rows: Sequence[int]) -> Sequence[RowFit]:
        """Compute effects of rows together."""
        ...

    def additive_numbers(self, rows: Sequence[int]) -> Sequence[tuple[Floats, Floats, Floats | None]]:
        """R² of all effects of rows, its standard errors, (k,) each, and which are hidden: see `RowFit`."""
        ...

    def pairs(self, row: int, output: int, top: int, columns: Sequence[int]) -> Sequence[PairEffect]:
        """The pairs of these columns that explain most beyond the effects, at most ``top``, largest first."""
        ...

    def cell_texts(self, row: int, column: int) -> tuple[str, ...]:
        """The cells of a column in words."""
        ...

    def contributions(self, rows: Sequence[int], *, is_current: bool = False) -> RowContributions:
        """The contributions of all columns at rows, sampled where there are no exact ones.

        Unless the model ``is_current``, as in the call that explains the rows, an InputError is raised if it
        was fitted again since.
        """
        ...

    def exact_contributions(self, rows: Sequence[int]) -> RowContributions | None:
        """Return those of rows, without a call of the model; None if a row has no exact ones."""
        ...

    def halved_pairs(self, rows: Sequence[int]) -> tuple[Floats, Floats]:
        """Half the interaction index of all pairs at rows, (n, d, d, k), and their errors.

        The diagonal has less their sums: together with the contributions on it rows add up to these.
        """
        ...

    @property
    def account_seconds(self) -> float:
        """About the seconds that exact contributions at a row take."""
        ...

    @property
    def pair_seconds(self) -> float:
        """About the seconds that exact pairs of a row take; infinite without any."""
        ...

    def within(self, row: int, column: int) -> WithinGroup:
        """How a group's columns share its contribution at a row, (m, k); an InputError for another column."""
        ...


class WithoutSurrogates:
    """Base of the `RowFits` of explanations that have contributions and pairs alone: all else is refused."""

    has_curves = is_quick = False
    account_seconds = 0.0

    def refuse(self, name: str) -> Never:
        """Raise the InputError of something that there is not."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Never:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse(name.replace("_", " "))


@dataclass(frozen=True, eq=False)
class Fit:
    """Rows, features and outputs of `RowFits`, by position.

    ``make`` returns the `RowFits`, which all selections of one explanation share; ``several`` states whether
    arrays have an axis of outputs, ``is_read`` whether contributions cost no call of the model, ``shows``
    whether they are shown by default.
    """

    make: Callable[[], RowFits]
    rows: Positions
    features: Positions
    outputs: Positions
    several: bool
    # the coefficients of all rows, features and outputs
    make_coefficients: Callable[[], Coefficients]
    is_read: bool = False
    shows: bool = True
    accuracy: Tolerance | None = None  # of contributions; None of exact ones
    # warnings of all rows, those about coefficients included, where these were not asked for
    make_warnings: Callable[[], Sequence[tuple[RowWarning, ...]]] | None = None

    @classmethod
    def of(
        cls,
        make: Callable[[], RowFits],
        shape: tuple[int, ...],
        make_coefficients: Callable[[], Coefficients],
        **options: Any,
    ) -> Fit:
        """The fit of all rows and features, for values of this shape, (n, d) or (n, d, k)."""
        n, d, *k = shape
        outputs = np.arange(k[0] if k else 1)
        return cls(cache(make), np.arange(n), np.arange(d), outputs, bool(k), make_coefficients, **options)

    def select(self, positions: Mapping[str, Positions], *, drops_axis: bool) -> Fit:
        """The fit at positions of the rows, "n", features, "d", and outputs, "k"."""
        return replace(
            self,
            rows=self.rows[positions["n"]],
            features=self.features[positions["d"]],
            outputs=self.outputs[positions["k"]],
            several=self.several and not drops_axis,
        )

    @property
    def has_curves(self) -> bool:
        return self.make().has_curves

    @property
    def is_quick(self) -> bool:
        return self.make().is_quick

    def fidelity(self) -> tuple[Floats, Floats]:
        """R² and its standard errors, (n,) or (n, k) each."""
        return self._stacked(self.make().fidelities(self.rows.tolist()))

    def of_row(self, place: int) -> tuple[Floats, Floats]:
        """R² of one row and its standard errors, (k,) each."""
        ((value, error),) = self.make().fidelities([int(self.rows[place])])
        return value[self.outputs], error[self.outputs]

    def additive(self) -> tuple[Floats, Floats]:
        """R² of all effects together and its standard errors, (n,) or (n, k) each."""
        numbers = self.make().additive_numbers(self.rows.tolist())
        return self._stacked([(value, error) for value, error, _ in numbers])

    def additive_at(self, places: Sequence[int]) -> Iterator[tuple[Floats, Floats, Floats]]:
        """The same of some rows and the chosen outputs, (k,) each, and which effects are hidden, (d, k)."""
        for start in range(0, len(places), ROWS_TOGETHER):
            rows = self.rows[list(places[start : start + ROWS_TOGETHER])].tolist()
            nothing = np.full((len(self.features), len(self.outputs)), np.nan)
            for value, error, its in self.make().additive_numbers(rows):
                hidden = nothing if its is None else its[self.features][:, self.outputs]
                yield value[self.outputs], error[self.outputs], hidden

    def effects(self, names: Names, outputs: Sequence[str], predictions: Floats) -> Effects:
        """Effects of the chosen columns, row by row and output by output, under these names.

        ``predictions`` (n,) or (n, k) show whether the outputs are two classes.
        """
        shown = shown_of(predictions) if self.several else [0]
        texts = [*map(text_of, names.names)]
        rows_from = lru_cache(maxsize=1)(partial(self._effects, texts, outputs))
        return Effects(rows_from, len(self.rows), outputs, names, shown)

    def _effects(
        self, names: Sequence[str], outputs: Sequence[str], first: int
    ) -> Callable[[int, int, int], Effect]:
        fits, rows = self.make(), self.rows[first : first + ROWS_TOGETHER].tolist()
        additive = fits.additive(rows)

        def effect(row: int, output: int, feature: int) -> Effect:
            j, k = int(self.features[feature]), int(self.outputs[output])
            numbers = additive[row - first].effects
            return Effect(
                feature=names[feature],
                output=outputs[output],
                row=row,
                cells=fits.cell_texts(rows[row - first], j),
                values=numbers.values[j][:, k],
                standard_errors=numbers.errors[j][:, k],
                masses=numbers.masses[j],
                current=numbers.current[j],
                share=float(numbers.shares[j, k]),
                share_error=float(numbers.share_errors[j, k]),
            )

        return effect

    def interactions(self, names: Sequence[str], outputs: Sequence[str], top: int) -> tuple[Interaction, ...]:
        """The ``top`` pairs of each row and output that explain most, largest first."""
        return tuple(self._interactions(dict(zip(self.features.tolist(), names, strict=True)), outputs, top))

    def _interactions(self, names: dict[int, str], outputs: Sequence[str], top: int) -> Iterator[Interaction]:
        fits = self.make()
        for place, row in enumerate(self.rows.tolist()):
            (additive,) = fits.additive([row])
            current = additive.effects.current
            for k, output in zip(self.outputs.tolist(), outputs, strict=True):
                for pair in fits.pairs(row, k, top, sorted(names)):
                    i, j = pair.columns
                    yield Interaction(
                        features=(names[i], names[j]),
                        output=output,
                        row=place,
                        cells=(fits.cell_texts(row, i), fits.cell_texts(row, j)),
                        values=pair.values,
                        standard_errors=pair.errors,
                        masses=pair.masses,
                        current=(current[i], current[j]),
                        share=float(pair.share),
                        share_error=float(pair.share_error),
                    )

    def all_warnings(self) -> list[tuple[RowWarning, ...]]:
        """Warnings of the rows, those about coefficients included."""
        record = () if self.make_warnings is None else self.make_warnings()
        return [record[i] for i in self.rows.tolist()]

    def coefficients(self) -> Coefficients:
        """Coefficients of the chosen columns and outputs."""
        whole = self.make_coefficients()
        positions = {"n": self.rows, "d": self.features, "k": self.outputs}
        return whole.select(positions, drops_axis=whole.values.ndim == 3 and not self.several)

    def contributions(self) -> Contributions:
        """Contributions of the chosen columns to the chosen outputs."""
        if not self.rows.size:
            base = np.empty((0, len(self.outputs)) if self.several else 0)
            values = np.empty((0, len(self.features), *base.shape[1:]))
            numbers = dict.fromkeys(("values", "standard_errors", "alone", "last"), values)
            calls, converged = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_)
            return Contributions(
                base_values=base, base_errors=base, calls=calls, row_converged=converged, **numbers
            )
        fits, rows = self.make(), self.rows.tolist()
        if len(rows) * fits.account_seconds < 1.0:
            return self._chosen_from(fits.contributions(rows))
        parts: list[RowContributions] = []
        with progress_of(shown=True)(len(rows)) as advance:
            for start in range(0, len(rows), _AT_ONCE):
                parts.append(fits.contributions(rows[start : start + _AT_ONCE]))
                advance(len(parts[-1].base))
        return self.joined(parts)

    def pairs(self) -> tuple[Floats, Floats]:
        """Halved pairs of the chosen columns and their errors, (n, d, d[, k]) each: see `RowFits`."""
        d, k = len(self.features), len(self.outputs)
        if not self.rows.size:
            nothing = np.empty((0, d, d, k) if self.several else (0, d, d))
            return nothing, nothing
        halves, errors = self.make().halved_pairs(self.rows.tolist())
        return self._chosen_pairs(halves), self._chosen_pairs(errors)

    @property
    def pair_seconds(self) -> float:
        return self.make().pair_seconds

    def _chosen_pairs(self, pairs: Floats) -> Floats:
        chosen = pairs[:, self.features[:, None], self.features][..., self.outputs]
        return np.ascontiguousarray(chosen if self.several else chosen[..., 0])

    def within(self, place: int) -> WithinGroup:
        """How the columns of the group at this place of the features share its contributions."""
        fits, column = self.make(), int(self.features[place])
        rows = [fits.within(row, column) for row in self.rows.tolist()]
        outputs = self.outputs if self.several else int(self.outputs[0])
        values, errors = (np.stack([each[which] for each in rows])[..., outputs] for which in (1, 2))
        return WithinGroup(rows[0].names, values, errors)

    def joined(self, parts: list[RowContributions]) -> Contributions:
        """The chosen columns and outputs of all rows, from the contributions of some after others."""
        return self._chosen_from(type(parts[0]).joined(parts))

    def exact_contributions(self) -> Contributions | None:
        """The same, without a call of the model; None if a row has no exact ones."""
        computed = self.make().exact_contributions(self.rows.tolist()) if self.rows.size else None
        return None if computed is None else self._chosen_from(computed)

    def account(self, places: Sequence[int]) -> Contributions | None:
        """Contributions of rows that are shown by default: those that cost no call of the model."""
        if not (self.shows and places and self.is_read):
            return None
        try:
            return replace(self, rows=self.rows[places]).contributions()
        except (InputError, ModelError):  # method="exact" gives no estimates, and a new fit none either
            return None

    def _chosen_from(self, computed: RowContributions) -> Contributions:
        """The chosen columns and outputs of contributions."""
        outputs = self.outputs if self.several else int(self.outputs[0])
        return Contributions.of_rows(computed, self.features, outputs, self.accuracy)

    def _stacked(self, rows: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        """Stack values and errors (k,) of the rows, with an axis of the chosen outputs if they have one."""
        both = np.empty((0, 2, len(self.outputs)))
        if rows:
            both = np.array(rows, dtype=np.float64).reshape(len(rows), 2, -1)[:, :, self.outputs]
        values, errors = (both if self.several else both[:, :, 0]).swapaxes(0, 1)
        for array in (values, errors):
            array.flags.writeable = False
        return values, errors


def fidelity_at(explanation: Any, row: int, output: int) -> tuple[float, float]:
    """R² of one row and output of an explanation and its standard error; no other row is computed."""
    stored = explanation.coefficients.stored
    if stored["fidelity"] is None:
        numbers = explanation.fit.of_row(row)
    else:
        numbers = tuple(np.reshape(stored[name][row], -1) for name in ("fidelity", "fidelity_errors"))
    return float(numbers[0][output]), float(numbers[1][output])


def leading(explanation: Any) -> Literal["contributions", "coefficients"]:
    """The reading that is shown unless one is named: contributions, if the explanation can have them.

    It depends on what was asked for, not on what was read since. A rule has none, nor have files without
    them, nor calls with ``contributions=False``.
    """
    if requested(explanation, "contributions") is not None:
        return "contributions"
    fit = explanation.fit
    return "contributions" if fit is not None and fit.shows else "coefficients"


def account_at(explanation: Any, rows: Sequence[int]) -> Contributions | None:
    """The contributions of rows that are known, or cost no call of the model."""
    computed: Contributions | None = requested(explanation, "contributions")
    if computed is None:
        return None if explanation.fit is None else explanation.fit.account(rows)
    return computed.at(rows)


class Pair(NamedTuple):
    """Two features by position, and φ_ij of these: half of it is in the contribution of either."""

    features: tuple[int, int]
    value: float


def pairs_at(explanation: Any, rows: Sequence[int], seconds: float = 1.0) -> Floats | None:
    """Pairs of rows (m, d, d, k) that are known, or exact within ``seconds``; None without such.

    The diagonals may be without the contributions.
    """
    account = requested(explanation, "contributions")
    stored = {} if account is None else account.stored
    several = explanation.predictions.ndim == 2
    if stored.get("known_pairs") is not None:
        pairs: Floats = stored["known_pairs"][list(rows)]
    else:
        fit = explanation.fit
        if fit is None or not rows or not fit.is_read or len(rows) * fit.pair_seconds > seconds:
            return None
        try:
            pairs, _ = replace(fit, rows=fit.rows[list(rows)]).pairs()
        except (InputError, ModelError):  # a row that a quadrature refuses has contributions with errors
            return None
    return pairs if several else pairs[..., None]


def strongest_pairs(pairs: Floats, top: int, least: float) -> list[Pair]:
    """The ``top`` pairs of one row and output, (d, d), with the largest |φ_ij| of those above ``least``."""
    first, second = np.triu_indices(len(pairs), 1)
    indices = 2.0 * pairs[first, second]
    order = [at for at in by_size(np.abs(indices))[:top].tolist() if abs(indices[at]) > least]
    return [Pair((int(first[at]), int(second[at])), float(indices[at])) for at in order]


def additive_at(explanation: Any, rows: Sequence[int] | None = None) -> tuple[Floats, Floats]:
    """R² of whole effects of rows, all unless given, and its standard errors, (m, k) each.

    NaN without a closed form.
    """
    values, errors, _ = effects_at(explanation, rows)
    return values, errors


def effects_at(
    explanation: Any, rows: Sequence[int] | None = None
) -> tuple[Floats, Floats, dict[int, Floats]]:
    """The same, and the shares (d, k) of effects that coefficients hide, at positions in ``rows``."""
    rows = range(len(explanation)) if rows is None else rows
    hidden: dict[int, Floats] = {}
    fit, methods = explanation.fit, explanation.row_methods
    values = np.full((len(rows), len(explanation.output_names)), np.nan)
    errors = np.zeros_like(values)
    if fit is not None and fit.has_curves and fit.is_quick:
        exact = [i for i, row in enumerate(rows) if methods[row] == "exact"]
        for i, numbers in zip(exact, fit.additive_at([rows[i] for i in exact]), strict=True):
            values[i], errors[i], shares = numbers
            if not np.isnan(shares).all():
                hidden[i] = shares
    return values, errors, hidden
