"""Tables: what lime learns from training data (`Training`), and what engines need of it (`TableKind`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isnan
from typing import Any

import numpy as np

from limes._arrays import Floats, column_stds
from limes._expectations.sampled import least_calls
from limes._explainers.tables.table import Table
from limes.compat.lime._call import Call, Kind, PredictFunction
from limes.compat.lime._lenient import object_to
from limes.compat.lime._limit import SCORED_ROWS, IndependentLimit, Limits
from limes.compat.lime._renamed import renamed
from limes.compat.lime._sampling import LimeSampler
from limes.compat.lime.discretize import BaseDiscretizer, make_discretizer
from limes.compat.lime.explanation import DomainMapper, Pairs
from limes.compat.lime.lime_base import LocalFit
from limes.designs import BinStatistics
from limes.exceptions import InputError
from limes.models._calling.methods import prediction_method

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


@dataclass(frozen=True, eq=False)
class Training:
    """A table, its columns' names, bins (None where numbers are not cut) and categories' names.

    ``cut`` is how numbers are cut: a discretizer, its name, or None; ``stats`` are the user's statistics.
    """

    table: Table
    names: list[str]
    discretizer: BaseDiscretizer | None
    categories: Mapping[int, Sequence[Any]]
    cut: Any
    stats: Mapping[str, Any] | None

    @classmethod
    def fit(
        cls,
        training_data: Any,
        *,
        names: Sequence[str] | None,
        categorical: Sequence[Any] | None,
        categories: Mapping[int, Sequence[Any]],
        cut: Any,
        labels: Any,
        stats: Mapping[str, Any] | None,
        random_state: Any,
    ) -> Training:
        """Learn from a table, or from its statistics."""
        chosen = [] if categorical is None else list(categorical)
        if isinstance(cut, BaseDiscretizer) and not stats:
            # a discretizer cuts the columns that it was made for
            chosen = [j for j in range(np.shape(training_data)[1]) if j not in cut.to_discretize]
        table = Table.fit(training_data, categorical=chosen or None)
        if names is None and hasattr(training_data, "columns"):
            names = table.names
        checked = column_names(names, len(table.names))
        if names is not None:  # errors name the columns as the user does
            pairs = zip(table.columns, checked, strict=True)
            table = replace(table, columns=tuple(replace(column, name=name) for column, name in pairs))
        discretizer = None
        if cut is not None:
            options = (np.flatnonzero(~table.numeric).tolist(), checked, labels, random_state)
            discretizer = make_discretizer(cut, stats, table.matrix, *options)
        return cls(table, checked, discretizer, categories, cut, stats)

    @cached_property
    def bins(self) -> str | list[BinStatistics | None] | None:
        """The bins as limes takes them: their name, or their statistics."""
        if self.discretizer is None or (isinstance(self.cut, str) and not self.stats):
            return None if self.discretizer is None else str(self.cut)
        statistics = self.discretizer.statistics
        return [
            statistics(j, self.values[j], self.frequencies[j]) if number else None
            for j, number in enumerate(self.table.numeric)
        ]

    @cached_property
    def mean(self) -> Floats:
        """Means (d,)."""
        return np.asarray(np.nanmean(self.table.matrix, axis=0))

    @cached_property
    def scale(self) -> Floats:
        """Standard deviations (d,), 1 for categories and columns that do not vary."""
        scale = column_stds(self.table.matrix)
        return np.where(self.table.numeric & (scale > 0), scale, 1.0)

    @cached_property
    def unit(self) -> Floats:
        """What a coefficient is a change by, (d,): a standard deviation where there are no bins, else 1."""
        return np.where(self.table.numeric & (self.discretizer is None), self.scale, 1.0)

    @cached_property
    def origin(self) -> Floats:
        """Where a feature is 0, (d,): at the mean of a number where there are no bins."""
        return np.where(self.table.numeric & (self.discretizer is None), self.mean, 0.0)

    @cached_property
    def categorical(self) -> list[int]:
        """Positions of the columns with bins or categories, all of them where numbers are cut."""
        d = len(self.names)
        return list(range(d)) if self.discretizer else np.flatnonzero(~self.table.numeric).tolist()

    @cached_property
    def values(self) -> dict[int, list[float]]:
        """Bins or categories that occur in each of these columns."""
        if self.stats:
            return {j: self.stats["feature_values"][j] for j in self.categorical}
        return {j: np.unique(self._cells[:, j]).tolist() for j in self.categorical}

    @property
    def shown_values(self) -> dict[int, list[Any]]:
        """The same, whole numbers beyond 2**53 as the user wrote them."""
        wide = {j: column for j, column in enumerate(self.table.columns) if column.wide}
        written = {j: wide[j].originals(np.array(self.values[j])).tolist() for j in wide}
        return {**self.values, **written}

    @cached_property
    def frequencies(self) -> dict[int, Floats]:
        """How frequent they are, adding up to 1."""
        if self.stats:
            counts = {j: np.asarray(self.stats["feature_frequencies"][j]) for j in self.categorical}
        else:
            counts = {j: np.unique(self._cells[:, j], return_counts=True)[1] for j in self.categorical}
        return {j: count / count.sum() for j, count in counts.items()}

    @cached_property
    def _cells(self) -> Floats:
        matrix = self.table.matrix
        return matrix if self.discretizer is None else np.asarray(self.discretizer.discretize(matrix))

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
        """Names for the result."""
        pairs = zip(row.tolist(), self.table.numeric.tolist(), strict=True)
        values = [f"{x:.2f}" if number else "True" for x, number in pairs]
        scaled = np.ones(len(row)) if self.discretizer else row / self.scale
        return TableDomainMapper(self.names, values, scaled, self.categorical, self.conditions(row))

    def conditions(self, row: Floats) -> tuple[str, ...]:
        """What holds of each column at the row."""
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
        if isinstance(value, str) or j not in self.categories:
            return f"{value:g}" if isinstance(value, float) else str(value)
        try:
            return str(self.categories[j][int(value)])
        except (LookupError, ValueError):
            raise InputError(
                f"categorical_names[{j}] has no name for {value!r}, a category of {self.names[j]}"
            ) from None


def column_names(names: Sequence[Any] | None, d: int) -> list[str]:
    """Names of d columns, their positions unless there are names.

    Raises
    ------
    InputError
        If they are fewer than d; after ``install(strict=True)`` also if they are more.
    """
    if names is None:
        return [str(j) for j in range(d)]
    problem = f"feature_names has {len(names)} names, but training_data has {d} columns"
    if len(names) < d:
        raise InputError(problem)
    if len(names) > d:
        object_to(problem, "leave out what is no column, such as the target", f"the first {d} are used")
    return [str(name) for name in names[:d]]


def check_stats(stats: Mapping[str, Any]) -> None:
    """Raise InputError if statistics of training data lack something."""
    missing = [key for key in _STATS if key not in stats]
    if missing:
        raise InputError(f"training_data_stats lacks {', '.join(missing)}")


class TableKind(Kind):
    """Tables with columns of numbers and categories.

    ``target`` are labels for entropy bins, ``bandwidth`` ν is lime's kernel width, ``around`` centres lime's
    normals on the instance, and ``seed`` is the limit's.
    """

    metric = "euclidean"
    bandwidth: float
    reuses_explainers = True

    def __init__(
        self, training: Training, mode: str, bandwidth: float, target: Any, around: bool, seed: int
    ) -> None:
        self.training, self.mode, self.bandwidth = training, mode, bandwidth
        self._target, self._around, self._seed = target, around, seed
        discretizer = training.discretizer
        self._sampler = LimeSampler(
            discretizer, training.values, training.frequencies, training.mean, training.scale, around
        )
        self._background = training.table.matrix
        if training.stats and discretizer:
            draws = 1 + _STAND_INS, "gaussian", np.random.default_rng(seed)
            self._background = self._sampler.draw(self._background[0], *draws)[1][1:]
        # the discretizer's seed also seeds lime's rows
        self._bin_seeds: list[int] = (
            discretizer.random_state.get_state()[1][:2].tolist() if discretizer else []
        )

    def with_seed(self, seed: int) -> TableKind:
        return TableKind(self.training, self.mode, self.bandwidth, self._target, self._around, seed)

    def only_sampled(self, call: Call) -> dict[str, bool]:
        bins, numeric = self.training.bins, self.training.table.numeric
        unknown = isinstance(bins, list) and any(bins[j] is None for j in np.flatnonzero(numeric))
        return {
            **only_sampled(call, len(self.training.names), self._around),
            "a discretizer with gaps between bins or with its own draws": unknown,
            "training_data_stats of categories": bool(self.training.stats) and not numeric.all(),
        }

    def explainer(self, call: Call) -> tuple[Any, Any]:
        # changes of a plain function cannot be detected
        model, output = call.predict.model or (None, None)
        if model is None:
            return self._explainer(call.predict.function, None, call, control="additive"), None
        # probabilities of a model whose margin can be read follow it
        if output == "probability" and prediction_method(model, "decision_function") is not None:
            with suppress(InputError):
                return self._explainer(model, output, call, control="margin"), model
        # a tenth of the time of "auto", and most of its gain
        return self._explainer(model, output, call, control="additive"), model

    def _explainer(self, model: Any, output: str | None, call: Call, *, control: str) -> Any:
        from limes._explainers.tabular import TabularExplainer

        table = self.training.table
        return TabularExplainer(
            model,
            table.decode(self._background),
            output=output,
            categorical=np.flatnonzero(~table.numeric).tolist() or None,
            max_calls=max(call.num_samples, least_calls(len(self.training.names))),
            control=control,
            rng=self._seed,
            bins=self.training.bins,
            target=self._target,
            bandwidth=self.bandwidth,
        )

    def limits(self, explainer: Any, call: Call) -> Limits:
        row = self.training.table.decode(call.instance[None])
        result = explainer._fit(row, progress=False)  # noqa: SLF001
        prediction = call.predict.checked(result.predictions.reshape(1, -1))[0]
        labels = call.choose_labels(prediction)
        surrogate, d = result.fitted.surrogate, len(self.training.names)
        coef, errors = surrogate.coef.reshape(d, -1), surrogate.standard_errors.reshape(d, -1)
        intercepts, units = surrogate.intercept.reshape(-1), (self.training.unit, self.training.origin)
        moments = result.fitted.features.select(np.array(0))
        limits = {
            k: IndependentLimit(coef[:, k], errors[:, k], float(intercepts[k]), moments, *units)
            for k in labels
        }
        ask = partial(self._ask_near, explainer, row, call.predict)
        return Limits(prediction, limits, ask, partial(self._explanation, explainer, result, call, labels))

    def _ask_near(self, explainer: Any, row: Any, predict: PredictFunction) -> Floats:
        from scipy.stats import qmc

        design = explainer.design(row)
        levels = qmc.Sobol(design.size, rng=np.random.default_rng(self._seed)).random(SCORED_ROWS)
        rows, _ = design.draw(levels)
        return predict(self.training.table.decode(rows))

    def _explanation(self, explainer: Any, result: Any, call: Call, labels: Sequence[int]) -> Any:
        """The explanation of limes with lime's names of columns and bins."""
        explanation = explainer._to_explanation(result)  # noqa: SLF001
        return renamed(
            explanation if self.mode == "regression" else explanation[..., labels],
            feature_names=tuple(self.training.names),
            conditions=(self.training.conditions(call.instance),),
        )

    def fingerprint(self, call: Call) -> Sequence[int]:
        return (*self._bin_seeds, *call.instance.view(np.uint32).tolist())

    def draw(self, call: Call, rng: np.random.Generator) -> tuple[Floats, Any]:
        if not np.isfinite(self.training.table.matrix).all() or not np.isfinite(call.instance).all():
            raise InputError('engine "lime" takes no missing values: impute them, or use engine "limit"')
        return self._sampler.draw(call.instance, call.num_samples, call.sampling, rng)

    def ask(self, call: Call, rows: Any) -> Floats:
        return np.asarray(call.predict(self.training.table.decode(rows)))

    def describe(self, call: Call, provenance: Mapping[str, Any]) -> dict[str, Any]:
        from limes._explainers.tables.tabular_model import SLOPE_MEANING

        meaning = {} if self.training.discretizer else {"meaning": SLOPE_MEANING}
        return {
            "feature_names": tuple(self.training.names),
            "conditions": (self.training.conditions(call.instance),),
            "data": self.training.table.originals(call.instance[None]),
            "provenance": {**provenance, **meaning},
        }

    def in_input_units(self, fit: LocalFit) -> LocalFit:
        return in_units(fit, self.training.unit, self.training.origin)


def in_units(fit: LocalFit, unit: Floats, origin: Floats) -> LocalFit:
    """The surrogate on x, of one on features (x - origin) / unit."""
    coef, errors = fit.coef / unit[fit.features], fit.errors / unit[fit.features]
    return replace(
        fit, intercept=fit.intercept - float(coef @ origin[fit.features]), coef=coef, errors=errors
    )


def only_sampled(call: Call, d: int, around: bool) -> dict[str, bool]:
    """Return the options that only lime's sampling supports, and whether this call uses each."""
    few = call.num_samples < (least := least_calls(d))
    return {
        "sample_around_instance": around,
        f"num_samples < {least}": few and call.predict.model is None,
    }
