"""Tables and sparse tables as both engines take them: what lime learns from training data, and draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Bools, Floats, Ints, column_stds
from limes._explainers.budget import least_for_table
from limes._explainers.tables.table import Table
from limes._names import names_of_frame, text_of
from limes.compat.lime._engines import SCORED_ROWS, Call, DataAdapter, LimesFit
from limes.compat.lime._leniency import category_columns, column_names
from limes.compat.lime.discretize import BaseDiscretizer, make_discretizer
from limes.compat.lime.exceptions import warn_or_raise
from limes.compat.lime.explanation import DomainMapper, Pairs, refuse_list_options, renamed
from limes.designs import BinStatistics
from limes.designs._marginals import split_level
from limes.designs._product import FeatureTable
from limes.exceptions import CellError, InputError
from limes.models._calling.outputs import prediction_method

if TYPE_CHECKING:
    from limes._explanation import Explanation as LimesExplanation

# Rows drawn from statistics, where there are no training data to check a model on
_STAND_INS = 200


class TableDomainMapper(DomainMapper):
    """Names of columns, and what holds of each at the row.

    Parameters
    ----------
    feature_names : d names
    feature_values : texts
        The row's values; of a sparse row those of ``feature_indexes``.
    scaled_row : (d,)
    categorical_features : positions
    discretized_feature_names : d texts
        What holds at the row, such as ``age <= 30.00``.
    """

    page_options = frozenset({"show_table", "show_all"})

    def __init__(
        self,
        feature_names: Sequence[str],
        feature_values: Sequence[str],
        scaled_row: Any,
        categorical_features: Sequence[int],
        discretized_feature_names: Sequence[str] | None = None,
        feature_indexes: Any = None,
    ) -> None:
        self.exp_feature_names = feature_names
        self.feature_names = feature_names
        self.feature_values = feature_values
        self.scaled_row = scaled_row
        self.categorical_features = categorical_features
        self.discretized_feature_names = discretized_feature_names
        self.feature_indexes = feature_indexes
        self.all_categorical = len(categorical_features) == np.size(scaled_row)  # of lime's, for its users

    def map_exp_ids(self, exp: Pairs, **kwargs: Any) -> list[tuple[Any, float]]:
        """Replace positions by what holds at the row."""
        refuse_list_options(kwargs)
        names = self.discretized_feature_names or self.exp_feature_names
        return [(names[j], value) for j, value in exp]


def _latin(count: int, d: int, rng: np.random.Generator) -> Floats:
    from scipy.stats import qmc

    return np.asarray(qmc.LatinHypercube(d, rng=rng).random(count))


def _standard_normal(levels: Floats) -> Floats:
    from scipy.special import ndtri

    # a level of 0 or 1 has no finite quantile
    return np.asarray(ndtri(np.clip(levels, 2.0**-54, 1.0 - 2.0**-53)))


# Levels (n, d) in (0, 1) of the columns' distribution functions, by lime's names
SAMPLINGS: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
    "gaussian": lambda count, d, rng: rng.random((count, d)),
    "lhs": _latin,
}


class _ColumnsAdapter(DataAdapter):
    metric = "euclidean"

    def __init__(self, names: list[str], kernel_width: float | None, *, around: bool) -> None:
        self.names = names
        self.kernel_width = np.sqrt(len(names)) * 0.75 if kernel_width is None else kernel_width
        self.around = around
        # lime's own prediction is one of them
        self._least_calls = 1 + least_for_table(len(names))

    def only_sampled(self, call: Call) -> dict[str, bool]:
        few = call.num_samples < self._least_calls
        return {
            "sample_around_instance": self.around,
            f"num_samples < {self._least_calls}": few and call.predict.model is None,
        }


class TableAdapter(_ColumnsAdapter):
    """Dense tables, with columns of numbers and categories: all that lime learns from training data.

    Columns are independent, each drawn from the training data's law: a bin or category by its frequency, a
    number without bins from a normal. Feature z_j = 1 in the instance's bin or category, else 0; without
    bins, it is the value in standard deviations.

    ``cut`` is how numbers are cut: a discretizer, its name, or None; ``labels`` are those for entropy bins,
    ``stats`` the user's statistics.
    """

    def __init__(
        self,
        training_data: Any,
        names: Sequence[str] | None,
        kernel_width: float | None,
        *,
        around: bool,
        categorical: Sequence[Any] | None,
        categories: Mapping[int, Sequence[Any]],
        cut: Any,
        labels: Any,
        stats: Mapping[str, Any] | None,
        random_state: Any,
    ) -> None:
        chosen = [] if categorical is None else list(categorical)
        if isinstance(training_data, np.ndarray) and training_data.ndim == 2:
            chosen = category_columns(chosen, training_data.shape[1], cut=cut is not None)
        if isinstance(cut, BaseDiscretizer) and not stats:
            # a discretizer cuts the columns that it was made for
            chosen = [j for j in range(np.shape(training_data)[1]) if j not in cut.to_discretize]
            if hasattr(training_data, "columns"):  # whose names may be numbers, too
                names_of = [*map(text_of, names_of_frame(training_data))]
                chosen = [names_of[j] for j in chosen]
        table = Table.fit(training_data, categorical=chosen or None).of_numbers()
        if names is None and hasattr(training_data, "columns"):
            names = table.names
        checked = column_names(names, len(table.names), fill=cut is None)
        if names is not None:  # errors name the columns as the user does
            pairs = zip(table.columns, checked, strict=True)
            table = replace(table, columns=tuple(replace(column, name=name) for column, name in pairs))
        self.table, self._categories = table, categories
        self._cut, self._labels, self._stats = cut, labels, stats
        self.discretizer: BaseDiscretizer | None = None
        if cut is not None:
            options = (np.flatnonzero(~table.numeric).tolist(), checked, labels, random_state)
            self.discretizer = make_discretizer(cut, stats, table.matrix, *options)
            if around:
                warn_or_raise(
                    "sample_around_instance changes nothing where numbers are cut into bins",
                    "pass discretize_continuous=False too",
                    "it is ignored, as lime does",
                )
        super().__init__(checked, kernel_width, around=around and cut is None)
        self.bandwidth = self.kernel_width
        # the discretizer's seed also seeds lime's rows
        self._bin_seeds: list[int] = (
            self.discretizer.random_state.get_state()[1][:2].tolist() if self.discretizer else []
        )
        self._cached: tuple[Any, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_cached": None}

    @cached_property
    def bins(self) -> str | list[BinStatistics | None] | None:
        if self.discretizer is None:
            return None
        # labels of several columns are the discretizer's own affair
        by_name = isinstance(self._cut, str) and not self._stats
        if by_name and not (self._cut == "entropy" and np.ndim(self._labels) > 1):
            return str(self._cut)
        statistics = self.discretizer.statistics
        return [
            statistics(j, self.values[j], self.frequencies[j]) if number else None
            for j, number in enumerate(self.table.numeric)
        ]

    @cached_property
    def mean(self) -> Floats:
        return np.asarray(np.nanmean(self.table.matrix, axis=0))

    @cached_property
    def scale(self) -> Floats:
        """Standard deviations (d,), 1 for categories and columns that do not vary."""
        scale = column_stds(self.table.matrix)
        return np.where(self.table.numeric & (scale > 0), scale, 1.0)

    @cached_property
    def units(self) -> tuple[Floats, Floats]:
        """Standard deviations and means (d,) of numbers without bins; 1 and 0 of other columns."""
        uncut = self.table.numeric & (self.discretizer is None)
        return np.where(uncut, self.scale, 1.0), np.where(uncut, self.mean, 0.0)

    @cached_property
    def categorical(self) -> list[int]:
        """Positions of the columns with bins or categories, all of them where numbers are cut."""
        return np.flatnonzero(~self.table.numeric | (self.discretizer is not None)).tolist()

    @cached_property
    def _counts(self) -> dict[int, tuple[Any, Any]]:
        """Bins or categories that occur in each of these columns, and how often."""
        if self._stats:
            values, counts = self._stats["feature_values"], self._stats["feature_frequencies"]
            return {j: (values[j], np.asarray(counts[j])) for j in self.categorical}
        matrix = self.table.matrix
        cells = matrix if self.discretizer is None else self.discretizer.discretize(matrix)
        return {j: np.unique(cells[:, j], return_counts=True) for j in self.categorical}

    @cached_property
    def values(self) -> dict[int, list[float]]:
        return {j: np.asarray(values).tolist() for j, (values, _) in self._counts.items()}

    @cached_property
    def frequencies(self) -> dict[int, Floats]:
        return {j: count / count.sum() for j, (_, count) in self._counts.items()}

    @property
    def shown_values(self) -> dict[int, list[Any]]:
        """The values, whole numbers beyond 2**53 as the user wrote them."""
        wide = {j: column for j, column in enumerate(self.table.columns) if column.wide}
        written = {j: wide[j].originals(np.array(self.values[j])).tolist() for j in wide}
        return {**self.values, **written}

    def encode(self, data_row: Any) -> Floats:
        """The user's row as numbers (d,); raise InputError if there are several, or it does not fit."""
        one = isinstance(data_row, np.ndarray) and data_row.ndim == 1
        rows = self._encoded(data_row[None] if one else data_row)
        if len(rows) != 1:
            raise InputError(
                f"data_row has {len(rows)} rows: explain_instance explains one, explain_instances many"
            )
        return np.asarray(rows[0])

    def _encoded(self, rows: Any) -> Floats:
        """Rows as numbers (n, d); numbers that are no category of the training data pass, as in lime."""
        try:
            return self.table.encode(rows)
        except CellError as error:
            if not isinstance(rows, np.ndarray) or rows.dtype.kind not in "biuf":
                raise
            new = self._new_categories(rows)
            encoded = self.table.encode(self._without(new, rows))  # raises what else is wrong
            warn_or_raise(str(error), "leave such rows out", "lime's sampling answers")
            return np.where(new, rows, encoded)

    def _without(self, new: Bools, rows: Floats) -> Floats:
        """Rows (n, d) with a category of the training data in the place of each new one."""
        first = [column.levels[0] if new[:, j].any() else 0.0 for j, column in enumerate(self.table.columns)]
        return np.where(new, first, rows)

    def _new_categories(self, rows: Floats) -> Bools:
        """Where rows (n, d) have a number that is no category of the training data."""
        new = np.zeros(rows.shape, dtype=bool)
        for j, column in enumerate(self.table.columns):
            if column.categorical and not column.coded:
                new[:, j] = ~np.isin(rows[:, j], column.points) & ~np.isnan(rows[:, j])
        return new

    def mapper(self, row: Floats) -> TableDomainMapper:
        pairs = zip(row.tolist(), self.table.numeric.tolist(), strict=True)
        values = [f"{x:.2f}" if number else "True" for x, number in pairs]
        scaled = np.ones(len(row)) if self.discretizer else row / self.scale
        return TableDomainMapper(self.names, values, scaled, self.categorical, self._conditions(row))

    def _conditions(self, row: Floats) -> tuple[str, ...]:
        return tuple(self._condition(j, x) for j, x in enumerate(row.tolist()))

    def _condition(self, j: int, x: float) -> str:
        name = self.names[j]
        if isnan(x):
            return f"{name} is missing"
        if not self.table.numeric[j]:
            return f"{name}={self._category(j, x)}"
        if self.discretizer is None:
            return name
        if j not in self.discretizer.names:  # a column without edges
            return f"{name}={int(x)}"
        return self.discretizer.names[j][int(self.discretizer.lambdas[j](x))]

    def _category(self, j: int, x: float) -> str:
        column = self.table.columns[j]
        new = not column.coded and x not in column.points
        value = x if new else column.originals(np.array([x]))[0]
        if isinstance(value, str) or j not in self._categories:
            return f"{value:g}" if isinstance(value, float) else str(value)
        try:
            return str(self._categories[j][int(value)])
        except (LookupError, ValueError):
            raise InputError(
                f"categorical_names[{j}] has no name for {value!r}, a category of {self.names[j]}"
            ) from None

    def only_sampled(self, call: Call) -> dict[str, bool]:
        bins, numeric = self.bins, self.table.numeric
        unknown = isinstance(bins, list) and any(bins[j] is None for j in np.flatnonzero(numeric))
        return {
            **super().only_sampled(call),
            "a discretizer with gaps between bins or with its own draws": unknown,
            "training_data_stats of categories": bool(self._stats) and not numeric.all(),
            "a category that training_data lacks": bool(self._new_categories(call.instance[None]).any()),
        }

    def fit(self, call: Call, seed: int) -> LimesFit:
        explainer, (scale, origin) = self._explainer(call, seed), self.units
        model, fitted, *others = explainer._fit(self.table.decode(call.instance[None]), progress=False)  # noqa: SLF001
        its = fitted.features.unscaled.select(np.array(0))
        mean, at_instance = (its.inclusion - origin) / scale, (its.at_instance - origin) / scale
        features = FeatureTable(mean, its.variance / scale**2, at_instance, its.log_weight)
        explain = partial(explainer._to_explanation, model, fitted, *others)  # noqa: SLF001
        return LimesFit(explainer, model, fitted, explain, features, np.full_like(fitted.predictions, np.nan))

    def near(self, call: Call, fit: LimesFit, seed: int) -> Floats:
        from scipy.stats import qmc

        design = fit.explainer.design(self.table.decode(call.instance[None]))
        levels = qmc.Sobol(design.size, rng=np.random.default_rng(seed)).random(SCORED_ROWS)
        return self.ask(call, design.draw(levels)[0])

    def explanation(self, call: Call, fit: LimesFit, outputs: list[int]) -> LimesExplanation:
        original = super().explanation(call, fit, outputs)
        conditions = (self._conditions(call.instance),)
        return renamed(original, feature_names=tuple(self.names), conditions=conditions)

    def _explainer(self, call: Call, seed: int) -> Any:
        # that of the last call of the same function, which notices itself whether the model was fitted again
        key = (call.predict, call.num_samples, seed)
        cached = self._cached  # read once: another thread may replace it at any time
        if cached is None or cached[0] != key:
            model, output = call.predict.model or (None, None)
            cached = self._cached = (key, self._made_explainer(model, output, call, seed))
        return cached[1]

    def _made_explainer(self, model: Any, output: str | None, call: Call, seed: int) -> Any:
        from limes.compat.lime._limit import LimeLimit

        background = self.table.matrix
        if self._stats and self.discretizer:
            draws = 1 + _STAND_INS, np.random.default_rng(seed), "gaussian"
            background = self._drawn(background[0], *draws)[1][1:]

        make = partial(
            LimeLimit,
            call.predict.function if model is None else model,
            self.table.decode(background),
            output=output,
            categorical=np.flatnonzero(~self.table.numeric).tolist() or None,
            max_calls=max(call.num_samples, self._least_calls) - 1,
            contributions=False if model is None else "auto",
            rng=seed,
            bins=self.bins,
            target=self._labels if self.bins == "entropy" else None,
            bandwidth=self.bandwidth,
        )
        # probabilities of a model whose margin can be read follow it
        if output == "probability" and prediction_method(model, "decision_function") is not None:
            with suppress(InputError):
                return make(control="margin")
        # a tenth of the time of "auto", and most of its gain
        return make(control="additive")

    def fingerprint(self, instance: Floats) -> Sequence[int]:
        return (*self._bin_seeds, *instance.view(np.uint32).tolist())

    def draw(self, call: Call, rng: np.random.Generator) -> tuple[Floats, Floats]:
        return self.sample(call.instance, call.num_samples, rng, call.sampling)

    def sample(
        self, row: Floats, count: int, rng: np.random.Generator, sampling: str
    ) -> tuple[Floats, Floats]:
        """Features (count, d) as lime draws them, the row's first, and the rows themselves."""
        if not np.isfinite(self.table.matrix).all() or not np.isfinite(row).all():
            raise InputError('engine "lime" takes no missing values: impute them, or use engine "limit"')
        return self._drawn(row, count, rng, sampling)

    def _drawn(
        self, row: Floats, count: int, rng: np.random.Generator, sampling: str
    ) -> tuple[Floats, Floats]:
        levels = SAMPLINGS[sampling](count - 1, len(row), rng)
        columns = [
            (self._drawn_cells if j in self.values else self._drawn_numbers)(j, row[j], levels[:, j])
            for j in range(len(row))
        ]
        rows = np.column_stack([values for values, _ in columns])
        if self.discretizer is not None and self.discretizer.undraws:
            rows = self.discretizer.seeded(rng).undiscretize(rows)
        return np.column_stack([h for _, h in columns]), np.vstack([row, rows])

    def _drawn_cells(self, j: int, x: float, levels: Floats) -> tuple[Floats, Floats]:
        """Values (n - 1,) at levels, and the features (n,) of x and of these."""
        # one level serves twice: once it has chosen the bin, its place between the bin's levels is uniform
        i, inside = split_level(levels, self.frequencies[j])
        cells = np.asarray(self.values[j])[i]
        if self.discretizer is None:
            return cells, np.append(1.0, cells == x)
        cell = self.discretizer.lambdas[j](x) if j in self.discretizer.lambdas else x
        feature = np.append(1.0, cells == cell)
        if not self.discretizer.has_bins(j) or self.discretizer.undraws:
            return cells, feature
        return self.discretizer.drawn(j, cells.astype(int), inside), feature

    def _drawn_numbers(self, j: int, x: float, levels: Floats) -> tuple[Floats, Floats]:
        values = (x if self.around else self.mean[j]) + self.scale[j] * _standard_normal(levels)
        return values, (np.append(x, values) - self.mean[j]) / self.scale[j]

    def ask(self, call: Call, rows: Any) -> Floats:
        return super().ask(call, self.table.decode(rows))

    def _originals(self, rows: Floats) -> Any:
        new = self._new_categories(rows)
        originals = self.table.originals(self._without(new, rows) if new.any() else rows)
        return np.where(new, rows, originals) if new.any() else originals

    def describe(self, instance: Floats) -> dict[str, Any]:
        from limes._explainers.tables.laws import SLOPE_MEANING

        return {
            "feature_names": tuple(self.names),
            "conditions": (self._conditions(instance),),
            "data": self._originals(instance[None]),
            "provenance": {} if self.discretizer else {"meaning": SLOPE_MEANING},
        }


class SparseTableAdapter(_ColumnsAdapter):
    """Sparse tables: only what a row holds is perturbed, each value by a normal; zeros stay zeros.

    A column's mean and deviation are of all training rows, its zeros among them, as lime has them. Features
    are values in standard deviations. There is no limit.
    """

    bandwidth = None
    # as of a table whose columns are all numbers, without bins
    discretizer = None

    def __init__(
        self,
        training_data: Any,
        names: Sequence[str] | None,
        kernel_width: float | None,
        *,
        around: bool,
        categorical: Any,
    ) -> None:
        rows = training_data.tocsr().astype(np.float64)
        super().__init__(column_names(names, rows.shape[1], fill=True), kernel_width, around=around)
        if categorical is not None and len(categorical):
            raise InputError("sparse tables hold numbers only: pass training_data.toarray() for categories")
        if not np.isfinite(rows.data).all():
            raise InputError(
                "sparse training data must be finite: impute them, or pass training_data.toarray()"
            )
        self.mean = np.asarray(rows.mean(axis=0)).ravel()
        variance = np.asarray(rows.multiply(rows).mean(axis=0)).ravel() - self.mean**2
        self.scale = np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), 1.0)
        self.categorical: list[int] = []
        self.shown_values: dict[int, Any] = {}
        self.frequencies: dict[int, Any] = {}

    @property
    def units(self) -> tuple[Floats, Floats]:
        return self.scale, np.zeros(len(self.names))

    def encode(self, data_row: Any) -> Any:
        """The user's sparse row as (1, d), or dense one as (d,); raise InputError if it has another shape."""
        if not hasattr(data_row, "tocsr"):
            row = np.asarray(data_row, dtype=np.float64)
            if row.shape != (len(self.names),):
                raise InputError(f"data_row has shape {row.shape}, expected ({len(self.names)},)")
            consequence = "all its values are changed, zeros too, as in lime"
            warn_or_raise(
                "training_data is sparse, data_row is not", "pass a row such as training_data[0]", consequence
            )
            return row
        row = data_row.reshape(1, -1).tocsr()
        if row.shape[1] != len(self.names) or (len(data_row.shape) > 1 and data_row.shape[0] != 1):
            raise InputError(
                f"data_row has shape {data_row.shape}, expected one row of {len(self.names)} columns"
            )
        if not row.count_nonzero():
            problem, consequence = (
                "data_row holds no value other than 0",
                "nothing is changed in it, as in lime",
            )
            warn_or_raise(problem, "pass another row", consequence)
        return row

    def mapper(self, row: Any) -> TableDomainMapper:
        columns, held = _held(row)
        return TableDomainMapper(self.names, [f"{x:.2f}" for x in held], row, [], feature_indexes=columns)

    def only_sampled(self, call: Call) -> dict[str, bool]:
        return {**super().only_sampled(call), "sparse tables": True}

    def fingerprint(self, instance: Any) -> Sequence[int]:
        columns, values = _held(instance)
        return (*columns.tolist(), *values.view(np.uint32).tolist())

    def draw(self, call: Call, rng: np.random.Generator) -> tuple[Floats, Any]:
        return self.sample(call.instance, call.num_samples, rng, call.sampling)

    def sample(self, row: Any, count: int, rng: np.random.Generator, sampling: str) -> tuple[Floats, Any]:
        """Features (count, m) of what the row holds, the row's first, and the rows themselves."""
        columns, held = _held(row)
        scale = self.scale[columns]
        levels = SAMPLINGS[sampling](count - 1, len(columns), rng)
        centre = held if self.around else self.mean[columns]
        # of a row of zeros nothing is changed
        drawn = (centre + scale * _standard_normal(levels)) * held.any()
        values = np.vstack([held, drawn])
        if isinstance(row, np.ndarray):
            return values / scale, values
        width = len(columns)
        places = np.tile(columns, count), np.arange(0, count * width + 1, width)
        rows = type(row)((values.ravel(), *places), shape=(count, len(self.names)))
        return values / scale, rows

    def columns(self, instance: Any) -> Ints:
        return _held(instance)[0]

    def describe(self, instance: Any) -> dict[str, Any]:
        names = tuple(self.names)
        return {
            "feature_names": names,
            "conditions": (names,),
            "data": instance[None] if isinstance(instance, np.ndarray) else instance.toarray(),
            "provenance": {},
        }


def _held(row: Any) -> tuple[Ints, Floats]:
    """Columns and values that a row holds: all of a dense one, and of a row of zeros."""
    if isinstance(row, np.ndarray) or not row.count_nonzero():
        dense = row if isinstance(row, np.ndarray) else row.toarray().ravel()
        return np.arange(dense.size), np.asarray(dense, dtype=np.float64)
    kept = row.copy()
    kept.eliminate_zeros()
    return np.asarray(kept.indices, dtype=np.int64), np.asarray(kept.data, dtype=np.float64)
