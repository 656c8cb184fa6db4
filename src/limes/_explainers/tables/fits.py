r"""How well the surrogates of a table's rows fit, and their effects, computed row by row at first access.

R² = (2 b·Γ - b·Σb) / Var_w f. Coefficients b and Γ are the explanation's. Of a model that was read Var_w f is
exact where its form has a closed form (``_fidelity/variance.py``), as effects of cells have,
else estimated on rows of w through the form (``_fidelity/weighted_rows.py``). Of a
sampled model both come from the answers that the explanation was made of. The model is called for its
contributions alone (``_shapley/set_sampler.py``, ``_shapley/permutations.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from limes._arrays import (
    Bools,
    Floats,
    Ints,
    Objects,
    fingerprint,
    is_constant,
    power_of_two,
    r_squared,
    streams,
)
from limes._expectations.moments import REFUSED
from limes._explainers.tables.accounts import Accounts
from limes._explainers.tables.few_rows import contributions_at
from limes._explainers.tables.laws import Writer, bin_texts
from limes._explanation.fit import RowEffects
from limes._explanation.view import CAPTURED, MATTERS, SURE
from limes._fidelity.variance import (
    CellEffects,
    LinkVariance,
    SumVariance,
    cell_masses,
    exact_cells,
    exact_variance,
)
from limes._fidelity.weighted_rows import (
    FormPool,
    OneHotFit,
    PairEffect,
    Total,
    UnseenAnswers,
    WeightedRows,
    exact_pair,
    pair_estimate,
)
from limes._sampling.joint import JointExpectation
from limes._sampling.least_squares import AnswerStatistics
from limes._sampling.pool import SEQUENCES
from limes._sampling.pooled import PooledExpectation
from limes._shapley.curved_margins import CurvedMargin
from limes._shapley.exact import RowContributions, exact_contributions
from limes._shapley.game_controls import IndependentDraws
from limes._shapley.interventional import Interventional
from limes._shapley.pairs import exact_pairs, pair_seconds
from limes._shapley.permutations import ControlVariates, PermutationSampler
from limes._shapley.sampled_pairs import SampledPairs
from limes._shapley.starts import DrawnStarts, ProductStarts, Starts
from limes._shapley.within import Sharing, exact_sharing
from limes._threads import LRUCache
from limes._tuples import Tuples
from limes.designs._column import SpreadColumn
from limes.designs._marginals import BinCells, TupleCells
from limes.designs._product import ProductDesign, ProductFamily
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._explainers.tables.groups import GroupColumn
    from limes._fitting import Expectation, Fitted
    from limes.models.forms._base import Form

T = TypeVar("T")
# R² and its standard errors, (k,) each, and shares of hidden effects (d, k), None without any
FitNumbers: TypeAlias = tuple[Floats, Floats, Floats | None]
# Rows that are drawn from the law of one row
_OWN_ROWS = 4096
# Background rows whose answers tell the size of the model's
_SIZED = 256
# Rows that are computed together: few enough for their tables of cells
_TOGETHER = 1024
# Rows of a call whose effects are cached
MOST_EFFECTS = 1000
# Bytes of numbers of R² that are cached by pattern of cells, and of one entry beside its arrays
_CACHED, _ENTRY = 1 << 27, 600
# Number of pairs of columns up to which all are computed exactly; of more, those that rows of w rank highest
_ALL_PAIRS, _CANDIDATES = 15, 4
# Share of Var_w f that cells without rows may explain before an error of R² is unknown
_NEGLIGIBLE = 0.01


@dataclass(frozen=True, eq=False)
class _Surrogates:
    """Rows and their surrogates: features in units, numbers of the model divided by its unit."""

    family: ProductFamily
    position: Any  # in the call; of one row, or (n,), as all arrays have a leading axis of n rows then
    x: Floats  # (d,)
    coef: Floats  # (d, k)
    gamma: Floats  # (d, k)
    mean: Floats  # (k,)
    inclusion: Floats  # (d,)
    variance: Floats  # of the features, (d,)

    def explained_by(self, coef: Floats) -> Floats:
        """2 b·Γ - b·Σb column by column, for a diagonal Σ: what of Var_w f coefficients explain, (d, k)."""
        return np.asarray(coef * (2.0 * self.gamma - self.variance[..., None] * coef))


class FittedRow(_Surrogates):
    """One row."""

    @cached_property
    def design(self) -> ProductDesign:
        return self.family.at(self.x).in_units()

    @cached_property
    def cut(self) -> ProductDesign:
        """The design whose cells have effects: slopes are cut into slices."""
        return self.design if self.family.slopes is None else self.design.sliced()

    def locate(self, x: Floats) -> Ints:
        """Cells of rows x (m, d), (d, m)."""
        is_cut = self.family.slopes is not None or self.family.held is not None
        return self.cut.locate(x).T if is_cut else self.family.cells(x).T

    @property
    def masses(self) -> list[Floats]:
        """P_w(cell) of every column, (p,) each."""
        return [coordinate.probability for coordinate in self.cut.coordinates]

    @cached_property
    def line(self) -> Floats:
        """Coefficients of slopes, (d, k), and 0 for indicators, whose cells' effects say all."""
        return np.where(self.design.slopes[:, None], self.coef, 0.0)

    def line_in_cells(self, widest: int) -> Floats:
        """Get what the line adds in each cell on average, (d, widest, k); 0 beyond a column's last cell."""
        line = np.zeros((len(self.line), widest, self.mean.size))
        for j in np.flatnonzero(self.line.any(axis=1)).tolist():
            column = self.cut.coordinates[j]
            means = column.marginal.means / self.design.units[j]
            means = np.where(np.isnan(means), self.inclusion[j], means)  # of missing values
            line[j, : means.size] = np.outer(means - column.probability @ means, self.line[j])
        return line


@dataclass(frozen=True, eq=False)
class FittedRows(_Surrogates):
    """Many rows, with their cells (n, d) of the family."""

    cells: Ints

    @cached_property
    def each(self) -> list[FittedRow]:
        """The single rows, each of which makes its design when it is first asked for."""
        arrays = self.coef, self.gamma, self.mean, self.inclusion, self.variance
        rows = zip(self.position.tolist(), self.x, *arrays, strict=True)
        return [FittedRow(self.family, *numbers) for numbers in rows]

    @property
    def explained(self) -> Floats:
        """Return what of Var_w f the surrogates explain, (n, k)."""
        return np.asarray(self.explained_by(self.coef).sum(axis=1))

    @property
    def curves(self) -> tuple[Floats, Floats]:
        """The surrogates as curves (n, d, B, k), 0 but in the rows' cells, and their bases (n, k)."""
        widest = self.family.widest
        curves = np.zeros((*self.coef.shape[:2], widest, self.coef.shape[2]))
        np.put_along_axis(curves, self.cells[:, :, None, None], self.coef[:, :, None], axis=2)
        return curves, self.mean - np.einsum("nd,ndk->nk", self.inclusion, self.coef)


@dataclass(frozen=True, eq=False)
class ReadForm:
    """A read model under the laws of one background: closed forms, or rows of w; all rows share it."""

    form: Form
    expectation: Expectation
    family: ProductFamily
    background: Floats  # (N, d), encoded
    seed: int
    # whether moments have the same bits in any call, so that numbers that follow from them may be kept
    keeps: bool = False
    of_cells: LRUCache[tuple[str, bytes], FitNumbers] = field(
        default_factory=lambda: LRUCache(_CACHED // _ENTRY, _CACHED), init=False
    )

    @cached_property
    def unit(self) -> Floats:
        """Size of the model's answers, (k,): powers of two, by which everything is divided."""
        rows = self.background[:: -(-len(self.background) // _SIZED)]
        answers = self.form.predict(rows)
        return power_of_two(np.abs(answers.reshape(len(rows), -1)).max(axis=0))

    @cached_property
    def _variance(self) -> Any:
        return exact_variance(self.form, self.unit)

    def variances(self, rows: FittedRows) -> Floats:
        """Var_w (f / unit) of rows, (n, k); nan where it has no closed form, or that has no digits."""
        if self._variance is None:
            return np.full(rows.mean.shape, np.nan)
        if isinstance(self._variance, LinkVariance):
            return self._variance.at_rows(rows.family, rows.x, rows.cells)
        if isinstance(self._variance, SumVariance) and rows.family.by_cell:
            return self._variance.of_rows(rows.family, rows.cells)
        return np.stack([self._variance.variance(row.design) for row in rows.each])

    @cached_property
    def cells(self) -> CellEffects | None:
        return exact_cells(self.form, self.expectation, self.family)

    @cached_property
    def pool(self) -> FormPool:
        return FormPool(self.family, self._predict, self.seed)

    def _predict(self, x: Floats) -> Floats:
        return np.asarray(self.form.predict(x).reshape(len(x), -1) / self.unit)

    def rows(self, row: FittedRow) -> WeightedRows:
        """Rows of w: of the pool where enough of it counts, else drawn for this row."""
        pooled = self.pool.at(self.family.cells(row.x[None])[0]) if self.family.by_cell else None
        if pooled is not None:
            return pooled
        # no cell is rare, however narrow the bandwidth: a few columns change in each row
        share = 1.0 / max(row.x.size, 2)
        columns = [SpreadColumn.of(column, share) for column in row.cut.coordinates]
        drawn = ProductDesign(tuple(spread.column for spread in columns))
        sequences = streams(self.seed, fingerprint(row.x), SEQUENCES)
        x, _, _ = drawn.sampler(sequences).draw(_OWN_ROWS // len(sequences))
        cells, of_sequence = row.locate(x), np.repeat(np.arange(SEQUENCES), _OWN_ROWS // SEQUENCES)
        ratios = [spread.weights(*each) for spread, *each in zip(columns, x.T, cells, strict=True)]
        h, weights = row.design.feature(x), np.prod(ratios, axis=0)
        return WeightedRows.drawn(h, self._predict(x), cells, weights, of_sequence)

    def rests(
        self,
        rows: FittedRows,
        explained: Floats,
        curves: Callable[[], tuple[Floats, Floats]],
        residuals: Callable[[int], tuple[WeightedRows, Floats]],
    ) -> tuple[Floats, Floats, Bools]:
        """The rest of Var_w f, its errors, (n, k) each, and whether cells decide these, (n,).

        By a closed form, or by squares on the pool, for functions base + Σ_j curve_j(cell of x_j), or on rows
        drawn for each row.
        """
        rest, errors = np.maximum(self.variances(rows) - explained, 0.0), np.zeros(explained.shape)
        # without a closed form, or where its digits cancel
        pending = np.flatnonzero(np.isnan(rest).any(axis=1))
        in_pool = np.zeros(pending.size, dtype=np.bool_)
        if pending.size and self.family.by_cell:
            curve, base = curves()
            rest[pending], errors[pending], in_pool = self.pool.squares(
                rows.cells[pending], curve[pending], base[pending]
            )
        of_cells = np.full(len(rest), self.family.by_cell)
        of_cells[pending[~in_pool]] = False
        for i in pending[~in_pool].tolist():
            weighted, unexplained = residuals(i)
            rest[i], errors[i] = weighted.mean(unexplained**2)
            unknown = weighted.miss(rows.gamma[i], rows.inclusion[i]) | weighted.few_decide(unexplained**2)
            errors[i, unknown] = np.inf
        return rest, errors, of_cells


@dataclass(frozen=True, eq=False)
class AdditiveFit:
    """The effects of all columns of row i together; its `RowEffects` are made when they are asked for."""

    rows: FittedRows
    i: int
    total: Total  # Var_w f, or 1 where that is 0
    unseen: UnseenAnswers | None  # of a sampled model
    r_squared: tuple[Floats, Floats]
    make: Callable[[int], RowEffects]
    # rows of w with what the effects leave of f there, (m, k)
    residuals: Callable[[int], tuple[WeightedRows, Floats]]
    hidden: Floats | None = None  # (d, k), of exact effects
    is_of_cells: bool = False  # whether the row's cells decide its numbers

    @cached_property
    def effects(self) -> RowEffects:
        return self.make(self.i)

    @property
    def row(self) -> FittedRow:
        return self.rows.each[self.i]


def exact_account(
    expectation: Any, form: Form | None, family: ProductFamily, x: Floats, cells: Ints
) -> RowContributions:
    """Exact contributions at rows x in these cells (n, d), of a form or under the joint law."""
    if isinstance(expectation, JointExpectation):
        exact: Interventional | None = expectation.interventional
        assert exact is not None  # noqa: S101 - `has_exact_contributions`
        return exact.at(x, cells)
    assert form is not None  # noqa: S101 - the expectation is exact
    return exact_contributions(form, expectation, family, x, cells)


@dataclass(frozen=True, eq=False)
class TableFits(Accounts):
    """Fits of the rows of one call."""

    family: ProductFamily
    account: Callable[[], ProductFamily]  # the designs that contributions rest on
    texts: Sequence[Objects]  # the columns' cells in words
    writers: Sequence[Writer]  # what writes numbers of a column
    x: Floats  # (n, d)
    cells: Ints  # (n, d)
    fit: Callable[[], Fitted]  # the surrogates
    form: ReadForm | None  # None where the model was sampled
    sampling: Any  # what sampled it, or the rows that the exact expectation refused
    predictions: Floats  # (n, ...)
    walks: PermutationSampler | None  # to the model, or to the form if it was read; None with method="exact"
    spent: Ints  # calls that each row rests on already, where one bound is set for all
    rests_on_pool: bool = True  # whether coefficients are asked for, too
    groups: Mapping[int, GroupColumn] = field(default_factory=dict)
    refusal: Exception | None = None
    _walked: dict[int, RowContributions] = field(default_factory=dict, init=False)
    _paired: dict[int, SampledPairs] = field(default_factory=dict, init=False)
    _fidelities: dict[int, FitNumbers] = field(default_factory=dict, init=False)
    _additive_numbers: dict[int, FitNumbers] = field(default_factory=dict, init=False)
    _additive: LRUCache[int, AdditiveFit] = field(default_factory=lambda: LRUCache(MOST_EFFECTS), init=False)

    has_curves = True

    @property
    def is_quick(self) -> bool:
        return self.form is not None and self.form.cells is not None and self.form.cells.is_quick

    @property
    def account_seconds(self) -> float:
        expectation: Any = None if self.form is None else self.form.expectation
        return 0.0 if expectation is None else float(expectation.account_seconds(self.family))

    @property
    def pair_seconds(self) -> float:
        form = self.form
        return np.inf if form is None else pair_seconds(form.form, form.expectation, self.family)

    def fidelities(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        missing = [row for row in dict.fromkeys(rows) if row not in self._fidelities]

        def sampled(some: list[int]) -> Iterable[FitNumbers]:
            return ((*numbers, None) for numbers in sampled_fidelities(self.fitted, some))

        read = partial(self._by_cells, "surrogate", self._fidelities_of)
        self._fidelities.update(self._computed(missing, read, sampled))
        return [self._fidelities[row][:2] for row in rows]

    def additive_numbers(self, rows: Sequence[int]) -> list[FitNumbers]:
        missing = [row for row in dict.fromkeys(rows) if row not in self._additive_numbers]

        def numbers(some: list[int]) -> list[tuple[FitNumbers, bool]]:
            return [((*fit.r_squared, fit.hidden), fit.is_of_cells) for fit in self.additive(some)]

        read = partial(self._by_cells, "effects", numbers)
        self._additive_numbers.update(
            self._computed(missing, read, lambda some: [n for n, _ in numbers(some)])
        )
        return [self._additive_numbers[row] for row in rows]

    def _by_cells(
        self, kind: str, compute: Callable[[list[int]], Sequence[tuple[FitNumbers, bool]]], rows: list[int]
    ) -> list[FitNumbers]:
        """Numbers of rows, computed once for each pattern of cells, where a pattern decides them."""
        form = self.form
        if form is None or not form.keeps or not self.family.by_cell:
            return [numbers for numbers, _ in compute(rows)]
        keys = [(kind, self.cells[row].tobytes()) for row in rows]
        cached = {
            key: numbers for key in dict.fromkeys(keys) if (numbers := form.of_cells.find(key)) is not None
        }
        first = {key: row for key, row in zip(keys[::-1], rows[::-1], strict=True) if key not in cached}
        alone = dict[int, FitNumbers]()
        computed = compute([*first.values()]) if first else []
        for (key, row), (numbers, is_of_cells) in zip(first.items(), computed, strict=True):
            if is_of_cells:
                cached[key] = numbers
                form.of_cells.put(key, numbers, _ENTRY + (0 if numbers[2] is None else numbers[2].nbytes))
            else:
                alone[row] = numbers
        others = [row for key, row in zip(keys, rows, strict=True) if key not in cached and row not in alone]
        if others:
            alone.update(zip(others, (numbers for numbers, _ in compute(others)), strict=True))
        return [cached[key] if key in cached else alone[row] for key, row in zip(keys, rows, strict=True)]

    def additive(self, rows: Sequence[int]) -> list[AdditiveFit]:
        missing = [row for row in dict.fromkeys(rows) if row not in self._additive]
        compute = partial(self._computed, read=self._additive_of, sampled=self._estimated)
        fresh = compute(missing)
        for row, additive in fresh.items():
            self._additive.put(row, additive)

        def at(row: int) -> AdditiveFit:
            # another thread may have pushed the row out of the cache meanwhile
            return fresh[row] if row in fresh else self._additive.get(row, lambda: compute([row])[row])

        return [at(row) for row in rows]

    def pairs(self, row: int, output: int, top: int, columns: Sequence[int]) -> list[PairEffect]:
        (additive,) = self.additive([row])
        masses = additive.row.masses
        pairs = list(combinations((j for j in columns if masses[j].size > 1), 2))
        few = max(_ALL_PAIRS, _CANDIDATES * top)
        if self._is_sampled(row) or self.form is None:
            effects = _ranked_pairs(masses, pairs, additive, output)
        elif self.form.cells is None:
            effects = _ranked_pairs(masses, pairs, additive, output)[:few]
        else:
            effects = self._exact_pairs(self.form.cells, masses, pairs, additive, output, few)
        largest = sorted(effects, key=lambda pair: -np.nan_to_num(pair.share[output], nan=-1.0))[:top]
        return [pair.of_output(output, self._unit[output]) for pair in largest]

    def _exact_pairs(
        self,
        cells: CellEffects,
        masses: list[Floats],
        pairs: Sequence[tuple[int, int]],
        additive: AdditiveFit,
        output: int,
        few: int,
    ) -> list[PairEffect]:
        if not cells.interacts:
            return []
        if len(pairs) > few:
            pairs = [pair.columns for pair in _ranked_pairs(masses, pairs, additive, output)[:few]]
        values = cells.pairs(additive.row.cut, pairs)
        if values is None:
            return _ranked_pairs(masses, pairs, additive, output)
        return [
            exact_pair(pair, v / self._unit, [masses[j] for j in pair], additive.total)
            for pair, v in zip(pairs, values, strict=True)
        ]

    def cell_texts(self, row: int, column: int) -> tuple[str, ...]:
        """The cells of a column in words: a slope's are slices of its law around the row."""
        texts = tuple(self.texts[column].tolist())
        cells = self.family.marginals[column].cells
        if isinstance(cells, TupleCells) and self.cells[row, column] != cells.new:
            return texts[:-1]
        if self.family.held is not None and self.family.held[column]:
            return (texts[self.cells[row, column]],)
        if self.family.slopes is None or not self.family.slopes[column]:
            return texts
        (additive,) = self.additive([row])
        cells = additive.row.cut.coordinates[column].marginal.cells
        assert isinstance(cells, BinCells)  # noqa: S101 - slopes are of numbers
        if cells.count == 1:
            return texts
        missing = texts[len(texts) - cells.missing :]
        if cells.edges.size == 2:
            return (f"{texts[0]} is not missing", *missing)
        return (*bin_texts(texts[0], cells.edges, write=self.writers[column]), *missing)

    def _of_no_rows(self, cells: Ints) -> Bools:
        """Whether the last cell of a column is of combinations of a group that do not occur, (n, d)."""
        is_group = [isinstance(law.cells, TupleCells) for law in self.family.marginals]
        return np.broadcast_to(np.array(is_group), cells.shape)

    def _exact_contributions(self, at: Ints) -> RowContributions:
        form = self.form
        assert form is not None  # noqa: S101 - these rows were not sampled
        return exact_contributions(form.form, form.expectation, self.account(), self.x[at], self.cells[at])

    def _exact_indices(self, at: Ints) -> Floats:
        form = self.form
        assert form is not None  # noqa: S101 - these rows were not sampled
        return exact_pairs(form.form, form.expectation, self.account(), self.x[at], self.cells[at])

    def _starts(self, row: int) -> Starts:
        return ProductStarts(self.account().at(self.x[row]))

    def _law(self, row: int) -> IndependentDraws:
        return IndependentDraws(self.x[row], ProductStarts(self.account().at(self.x[row])), self.account())

    def _shared(self, row: int, column: int, tuples: Tuples) -> Sharing:
        # as contributions, which may be exact where coefficients are not
        family, x, form = self.account(), self.x[row], self.form
        if form is not None:
            with suppress(*REFUSED):  # which is estimated
                seed = form.seed
                return exact_sharing(form.form, form.expectation, family, x, column, tuples, seed)
        return self._walked_within(x, column, tuples, ProductStarts(family.at(x)))

    def _walked_to(self, row: int, others: ControlVariates | None, *, is_current: bool) -> RowContributions:
        assert self.walks is not None  # noqa: S101 - `Explanation`s of method="exact" have no sampled rows
        family = self.account()
        # the mean that coefficients rest on, where it is exact and of the same law
        knows_mean = family is self.family and not self._is_sampled(row)
        mean = self.fitted.moments.mean[row].reshape(-1) if knows_mean else None
        x, starts = self.x[row], ProductStarts(family.at(self.x[row]), mean)
        spent = int(self.spent[row])
        prediction = self.predictions[row].reshape(-1)
        if self.walks.asks:
            law = IndependentDraws(x, starts, family)
            before = self._pooled(row)
            return contributions_at(self.walks, law, prediction, before, spent, is_current=is_current)
        return self.walks.at(x, prediction, starts, others, spent, is_current=is_current)

    def _others(self, rows: Ints) -> Sequence[ControlVariates | None]:
        """Control variates of each row's walks: margins behind predictions."""
        if self.walks is not None and isinstance(self.walks.predict, CurvedMargin) and rows.size:
            margins = self.walks.predict.contributions(self.account(), self.x[rows], self.cells[rows])
            return [None] * len(rows) if margins is None else [ControlVariates(its) for its in margins]
        return [None] * len(rows)

    def _pooled(self, row: int) -> DrawnStarts | None:
        """The pool of a row's coefficients, whatever other rows needed."""
        if not self.rests_on_pool or not isinstance(self.sampling, PooledExpectation):
            return None
        size = int(self.fitted.moments.shared[row])
        if not size:
            return None
        rows = self.sampling.pool.rows(size)
        return DrawnStarts(rows.x, rows.answers)

    @property
    def has_exact(self) -> bool:
        return self.form is not None

    def _is_sampled(self, row: int) -> bool:
        """Whether no coefficient of a row is exact."""
        return self.form is None or row in self.fitted.refusals

    @cached_property
    def _unit(self) -> Floats:
        """Size of the model's answers, (k,)."""
        if self.form is not None:
            return self.form.unit
        return power_of_two(np.abs(self.fitted.moments.mean.reshape(len(self.x), -1)).max(axis=0))

    def _computed(
        self,
        rows: Sequence[int],
        read: Callable[[list[int]], Iterable[T]],
        sampled: Callable[[list[int]], Iterable[T]],
    ) -> dict[int, T]:
        """Compute rows by their positions, few enough at once to bound memory."""
        results: dict[int, T] = {}
        for compute in (read, sampled):
            some = [row for row in rows if self._is_sampled(row) is (compute is sampled)]
            for start in range(0, len(some), _TOGETHER):
                block = some[start : start + _TOGETHER]
                results.update(zip(block, compute(block), strict=True))
        return results

    @cached_property
    def _numbers(self) -> tuple[Floats, Floats, Floats]:
        """Coefficients and Γ (n, d, k), and E_w f (n, k), in units of the model."""
        (n, d), fitted = self.x.shape, self.fitted
        coef, gamma = (
            numbers.reshape(n, d, -1) / self._unit
            for numbers in (fitted.surrogate.coef, fitted.moments.gamma)
        )
        return coef, gamma, fitted.moments.mean.reshape(n, -1) / self._unit

    def _rows_at(self, positions: Sequence[int]) -> FittedRows:
        at = np.asarray(positions, dtype=np.int64)
        coef, gamma, mean = (numbers[at] for numbers in self._numbers)
        features, x, cells = self.fitted.features, self.x[at], self.cells[at]
        inclusion, variance = features.inclusion[at], features.variance[at]
        units = getattr(features, "units", None)
        if units is not None:
            coef = coef * units[at][:, :, None]  # as Γ is already
        return FittedRows(self.family, at, x, coef, gamma, mean, inclusion, variance, cells)

    def _fidelities_of(self, positions: list[int]) -> list[tuple[FitNumbers, bool]]:
        assert self.form is not None  # noqa: S101 - these rows were not sampled
        form, rows = self.form, self._rows_at(positions)
        explained = rows.explained

        def residuals(i: int) -> tuple[WeightedRows, Floats]:
            row = rows.each[i]
            weighted = form.rows(row)
            return weighted, weighted.residuals(row.mean, row.inclusion, row.coef)

        rest, errors, of_cells = form.rests(rows, explained, lambda: rows.curves, residuals)
        numbers = _estimable(*r_squared(explained, explained + rest, _size(rows.mean), errors))
        return [((*its, None), bool(same)) for *its, same in zip(*numbers, of_cells, strict=True)]

    def _additive_of(self, positions: list[int]) -> Iterable[AdditiveFit]:
        assert self.form is not None  # noqa: S101 - these rows were not sampled
        form, rows = self.form, self._rows_at(positions)
        exact = {} if form.cells is None else self._exactly(form, form.cells, rows)
        pending = [i for i in range(len(positions)) if i not in exact]
        variances = form.variances(rows) if pending else np.zeros(0)
        for i in pending:
            exact[i] = _estimated(form.rows(rows.each[i]), rows, i, self._unit, variance=variances[i])
        return [exact[i] for i in range(len(positions))]

    def _estimated(self, positions: list[int]) -> Iterable[AdditiveFit]:
        rows, unit = self._rows_at(positions), self._unit
        for i, row in enumerate(rows.each):
            weighted = self._answers(row)
            prediction = self.predictions[row.position].reshape(-1)
            unseen = UnseenAnswers(AnswerStatistics.from_rows(weighted.f * unit), prediction, unit)
            yield _estimated(weighted, rows, i, unit, unseen=unseen)

    def _answers(self, row: FittedRow) -> WeightedRows:
        """The rows of w that the model was asked about, with its answers: of the pool, or a row's own."""
        sampling, moments = self.sampling, self.fitted.moments
        if isinstance(sampling, PooledExpectation):
            if size := int(moments.shared[row.position]):
                pool = sampling.pool.rows(size)
                same = pool.cells == row.cut.instance_cells
                weights = sampling.ratio ** np.count_nonzero(~same, axis=1)
                answers = pool.answers.reshape(size, -1) / self._unit
                return WeightedRows.around(same, weights, answers, pool.cells, SEQUENCES)
            sampling = sampling.single
        assert moments.sampled is not None  # noqa: S101 - the model was sampled
        answers = moments.sampled.answers[row.position].reshape(-1, self._unit.size) / self._unit
        if not len(answers):
            raise InputError(
                "explainer.reproducible keeps no answers, which effects need: call explainer itself"
            )
        x, h, _ = sampling.redraw(row.design, row.x, len(answers))
        return WeightedRows.drawn(h, answers, row.locate(x))

    def _exactly(self, form: ReadForm, cells: CellEffects, rows: FittedRows) -> dict[int, AdditiveFit]:
        """Effects in closed form, but at rows where they are refused."""

        def cut(i: int) -> ProductDesign:
            return rows.each[i].cut

        masses, counts = cell_masses(self.family, rows.cells, cut)
        values = cells.effects(rows.cells, cut, masses, counts)
        if (without := self._of_no_rows(rows.cells)).any():
            # no row of the background is in a new tuple's cell: the mean outside is that of all
            at, column = np.nonzero(without & (rows.cells == counts - 1))
            values[at, column, counts[at, column] - 1] = rows.coef[at, column] * self._unit
            counts = counts - (without & (rows.cells < counts - 1))
        steps, by_line = values / self._unit, np.zeros(())
        if self.family.slopes is not None:
            # what the cells add to the line
            steps -= np.stack([row.line_in_cells(masses.shape[2]) for row in rows.each])
            by_line = np.stack([row.explained_by(row.line) for row in rows.each])
        between = np.einsum("ndb,ndbk->ndk", masses, steps**2) + by_line
        explained = between.sum(axis=1)

        def residuals(i: int) -> tuple[WeightedRows, Floats]:
            row = rows.each[i]
            weighted = form.rows(row)
            assert weighted.cells is not None  # noqa: S101 - rows of tables have cells
            curves = sum(curve[cell] for curve, cell in zip(steps[i], weighted.cells, strict=True))
            return weighted, weighted.residuals(row.mean, row.inclusion, row.line) - curves

        rest, errors, of_cells = form.rests(rows, explained, lambda: (steps, rows.mean), residuals)
        total = explained + rest
        additive, additive_errors = _estimable(*r_squared(explained, total, _size(rows.mean), errors))
        safe = np.where(total > 0, total, 1.0)
        totals = [Total(*each) for each in zip(safe, errors, strict=True)]
        exact = np.zeros(values.shape[2:])
        # an infinite error leaves no share
        share = between * np.maximum(1.0 - SURE * errors / safe, 0.0)[:, None] / safe[:, None]
        hides = (share >= MATTERS) & (rows.explained_by(rows.coef) <= CAPTURED * between)
        hidden = np.where(hides, between / safe[:, None], np.nan)
        has_hidden = hides.reshape(len(hides), -1).any(axis=1)

        def effects(i: int) -> RowEffects:
            each = counts[i].tolist()
            current = rows.cells[i] if self.family.by_cell else cut(i).instance_cells
            return RowEffects(
                [curve[:count] for curve, count in zip(values[i], each, strict=True)],
                [exact[:count] for count in each],
                [mass[:count] for mass, count in zip(masses[i], each, strict=True)],
                current.tolist(),
                *totals[i].share(between[i]),
            )

        computed = np.flatnonzero(~np.isnan(values).any(axis=(1, 2, 3))).tolist()
        r2 = [*zip(additive, additive_errors, strict=True)]
        return {
            i: AdditiveFit(
                rows,
                i,
                totals[i],
                None,
                r2[i],
                effects,
                residuals,
                hidden[i] if has_hidden[i] else None,
                bool(of_cells[i]),
            )
            for i in computed
        }


def _estimated(
    weighted: WeightedRows,
    rows: FittedRows,
    i: int,
    unit: Floats,
    *,
    variance: Floats | None = None,
    unseen: UnseenAnswers | None = None,
) -> AdditiveFit:
    """Estimate effects of cells of row i: of what slopes leave of f, where there are slopes.

    For a read model ``variance`` (k,) is the exact Var_w f, NaN where it is unknown, and the coefficients are
    exact: the effects explain no less than the surrogate, which is one function of the cells and slopes. Of a
    sampled model ``unseen`` bounds what its answers may hide.
    """
    row = rows.each[i]
    zero, masses = np.zeros(unit.size), row.masses
    beside_line = replace(weighted, f=weighted.residuals(zero, row.inclusion, row.line))
    fit, line = OneHotFit(beside_line, masses, unseen), row.line_in_cells(max(q.size for q in masses))
    (steps, errors), estimate = fit.effects(), fit.additive()
    by_line = row.explained_by(row.line)
    parts = estimate.each
    explained, rest, missing = estimate.between + by_line.sum(axis=0), estimate.rest, np.zeros_like(parts)
    # cells without rows have no effects here: of a sampled model they may explain this much
    blind = np.stack([np.isnan(curve).any(axis=1) @ q for q, curve in zip(masses, steps, strict=True)])
    hidden = np.zeros_like(parts)
    if variance is not None:
        # what the surrogate explains of them is exact
        by_indicators = row.explained_by(row.coef - row.line)
        missing = np.where((blind > 0)[:, None], np.maximum(by_indicators - parts, 0.0), 0.0)
        explained = np.maximum(explained + missing.sum(axis=0), row.explained_by(row.coef).sum(axis=0))
        rest = np.where(np.isnan(variance), rest, np.maximum(variance - explained, 0.0))
    elif unseen is not None and blind.any():
        # of no answers that differ the range is infinite
        bounds = np.broadcast_to(unseen.reach**2, (len(blind), unseen.reach.size))
        hidden = np.multiply(blind[:, None], bounds, out=np.zeros_like(bounds), where=(blind > 0)[:, None])
    total = explained + rest
    value, _ = r_squared(explained, total, _size(row.mean), zero)
    safe = np.where(total > 0, total, 1.0)
    unknown = missing.sum(axis=0) > _NEGLIGIBLE * total
    # answers that are all alike show nothing of the fit
    constant = (
        np.asarray(is_constant(total, _size(row.mean))) if unseen is not None else np.zeros_like(unknown)
    )
    unknown = unknown | constant | np.isinf(estimate.error)
    error = np.where(unknown, np.inf, estimate.error * ((estimate.between + estimate.rest) / safe))
    error = np.hypot(error, hidden.sum(axis=0) / safe)
    effects = RowEffects(
        [(curve + part[: len(curve)]) * unit for curve, part in zip(steps, line, strict=True)],
        [values * unit for values in errors],
        masses,
        row.cut.instance_cells.tolist(),
        np.where(unknown, np.nan, (parts + missing + by_line) / safe),
        np.where(unknown, np.inf, np.hypot(estimate.share_errors, hidden / safe)),
    )
    total = Total(safe, np.where(unknown, np.inf, estimate.total_error if variance is None else 0.0 * safe))
    return AdditiveFit(
        rows,
        i,
        total,
        unseen,
        (np.where(np.isinf(error) & ~constant, np.nan, value), error),
        lambda _: effects,
        lambda _: (fit.rows, fit.residuals),
    )


def _estimable(values: Floats, errors: Floats, alike: Bools | bool = False) -> tuple[Floats, Floats]:
    """Values and their errors; NaN where nothing is known, but where answers are all ``alike``: R² is 1."""
    return np.where(np.isinf(errors) & ~np.asarray(alike), np.nan, values), errors


def _ranked_pairs(
    masses: list[Floats], pairs: Sequence[tuple[int, int]], additive: AdditiveFit, output: int
) -> list[PairEffect]:
    """Return what pairs of columns add on rows of w, largest first."""
    if not pairs:
        return []
    (rows, residuals), total, unseen = additive.residuals(additive.i), additive.total, additive.unseen
    effects = [
        pair_estimate(rows, residuals, (masses[j], masses[k]), (j, k), total, unseen) for j, k in pairs
    ]
    return sorted(effects, key=lambda pair: -np.nan_to_num(pair.share[output], nan=-1.0))


def _size(mean: Floats) -> Floats:
    """Size of answers whose rounding is no variance, in units."""
    return np.maximum(np.abs(mean), 1.0)


def sampled_fidelities(fitted: Fitted, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
    """R² of sampled rows, which their surrogates have, and its standard errors, (k,) each."""
    assert fitted.sampled is not None  # noqa: S101 - the rows were sampled
    numbers = fitted.fidelity, fitted.sampled.fidelity_errors
    return [(np.atleast_1d(numbers[0][row]), np.atleast_1d(numbers[1][row])) for row in rows]
