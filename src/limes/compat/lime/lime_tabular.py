"""lime's explainers of tables and sequences: their calls, answered by the limit or by lime's sampling.

An adapter has what lime learns from training data, what it draws, and limes' explainer of such tables.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isnan
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from limes._arrays import Floats, Ints, Objects, column_stds
from limes._checks import check_choice, check_size, refuse_unknown
from limes._expectations.sampled import least_calls
from limes._explainers.tables.table import Table
from limes.compat.lime import explanation, lime_base
from limes.compat.lime._engines import (
    SCORED_ROWS,
    BaseExplainer,
    Call,
    DataAdapter,
    LimesFit,
    PredictFunction,
)
from limes.compat.lime.discretize import (
    BaseDiscretizer,
    DecileDiscretizer,
    EntropyDiscretizer,
    QuartileDiscretizer,
    StatsDiscretizer,
    make_discretizer,
)
from limes.compat.lime.exceptions import warn_or_raise
from limes.compat.lime.explanation import DomainMapper, Explanation, Pairs, renamed
from limes.compat.lime.lime_base import PerturbedRows
from limes.designs import BinStatistics
from limes.designs._marginals import split_level
from limes.designs._product import FeatureTable
from limes.exceptions import InputError
from limes.models._calling.outputs import prediction_method
from limes.models._identity import ModelState, state_of

if TYPE_CHECKING:
    from limes._explanation import Explanation as LimesExplanation

# what lime's module imports is imported from there by public code
__all__ = [
    "DecileDiscretizer",
    "EntropyDiscretizer",
    "LimeTabularExplainer",
    "QuartileDiscretizer",
    "RecurrentTabularExplainer",
    "StatsDiscretizer",
    "TableDomainMapper",
    "explanation",
    "lime_base",
]

_STATS = ("means", "stds", "mins", "maxs", "feature_values", "feature_frequencies")
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

    def map_exp_ids(self, exp: Pairs, **kwargs: Any) -> list[tuple[Any, float]]:  # noqa: ARG002 - lime's signature
        """Replace positions by what holds at the row."""
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
        width = np.sqrt(len(names)) * 0.75 if kernel_width is None else kernel_width
        self.kernel_width = check_size("kernel_width", width)
        self.around = around
        self._least_calls = least_calls(len(names))

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
        if isinstance(cut, BaseDiscretizer) and not stats:
            # a discretizer cuts the columns that it was made for
            chosen = [j for j in range(np.shape(training_data)[1]) if j not in cut.to_discretize]
        table = Table.fit(training_data, categorical=chosen or None).of_numbers()
        if names is None and hasattr(training_data, "columns"):
            names = table.names
        checked = _column_names(names, len(table.names))
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
        self._cached: tuple[Any, ModelState, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_cached": None}

    @cached_property
    def bins(self) -> str | list[BinStatistics | None] | None:
        if self.discretizer is None or (isinstance(self._cut, str) and not self._stats):
            return None if self.discretizer is None else str(self._cut)
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
        rows = self.table.encode(data_row[None] if one else data_row)
        if len(rows) != 1:
            raise InputError(
                f"data_row has {len(rows)} rows: explain_instance explains one, explain_instances many"
            )
        return np.asarray(rows[0])

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
        return self.discretizer.names[j][int(self.discretizer.lambdas[j](x))]

    def _category(self, j: int, x: float) -> str:
        value = self.table.columns[j].originals(np.array([x]))[0]
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
        }

    def fit(self, call: Call, seed: int) -> LimesFit:
        explainer, (scale, origin) = self._explainer(call, seed), self.units
        result = explainer._fit(self.table.decode(call.instance[None]), progress=False)  # noqa: SLF001
        its = result.fitted.features.select(np.array(0))
        mean, at_instance = (its.inclusion - origin) / scale, (its.at_instance - origin) / scale
        features = FeatureTable(mean, its.variance / scale**2, at_instance, its.log_weight)
        return LimesFit(explainer, result, features, np.full_like(result.predictions, np.nan))

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
        # that of the last call of the same function, if the model was not fitted again since
        key = (call.predict, call.num_samples, seed)
        cached = self._cached  # read once: another thread may replace it at any time
        if cached is None or cached[0] != key or not cached[1].holds():
            # changes of a plain function cannot be detected
            model, output = call.predict.model or (None, None)
            explainer = self._made_explainer(model, output, call, seed)
            cached = self._cached = (key, state_of(model), explainer)
        return cached[2]

    def _made_explainer(self, model: Any, output: str | None, call: Call, seed: int) -> Any:
        from limes._explainers.tabular import TabularExplainer

        background = self.table.matrix
        if self._stats and self.discretizer:
            draws = 1 + _STAND_INS, np.random.default_rng(seed), "gaussian"
            background = self._drawn(background[0], *draws)[1][1:]
        make = partial(
            TabularExplainer,
            call.predict.function if model is None else model,
            self.table.decode(background),
            output=output,
            categorical=np.flatnonzero(~self.table.numeric).tolist() or None,
            max_calls=max(call.num_samples, self._least_calls),
            rng=seed,
            bins=self.bins,
            target=self._labels,
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
        return np.column_stack([h for _, h in columns]), np.vstack([row, rows])

    def _drawn_cells(self, j: int, x: float, levels: Floats) -> tuple[Floats, Floats]:
        """Values (n - 1,) at levels, and the features (n,) of x and of these."""
        # one level serves twice: once it has chosen the bin, its place between the bin's levels is uniform
        i, inside = split_level(levels, self.frequencies[j])
        cells = np.asarray(self.values[j])[i]
        if self.discretizer is None or j not in self.discretizer.lambdas:
            return cells, np.append(1.0, cells == x)
        instance_cell = self.discretizer.lambdas[j](x)
        return self.discretizer.drawn(j, cells.astype(int), inside), np.append(1.0, cells == instance_cell)

    def _drawn_numbers(self, j: int, x: float, levels: Floats) -> tuple[Floats, Floats]:
        values = (x if self.around else self.mean[j]) + self.scale[j] * _standard_normal(levels)
        return values, (np.append(x, values) - self.mean[j]) / self.scale[j]

    def ask(self, call: Call, rows: Any) -> Floats:
        return super().ask(call, self.table.decode(rows))

    def describe(self, instance: Floats) -> dict[str, Any]:
        from limes._explainers.tables.model import SLOPE_MEANING

        return {
            "feature_names": tuple(self.names),
            "conditions": (self._conditions(instance),),
            "data": self.table.originals(instance[None]),
            "provenance": {} if self.discretizer else {"meaning": SLOPE_MEANING},
        }


def _column_names(names: Sequence[Any] | None, d: int) -> list[str]:
    if names is None:
        return [str(j) for j in range(d)]
    problem = f"feature_names has {len(names)} names, but training_data has {d} columns"
    if len(names) < d:
        raise InputError(problem)
    if len(names) > d:
        warn_or_raise(problem, "leave out what is no column, such as the target", f"the first {d} are used")
    return [str(name) for name in names[:d]]


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
        super().__init__(_column_names(names, rows.shape[1]), kernel_width, around=around)
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
        """The user's sparse row as (1, d); raise InputError if it is dense, several rows, or all zeros."""
        if not hasattr(data_row, "tocsr"):
            raise InputError("training_data is sparse, data_row is not: pass a row such as training_data[0]")
        row = data_row.reshape(1, -1).tocsr()
        if row.shape[1] != len(self.names) or (len(data_row.shape) > 1 and data_row.shape[0] != 1):
            raise InputError(
                f"data_row has shape {data_row.shape}, expected one row of {len(self.names)} columns"
            )
        if not row.nnz:
            raise InputError("data_row holds no value other than 0: there is nothing to change in it")
        return row

    def mapper(self, row: Any) -> TableDomainMapper:
        values = [f"{x:.2f}" for x in row.data]
        return TableDomainMapper(self.names, values, row, [], feature_indexes=row.indices)

    def only_sampled(self, call: Call) -> dict[str, bool]:
        return {**super().only_sampled(call), "sparse tables": True}

    def fingerprint(self, instance: Any) -> Sequence[int]:
        columns, values = _held(instance)
        return (*columns.tolist(), *values.view(np.uint32).tolist())

    def draw(self, call: Call, rng: np.random.Generator) -> tuple[Floats, Any]:
        columns, held = _held(call.instance)
        scale = self.scale[columns]
        levels = SAMPLINGS[call.sampling](call.num_samples - 1, len(columns), rng)
        centre = held if self.around else self.mean[columns]
        values = np.vstack([held, centre + scale * _standard_normal(levels)])
        count, width = values.shape
        places = np.tile(columns, count), np.arange(0, count * width + 1, width)
        rows = type(call.instance)((values.ravel(), *places), shape=(count, len(self.names)))
        return values / scale, rows

    def columns(self, instance: Any) -> Ints:
        return _held(instance)[0]

    def describe(self, instance: Any) -> dict[str, Any]:
        names = tuple(self.names)
        return {
            "feature_names": names,
            "conditions": (names,),
            "data": instance.toarray(),
            "provenance": {},
        }


def _held(row: Any) -> tuple[Ints, Floats]:
    kept = row.copy()
    kept.eliminate_zeros()
    return np.asarray(kept.indices, dtype=np.int64), np.asarray(kept.data, dtype=np.float64)


class LimeTabularExplainer(BaseExplainer):
    """Explain rows of a table.

    The parameters are lime's. ``training_data`` may be any table, with texts, and with missing values for the
    limit, or a sparse matrix; ``engine`` is "limit", "lime" or None (:func:`limes.compat.lime.engine`).
    Calls that only lime's sampling supports (another kernel, metric or regressor, sampling around the
    instance, sparse tables) go to engine "lime" in any case, with the reason in
    ``explanation.engine_reason``. A seed fixes each row's result, whatever came before.

    Raises
    ------
    InputError
        Data or an option that is not usable.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> iris = load_iris()
    >>> model = LogisticRegression(max_iter=1000).fit(iris.data, iris.target)
    >>> explainer = LimeTabularExplainer(iris.data, feature_names=iris.feature_names)
    >>> explanation = explainer.explain_instance(iris.data[0], model.predict_proba, labels=(0,))
    >>> explanation.as_list(0)[0][0]
    'petal length (cm) <= 1.60'
    """

    # as Python spells a private method of lime's class from outside
    _draws = "_LimeTabularExplainer__data_inverse"

    def __init__(
        self,
        training_data: Any,
        mode: str = "classification",
        training_labels: Any = None,
        feature_names: Sequence[str] | None = None,
        categorical_features: Sequence[int] | None = None,
        categorical_names: Mapping[int, Sequence[Any]] | Sequence[Sequence[Any]] | None = None,
        kernel_width: float | None = None,
        kernel: Callable[..., Floats] | None = None,
        verbose: bool = False,
        class_names: Sequence[Any] | None = None,
        feature_selection: str = "auto",
        discretize_continuous: bool = True,
        discretizer: str | BaseDiscretizer = "quartile",
        sample_around_instance: bool = False,
        random_state: Any = None,
        training_data_stats: Mapping[str, Any] | None = None,
        *,
        engine: str | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, type(self))
        super().__init__(mode, kernel, verbose, class_names, feature_selection, random_state, engine)
        names = {} if categorical_names is None else categorical_names
        self.categorical_names = dict(names if isinstance(names, Mapping) else enumerate(names))
        self.sample_around_instance = sample_around_instance
        if training_data_stats:
            self.validate_training_data_stats(training_data_stats)
        self.training_data_stats = training_data_stats
        make: Callable[..., TableAdapter | SparseTableAdapter] = SparseTableAdapter
        if not hasattr(training_data, "tocsr"):
            make = partial(
                TableAdapter,
                categories=self.categorical_names,
                cut=discretizer if discretize_continuous else None,
                labels=training_labels,
                stats=training_data_stats,
                random_state=self.random_state,
            )
        options = {"around": sample_around_instance, "categorical": categorical_features}
        adapter = make(training_data, feature_names, kernel_width, **options)
        self.feature_names, self.discretizer = adapter.names, adapter.discretizer
        self.categorical_features = adapter.categorical
        self.feature_values, self.feature_frequencies = adapter.shown_values, adapter.frequencies
        self.kernel_width = adapter.kernel_width
        self._adapter: TableAdapter | SparseTableAdapter
        self._adapt(adapter, self.kernel_width)

    @property
    def scaler(self) -> Any:
        """Deviations of numbers without bins, 1 of other columns, as lime has them: a StandardScaler."""
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler(with_mean=False)
        adapter = self._adapter
        scale, mean = adapter.units if isinstance(adapter, TableAdapter) else (adapter.scale, adapter.mean)
        scaler.mean_, scaler.scale_ = mean.copy(), scale.copy()
        scaler.var_, scaler.n_features_in_ = scaler.scale_**2, scaler.scale_.size
        return scaler

    @staticmethod
    def convert_and_round(values: Iterable[float]) -> list[str]:
        """Two digits of each."""
        return [f"{value:.2f}" for value in values]

    @staticmethod
    def validate_training_data_stats(training_data_stats: Mapping[str, Any]) -> None:
        """Raise InputError if statistics lack something."""
        missing = [key for key in _STATS if key not in training_data_stats]
        if missing:
            raise InputError(f"training_data_stats lacks {', '.join(missing)}")

    def explain_instance(
        self,
        data_row: Any,
        predict_fn: Callable[[Any], Any],
        labels: int | Iterable[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: Any = "euclidean",
        model_regressor: Any = None,
        sampling_method: str = "gaussian",
    ) -> Explanation:
        """Explain one row; lime's parameters.

        ``sampling_method`` of engine "lime" is "gaussian", independent draws, or "lhs", a Latin hypercube;
        the limit is the same for both.

        Raises
        ------
        InputError
            A row or an option that is not usable, or a label that the model does not have.
        ModelError
            If ``predict_fn`` fails, or answers with a wrong shape or values that are not finite.
        """
        instance, predict = self._adapter.encode(data_row), PredictFunction(predict_fn, self.mode)
        sampling = check_choice("sampling_method", sampling_method, tuple(SAMPLINGS))
        choose = partial(self._choose_labels, labels=labels, top=top_labels)
        options = num_features, num_samples, distance_metric, model_regressor
        call = Call(instance, predict, choose, *options, sampling)
        return self._explanation(call, self._adapter.mapper(instance), top_labels)

    def __data_inverse(
        self, data_row: Any, num_samples: int, sampling_method: str = "gaussian"
    ) -> tuple[Floats, Floats]:
        """Draw rows around one: lime's private method, which is called and overridden by its name.

        Both are (num_samples, d), the row first. One has 1 where bin or category are the row's, and numbers
        that are not cut as they are; the other the rows themselves.
        """
        adapter = self._dense()
        rng = np.random.default_rng([self._seeds.lime, *adapter.fingerprint(data_row)])
        features, rows = adapter.sample(data_row, num_samples, rng, sampling_method)
        scale, origin = adapter.units
        return scale * features + origin, rows

    def _dense(self) -> TableAdapter:
        if isinstance(self._adapter, SparseTableAdapter):
            raise InputError("__data_inverse is of dense tables: pass training_data.toarray()")
        return self._adapter

    def _overridden_rows(self, call: Call) -> PerturbedRows:
        method, adapter = getattr(self, self._draws), self._dense()
        # lime's last release has no third parameter
        options = (call.sampling,) if len(inspect.signature(method).parameters) > 2 else ()
        data, rows = method(call.instance, call.num_samples, *options)
        scale, origin = adapter.units
        features = (np.asarray(data, dtype=np.float64) - origin) / scale
        return PerturbedRows(features, adapter.ask(call, np.asarray(rows)))

    def explain_instances(
        self, data_rows: Any, predict_fn: Callable[[Any], Any], **options: Any
    ) -> list[Explanation]:
        """Explain many rows, (n, d) or a dataframe, with the options of :meth:`explain_instance`."""
        several = data_rows.iloc if hasattr(data_rows, "iloc") else data_rows
        count = data_rows.shape[0] if hasattr(data_rows, "shape") else len(data_rows)
        return [self.explain_instance(several[i], predict_fn, **options) for i in range(count)]


@dataclass(frozen=True)
class _OfTable:
    """A function of sequences as one of their table; equal where function and shape are."""

    predict_fn: Callable[[Any], Any]
    timesteps: int
    features: int

    def __call__(self, table: Any) -> Any:
        rows = np.asarray(table)
        return self.predict_fn(rows.reshape(len(rows), self.features, self.timesteps).transpose(0, 2, 1))


# The table's parameters, but for two that lime's explainer of sequences does not have
_SIGNATURE = inspect.Signature(
    [
        parameter
        for name, parameter in inspect.signature(LimeTabularExplainer.__init__).parameters.items()
        if name not in ("sample_around_instance", "training_data_stats")
    ]
)


class RecurrentTabularExplainer(LimeTabularExplainer):
    """Explain sequences, arrays (n, timesteps, features), as recurrent networks take them.

    Each value at each time step is a column, named ``feature_t-k``, k steps before the last; the
    positions of ``categorical_features`` count these columns, all steps of a feature together. Parameters are
    those of :class:`LimeTabularExplainer`, but for sampling around the instance and training statistics.

    Raises
    ------
    InputError
        Data or an option that is not usable.

    Examples
    --------
    >>> import numpy as np
    >>> loads = np.random.default_rng(0).normal(size=(60, 3, 2))
    >>> explainer = RecurrentTabularExplainer(loads, mode="regression", feature_names=["a", "b"])
    >>> explanation = explainer.explain_instance(loads[0], lambda x: x[:, 2, 1], num_features=1)
    >>> explanation.as_list()[0][0]
    '0.20 < b_t-0 <= 0.70'
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        arguments = _SIGNATURE.bind(self, *args, **options).arguments
        refuse_unknown(arguments.pop("unknown", {}), type(self))
        del arguments["self"]
        shape, names = np.shape(arguments["training_data"]), arguments.get("feature_names")
        if len(shape) != 3:
            raise InputError(
                f"training_data has shape {shape}, expected three axes: (rows, timesteps, features)"
            )
        _, self.n_timesteps, self.n_features = shape
        names = range(self.n_features) if names is None else names
        if len(names) != self.n_features:
            raise InputError(
                f"feature_names has {len(names)} names, "
                f"but training_data has {self.n_features} features a step"
            )
        steps = range(self.n_timesteps)[::-1]
        arguments["feature_names"] = [f"{name}_t-{step}" for name in names for step in steps]
        arguments["training_data"] = self._flat(arguments["training_data"])
        super().__init__(**arguments)

    __init__.__signature__ = _SIGNATURE  # type: ignore[attr-defined]

    # lime calls the function by another name here
    def explain_instance(  # type: ignore[override]
        self,
        data_row: Any,
        classifier_fn: Callable[[Any], Any],
        labels: int | Iterable[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: Any = "euclidean",
        model_regressor: Any = None,
    ) -> Explanation:
        """Explain one sequence (timesteps, features); other parameters as of a table's row.

        Raises
        ------
        InputError, ModelError
            As in :meth:`LimeTabularExplainer.explain_instance`.
        """
        options = (labels, top_labels, num_features, num_samples, distance_metric, model_regressor)
        predict = _OfTable(classifier_fn, self.n_timesteps, self.n_features)
        return super().explain_instance(self._flat(data_row), predict, *options)

    def _flat(self, rows: Any) -> Objects:
        # the steps of a feature are columns side by side
        array = np.asarray(rows)
        if array.shape == (self.n_timesteps * self.n_features,):
            # as lime does: the columns themselves, all steps of a feature together
            return array[None]
        sequences = array[None] if array.ndim == 2 else array
        if sequences.shape[1:] != (self.n_timesteps, self.n_features):
            raise InputError(
                f"data_row has shape {array.shape}, expected ({self.n_timesteps}, {self.n_features}): "
                "timesteps, features"
            )
        return sequences.transpose(0, 2, 1).reshape(len(sequences), -1)
