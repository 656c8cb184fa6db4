"""The laws of perturbed rows: of a table's columns, learnt from it, or the joint law of its rows.

Cells in words: bins of numbers and levels of categories read "bmi <= -0.54", "workclass = Private", "age is
missing".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from limes import __version__
from limes._arrays import Floats, mean_and_std, streams
from limes._checks import check_choice
from limes._explainers.options import SamplingOptions
from limes._explainers.tables.columns import TableColumn
from limes._explainers.tables.table import Table
from limes._explanation.fields import plain_fact
from limes.designs._bins import bin_edges
from limes.designs._joint import JointFamily
from limes.designs._marginals import (
    LAWS,
    BinCells,
    BinStatistics,
    Levels,
    Marginal,
    binned,
    categorical,
    of_values,
    unbinned,
)
from limes.designs._product import ProductFamily
from limes.designs._stacks import binned_together
from limes.designs._weights import WEIGHTS, named_weights
from limes.exceptions import InputError
from limes.models._calling.outputs import is_log_odds

if TYPE_CHECKING:
    from limes._explainers.tables.groups import Groups
    from limes._explainers.tables.verification import BoundTable

Family: TypeAlias = ProductFamily | JointFamily
# (numbers, values) -> texts of the numbers that leave the values on their sides
Writer: TypeAlias = Callable[[Any, Floats | None], list[str]]

# Laws of perturbed rows: of independent columns, by their law inside a bin, and of the background's own rows,
# weighted by the cells that they change
TABLE_LAWS = (*LAWS, "joint")
# Unless the user names a law: LIME's for its coefficients, and the background's own values for contributions
_OF_COEFFICIENTS, _OF_CONTRIBUTIONS = "truncnorm", "empirical"
# Rows of a larger background that the joint law uses, fewer where the model may be asked about fewer:
# around each explained row all of them are compared with it
_MOST_ROWS = 1 << 17
# Key of the stream that chooses them, where those of explained rows have the row's hash
_KEY = 0x6A6F696E

# The tails of a normal law with values up to here end before the largest float64.
_LARGEST = 1e307
# Digits of a number in words, at least
_DIGITS = 3
# Digits of a number that has no others beside it
_DIGITS_OF_ONE = 6
# More digits than this are written only if they make the very same float64
_DIGITS_OF_FLOAT = 15
# Relative size of the noise in the last digit of floats such as 16.400000000000002
_NOISE = 1e-15
# Whole numbers up to here are written in full
_LARGEST_WHOLE = 1e15
# Sizes between which a person writes no exponent
_SMALLEST_PLAIN, _LARGEST_PLAIN = 1e-5, 1e9


@dataclass(frozen=True)
class TabularOptions:
    """Options of :class:`limes.TabularExplainer`; an InputError if one is not usable."""

    output: Any
    bins: Any
    target: Any
    law: str | None  # None: one for coefficients, and another for contributions
    bandwidth: float | None
    weights: str
    ridge: float
    sampling: SamplingOptions
    hold: tuple[str, ...] = ()
    missing: tuple[float, ...] = ()  # codes of missing values
    by_predict: bool = False  # whether the user passed a model's predict, and not the model
    keeps_whole: bool = True  # whether few whole numbers have no others between them, for models not read
    is_one_row: bool = False  # whether the background is one row, which contributions lead from
    groups: Groups | None = None

    def __post_init__(self) -> None:
        if self.law is not None:
            check_choice("law", self.law, (*TABLE_LAWS, "covers"))  # which is of trees alone, and not here
        check_choice("weights", self.weights, tuple(WEIGHTS))
        if self.missing and self.bins is None:
            raise InputError("missing= codes are cells of their columns, and bins=None has none: pass bins")
        if self.groups is not None and self.bins is None:
            raise InputError(
                "groups= with bins=None: a group has no slope, and without bins no cell that a row keeps; "
                "pass bins"
            )
        if self.is_joint:
            self._check_joint()

    @property
    def is_joint(self) -> bool:
        return self.law == "joint"

    @property
    def law_in_bin(self) -> str:
        """Name of the law inside a bin, for one column by itself."""
        return _OF_COEFFICIENTS if self.is_joint else self.law_name

    @property
    def law_name(self) -> str:
        """Name of the law of perturbed rows that coefficients rest on."""
        return self.law or _OF_COEFFICIENTS

    @property
    def law_of_contributions(self) -> str:
        """Name of the law of perturbed rows that contributions rest on."""
        return self.law or _OF_CONTRIBUTIONS

    def own_values(self, table: Table) -> frozenset[int]:
        """Columns whose bins have their values in place of LIME's normal law, if the model is not read."""
        applies = self.keeps_whole and (self.law is None or self.is_joint)
        return table.of_few_whole_numbers if applies else frozenset()

    @property
    def weights_name(self) -> str:
        """Name of the weights: slopes always have smooth ones."""
        return "euclidean" if self.bins is None else self.weights

    def _check_joint(self) -> None:
        if self.hold:
            raise InputError(
                f"law='joint' explains with the background's rows, and few of them have the values that "
                f"hold={self.hold!r} keeps: use another law, or a background of such rows"
            )
        if self.bins is None or (isinstance(self.bins, str) and self.bins == "auto"):
            raise InputError(
                f"law='joint' compares cells, and bins={self.bins!r} has none: pass bins='quartile', or "
                "any other bins"
            )
        if self.weights != "bins":
            raise InputError(f"law='joint' counts changed cells: pass weights='bins', not {self.weights!r}")
        if self.sampling.method == "exact":
            raise InputError(
                "law='joint' averages over the background's rows, which are a sample of their population: "
                "coefficients have standard errors, and method='exact' does not go with it; use 'auto'"
            )

    def product_family(self, table: Table, marginals: tuple[Marginal, ...], units: Floats) -> ProductFamily:
        """The designs with independent columns of these laws; ``units`` (d,) are of distances."""
        empty = np.isnan(table.matrix).all(axis=0)
        held = np.isin(table.names, self.hold)
        slopes = table.numeric & ~empty & ~held & (self.bins is None)
        bandwidth = 0.75 * np.sqrt(len(marginals)) if self.bandwidth is None else self.bandwidth
        return ProductFamily(
            marginals,
            named_weights(self.weights_name, bandwidth),
            slopes=slopes if slopes.any() else None,
            scales=units,
            held=held if held.any() else None,
        )

    def family(self, product: ProductFamily, background: Floats, most: int) -> Family:
        """The designs that explain rows; those of the joint law have ``most`` background rows at most."""
        if not self.is_joint:
            return product
        population, most = len(background), min(most, _MOST_ROWS)
        if population > most:
            (stream,) = streams(self.sampling.sampling.seed, _KEY, 1)
            chosen = np.random.default_rng(stream).choice(len(background), most, replace=False)
            background = background[np.sort(chosen)]
        return JointFamily(product, background, population)


def slopes_of(table: Table, family: ProductFamily) -> dict[str, Any]:
    """Mean and standard deviation of each column that has a slope, by its name."""
    if family.slopes is None:
        return {}
    slopes = {}
    for j in np.flatnonzero(family.slopes).tolist():
        column = table.matrix[:, j]
        mean, deviation = mean_and_std(column[np.isfinite(column)])
        slopes[table.names[j]] = {"mean": mean, "deviation": deviation}
    return {"slopes": slopes}


def edges_by_column(table: Table, bins: Any) -> Any:
    """Edges as a list of d, in the numbers that stand for times and other quantities; strategies as they are.

    A mapping has the edges of some columns by name.
    """
    if isinstance(bins, Mapping):
        by_position = table.keys.by_position("bins", bins)
        bins = [by_position.get(j) for j in range(len(table.columns))]
    if not isinstance(bins, list | tuple) or len(bins) != len(table.columns):
        return bins
    return [*map(_edges_as_numbers, table.columns, bins)]


def _edges_as_numbers(column: TableColumn, edges: Any) -> Any:
    quantity = column.quantity
    if quantity is None or edges is None or isinstance(edges, BinStatistics):
        return edges
    numbers = []
    for edge in edges:
        number = float(edge) if isinstance(edge, int | float) else quantity.number(edge)
        if number is None:
            raise InputError(f"bins: the edge {edge!r} of column {column.name!r} {quantity.why(edge)}")
        numbers.append(number)
    return numbers


def fit_laws(
    table: Table,
    bins: Any,
    target: ArrayLike | None,
    law: str,
    missing: Sequence[float] = (),
    *,
    own_values: Collection[int] = (),
) -> tuple[Marginal, ...]:
    """Learn one law per column; ``bins`` is None for numbers without bins.

    Numbers that are ``missing`` are codes of missing values, with a bin of codes alone. Inside bins columns
    with ``own_values``, by position, have the background's values, whatever the law of others is.
    """
    # column by column in memory, as they are learnt from
    matrix = np.asfortranarray(table.matrix)
    largest = np.maximum(np.fmax.reduce(matrix), -np.fmin.reduce(matrix))
    for j in np.flatnonzero(table.numeric & (largest > _LARGEST)):
        # differences of values would be no finite numbers
        raise InputError(
            f"column {table.names[j]!r} holds {largest[j]:.3g}: sums of values beyond {_LARGEST:g} are not "
            "finite; divide the column by a constant"
        )
    entries = bins if isinstance(bins, list | tuple) else []
    statistics = {j: entry for j, entry in enumerate(entries) if isinstance(entry, BinStatistics)}
    if bins is None:
        # a column without a single number has no slope
        empty = table.numeric & np.isnan(matrix).all(axis=0)
        edges = bin_edges(matrix, empty, bins="quartile", names=table.names)
    else:
        cut = [None if j in statistics else edge for j, edge in enumerate(bins)] if statistics else bins
        learnt = [bool(number) and j not in statistics for j, number in enumerate(table.numeric)]
        codes = np.isin(matrix, missing) & np.array(learnt)
        values = np.where(codes, np.nan, matrix) if codes.any() else matrix
        edges = bin_edges(values, learnt, bins=cut, target=target, names=table.names)
    edges = [*map(between_cells, table.columns, edges)]
    sources = [statistics.get(j, e) for j, e in enumerate(edges)]
    laws = ["empirical" if j in own_values else law for j in range(len(edges))]
    together = _laws_of_numbers(table, matrix, sources, laws, missing)
    columns = zip(table.columns, matrix.T, sources, laws, strict=True)
    return tuple(
        together[j] if j in together else _fit_law(column, x, source, its, missing)
        for j, (column, x, source, its) in enumerate(columns)
    )


def _laws_of_numbers(
    table: Table, matrix: Floats, sources: Sequence[Any], laws: Sequence[str], missing: Sequence[float]
) -> dict[int, Marginal]:
    """The laws of ordinary columns, by position: thousands of them one by one take five times as long."""
    usual = table.numeric & (np.array(laws) == "truncnorm") & ~np.isnan(matrix).any(axis=0)
    if len(missing):
        usual &= ~np.isin(matrix, missing).any(axis=0)
    its = [j for j in np.flatnonzero(usual).tolist() if isinstance(sources[j], np.ndarray)]
    learnt = binned_together(matrix[:, its], [sources[j] for j in its])
    return {j: law for j, law in zip(its, learnt, strict=True) if law is not None}


def laws_of_values(table: Table, bins: Any, marginals: Sequence[Marginal]) -> tuple[Marginal, ...]:
    """The same cells with the background's own values inside; of bins with statistics the values stated."""
    entries = bins if isinstance(bins, list | tuple) else [None] * len(marginals)
    columns = zip(table.columns, marginals, np.asfortranarray(table.matrix).T, entries, strict=True)
    laws = []
    for column, law, x, entry in columns:
        if isinstance(entry, BinStatistics):
            laws.append(entry.law_of_values(law))
        else:
            laws.append(law if column.categorical else of_values(law, x))
    return tuple(laws)


def _with_codes(x: Floats, edges: Floats, missing: Sequence[float], law: str) -> Marginal:
    """The law of a column whose codes have a bin before or behind those of its values."""
    is_code = np.isin(x, missing)
    codes, values = x[is_code], x[~is_code & ~np.isnan(x)]
    low, high = codes[codes < values.min()], codes[codes > values.max()]
    if low.size + high.size < codes.size:
        between = codes[(codes >= values.min()) & (codes <= values.max())]
        raise InputError(
            f"has the code {between[0]:g} of missing= among its values, which are from {values.min():g} to "
            f"{values.max():g}: codes must lie beyond them; recode it, or leave it out"
        )
    # laws of values end where the user says, if that is before the codes, or at the outermost value
    first, last = edges[0], edges[-1]
    if low.size:
        first = first if first > low.max() else values.min()
        edges = np.concatenate([[low.min(), low.max()], edges[1:]])
    if high.size:
        # the largest value is inside of its bin, and smaller than the codes
        last = last if last < high.min() else values.max()
        edges = np.concatenate([edges[:-1], [np.nextafter(high.min(), -np.inf), high.max()]])
    return binned(x, edges, law=law, coded=(low.size > 0, high.size > 0), ends=(first, last))


def _fit_law(
    column: TableColumn,
    x: Floats,
    source: BinStatistics | Floats | None,
    law: str,
    missing: Sequence[float],
) -> Marginal:
    try:
        if isinstance(source, BinStatistics):
            return _from_statistics(column, x, source)
        if column.categorical:
            return categorical(x, column.points)
        if source is None:
            return unbinned(x, law=law)
        if np.isin(x, missing).any():
            return _with_codes(x, source, missing, law)
        return binned(x, source, law=law)
    except InputError as error:
        raise InputError(f"column {column.name!r} {error}") from None


def _from_statistics(column: TableColumn, x: Floats, statistics: BinStatistics) -> Marginal:
    if column.categorical:
        raise InputError("is categorical, and has no bins with statistics: pass None there")
    if np.isnan(x).any():
        raise InputError("has missing values, which statistics of bins do not cover: pass edges")
    return statistics.marginal()


def cell_texts(column: TableColumn, marginal: Marginal, values: Floats) -> tuple[str, ...]:
    """One text per cell of the column's marginal; ``values`` (n,) are the background's."""
    cells = marginal.cells
    if isinstance(cells, BinCells):
        texts = [f"{column.name} is missing"] * cells.missing
        if not cells.of_codes:
            return (*bin_texts(column.name, cells.edges, values, writer_of(column)), *texts)
        first, last = cells.coded
        inner = cells.edges[first : cells.edges.size - last]
        located = cells.locate(values)
        bins = bin_texts(column.name, inner, values) if inner.size > 2 else [f"{column.name} is recorded"]
        codes = [_codes_text(column.name, values[located == b]) for b in cells.of_codes]
        return (*codes[:first], *bins, *codes[first:], *texts)
    assert isinstance(cells, Levels)  # noqa: S101 - cells of groups are joined of their columns'
    return value_texts(column, cells.values)


def _codes_text(name: str, codes: Floats) -> str:
    return f"{name} is missing ({', '.join(map(_equal_text, np.unique(codes).tolist()))})"


def value_texts(column: TableColumn, values: Floats) -> tuple[str, ...]:
    """Texts of values that a column is equal to."""
    originals = column.originals(values).tolist() if column.categorical else values.tolist()
    write = str if column.categorical else partial(_equal_text, write=writer_of(column))
    return tuple(
        f"{column.name} is missing" if np.isnan(value) else f"{column.name} = {write(original)}"
        for value, original in zip(values.tolist(), originals, strict=True)
    )


def _equal_text(value: float, write: Writer | None = None) -> str:
    """A number that a column is equal to: whole numbers in full, others with six digits."""
    if write is not None and write is not number_texts:
        return write(np.array([value]), np.array([value]))[0]
    if value.is_integer() and abs(value) < _LARGEST_WHOLE:
        return str(int(value))
    return _written(value, _DIGITS_OF_ONE, plain=_is_plain(np.array([value])))


def between_cells(column: TableColumn, edges: Floats | None) -> Floats | None:
    """Edges between whole numbers of dates and periods: no number of a bin is rounded into the next one."""
    if edges is None or column.quantity is None or not column.quantity.whole:
        return edges
    return np.concatenate([edges[:1], np.floor(edges[1:-1]) + 0.5, edges[-1:]])


def writer_of(column: TableColumn) -> Writer:
    """Return what writes numbers of a column, such as dates, so that they leave values on their sides."""
    quantity = column.quantity
    return quantity.texts if quantity is not None and quantity.has_texts else number_texts


def bin_texts(
    name: str, edges: Floats, values: Floats | None = None, write: Writer | None = None
) -> list[str]:
    """One text per bin between edges (p + 1,), which are true of these values (n,)."""
    if edges.size == 2:
        return [f"{name} = {_equal_text(float(edges[0]), write)}" if edges[0] == edges[1] else name]
    inner = (write or number_texts)(edges[1:-1], values)
    between = [f"{low} < {name} <= {high}" for low, high in pairwise(inner)]
    return [f"{name} <= {inner[0]}", *between, f"{name} > {inner[-1]}"]


def number_texts(numbers: Floats | Sequence[float], values: Floats | None = None) -> list[str]:
    """Numbers with as few digits as tell them apart, three at least.

    Edges have as many as keep each of the ``values`` (n,) on its side; one that is equal to an edge but for
    noise in its last digit is on the side of the edge. Exponents stand where a person writes one.
    """
    edges = np.asarray(numbers, dtype=np.float64)
    ordered = np.zeros(0) if values is None else np.sort(values[~np.isnan(values)])
    below = ordered.searchsorted(edges, side="right")
    plain, distinct, texts = _is_plain(edges), len({*edges.tolist()}), list[str]()
    for digits in range(_DIGITS, 18):
        texts = [_written(x, digits, plain=plain) for x in edges.tolist()]
        written = np.array([*map(float, texts)])
        if len({*written.tolist()}) < distinct:
            continue
        fewest = ordered.searchsorted(written, side="right")
        most = ordered.searchsorted(written + _NOISE * np.abs(written), side="right")
        if ((fewest <= below) & (below <= most)).all():
            break
    return texts


def _is_plain(numbers: Floats) -> bool:
    sizes = np.abs(numbers[numbers != 0])
    return bool(((sizes > _SMALLEST_PLAIN) & (sizes < _LARGEST_PLAIN)).all())


def _written(x: float, digits: int, *, plain: bool) -> str:
    text = f"{x:.{digits}g}" if digits <= _DIGITS_OF_FLOAT else repr(x).removesuffix(".0")
    return np.format_float_positional(float(text), trim="-") if plain and "e" in text else text


# -- facts that explanations keep ----------------------------------------------------------------------------

SLOPE_MEANING = (
    "how much the surrogate changes per unit of a number, or if a category holds rather than not; bars are "
    "per standard deviation"
)

_KINKS = (
    "sampled from the network as it was read, without model calls: kinks have no closed form where columns "
    "keep single values"
)


def provenance(
    model: Any,
    table: Table,
    family: ProductFamily,
    bound: BoundTable,
    options: TabularOptions,
    by_model: Sequence[int],
    own_values: Collection[int],
) -> dict[str, Any]:
    """Options and facts of explanations that JSON can hold.

    The model takes columns ``by_model`` for categories; those with ``own_values`` have no law between these.
    """
    bins, output = options.bins, bound.output
    sampled = bound.expectation.method == "sampled"
    error_bound = getattr(bound.expectation, "error_bound", 0.0)
    needs_densities = getattr(bound.expectation, "needs_densities", False)
    names, groups = table.ungrouped.names, options.groups
    facts = {
        **({"meaning": SLOPE_MEANING} if bins is None else {}),
        **slopes_of(table, family),
        "limes": __version__,
        "model": type(model).__name__,
        "answer": output.method or "call",
        **({} if sampled else bound.precision),
        **({"quantity": "log-odds"} if is_log_odds(model, output, table.decode(table.matrix[:2])) else {}),
        "background": f"{len(table.matrix)} rows",
        "bins": bins if bins is None or isinstance(bins, str | int) else "given",
        **({} if groups is None else {"groups": groups.by_name(names)}),
        **({"hold": list(options.hold)} if options.hold else {}),
        **({"missing": list(options.missing)} if options.missing else {}),
        **({"categories of the model": [names[j] for j in by_model]} if by_model else {}),
        **({"own values": [names[j] for j in sorted(own_values)]} if own_values else {}),
        "law": options.law_name,
        **({} if options.is_joint else {"law of contributions": options.law_of_contributions}),
        **({"contributions": _KINKS} if needs_densities else {}),
        "weights": options.weights_name,
        "bandwidth": float(family.weights.bandwidth),
        "ridge": float(options.ridge),
        **({"error bound": f"{error_bound:g} of each mean, by quadrature"} if error_bound else {}),
        "seed": options.sampling.sampling.seed if sampled else None,
        **({"tolerance": str(options.sampling.sampling.accuracy)} if sampled else {}),
    }
    plain: dict[str, Any] = plain_fact(facts, "provenance")
    return plain
