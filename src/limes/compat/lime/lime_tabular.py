"""lime's explainer of tables: its calls and results, with the limit or lime's own sampling behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Never

import numpy as np

from limes._arrays import Floats
from limes.compat.lime.answers import Answers
from limes.compat.lime.discretize import BaseDiscretizer
from limes.compat.lime.engines import engine_of
from limes.compat.lime.explanation import DomainMapper, Explanation, Pairs
from limes.compat.lime.lime_base import SELECTIONS, LimeBase
from limes.compat.lime.surrogates import Surrogates, filled
from limes.compat.lime.table_law import LimeEngine, TableLaw
from limes.compat.lime.table_limit import LimitEngine
from limes.compat.lime.table_training import Request, Training, frequencies_of, made_discretizer, names_of
from limes.exceptions import InputError
from limes.explainers.options import check_choice, check_count, refuse_unknown
from limes.explainers.table import Table

__all__ = ["LimeTabularExplainer", "TableDomainMapper"]


def default_kernel(d: Floats, kernel_width: float) -> Floats:
    """exp(-d² / (2 width²))."""
    return np.exp(-(d**2) / (2 * kernel_width**2))


class TableDomainMapper(DomainMapper):
    """Names of columns, and what holds of each at the row."""

    def __init__(
        self,
        feature_names: Sequence[str],
        feature_values: Sequence[str],
        scaled_row: Floats,
        categorical_features: Sequence[int],
        discretized_feature_names: Sequence[str] | None = None,
        feature_indexes: Any = None,
    ) -> None:
        self.exp_feature_names = feature_names
        self.feature_names = feature_names
        self.feature_values = feature_values
        self.scaled_row = scaled_row
        self.categorical_features = categorical_features
        self.all_categorical = len(categorical_features) == len(feature_names)
        self.discretized_feature_names = discretized_feature_names
        self.feature_indexes = feature_indexes

    def map_exp_ids(self, exp: Pairs, **kwargs: Any) -> list[tuple[Any, float]]:  # noqa: ARG002 - lime's signature
        """Replace positions by what holds at the row."""
        names = self.discretized_feature_names or self.exp_feature_names
        return [(names[j], value) for j, value in exp]


class LimeTabularExplainer:
    """Explain rows of a table.

    The parameters are lime's. ``training_data`` may be any table, with texts, and with missing values for the
    limit; ``engine`` is "limit", "lime" or None (:mod:`limes.compat.lime.engines`). Requests that only lime's
    own sampling knows (another kernel, metric or regressor, own bins, sampling around the instance) go to
    engine "lime" in any case, and ``explanation.engine_reason`` says so. A seed fixes each row's result,
    whatever came before.

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

    def __init__(
        self,
        training_data: Any,
        mode: str = "classification",
        training_labels: Any = None,
        feature_names: Sequence[str] | None = None,
        categorical_features: Sequence[int] | None = None,
        categorical_names: Mapping[int, Sequence[Any]] | None = None,
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
        from sklearn.utils import check_random_state

        refuse_unknown(unknown, LimeTabularExplainer)
        if hasattr(training_data, "tocsr"):
            raise InputError("sparse training data are not supported: give training_data.toarray()")
        engine_of(engine)
        self.mode = check_choice("mode", mode, ("classification", "regression"))
        self.feature_selection = check_choice("feature_selection", feature_selection, tuple(SELECTIONS))
        self.engine = engine
        self.random_state = check_random_state(random_state)
        self._seed = int(self.random_state.randint(2**31 - 1))
        self.sample_around_instance = sample_around_instance
        self.training_data_stats = training_data_stats
        self.class_names = class_names
        chosen = [int(j) for j in (() if categorical_features is None else categorical_features)]
        table = Table.fit(training_data, categorical=chosen)
        self.feature_names = names_of(table, training_data, feature_names)
        self.categorical_names = dict(categorical_names or {})
        self._bins = discretizer if discretize_continuous else None
        self.discretizer = None
        if discretize_continuous:
            self.discretizer = made_discretizer(
                discretizer,
                table,
                self.feature_names,
                training_labels,
                training_data_stats,
                self.random_state,
            )
        self._training = Training(table, self.feature_names, self.discretizer, self.categorical_names)
        categories = np.flatnonzero(~table.numeric).tolist()
        self.categorical_features = list(range(table.matrix.shape[1])) if self.discretizer else categories
        self.feature_values, self.feature_frequencies = frequencies_of(
            self._training, self.categorical_features, training_data_stats
        )
        d = len(self.feature_names)
        self.kernel_width = float(np.sqrt(d) * 0.75 if kernel_width is None else kernel_width)
        self._kernel = kernel
        weigh = partial(kernel or default_kernel, kernel_width=self.kernel_width)
        self.base = LimeBase(weigh, verbose, random_state=self.random_state)
        self._engines: dict[str, Callable[[Request], Surrogates]] = {
            "limit": self._limit_engine(training_labels),
            "lime": self._lime_engine(),
        }

    def explain_instance(
        self,
        data_row: Any,
        predict_fn: Callable[[Any], Any],
        labels: Sequence[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: str = "euclidean",
        model_regressor: Any = None,
    ) -> Explanation:
        """Explain one row; lime's parameters.

        Raises
        ------
        InputError
            A row or an option that is not usable, or a label that the model does not have.
        ModelError
            If ``predict_fn`` answers with a wrong shape or values that are not finite.
        """
        row = self._training.table.encode(self._one(data_row))[0]
        answers = Answers(predict_fn, self.mode)
        said = answers(self._training.table.decode(row[None]))[0]
        request = Request(
            row,
            said,
            answers,
            self._labels(said, labels, top_labels),
            check_count("num_features", num_features),
            check_count("num_samples", num_samples),
            distance_metric,
            model_regressor,
        )
        name, reason = self._engine(request)
        explanation = Explanation(self._mapper(row), self.mode, self._classes(len(said)), self.random_state)
        explanation.engine, explanation.engine_reason = name, reason
        if top_labels and self.mode == "classification":
            explanation.top_labels = request.labels
        found = self._engines[name](request)
        return filled(explanation, replace(found, limes=self._in_words(found.limes, request)))

    def _limit_engine(self, target: Any) -> LimitEngine:
        options = {"bins": self._bins, "target": target, "bandwidth": self.kernel_width}
        return LimitEngine(self._training, self.mode, self.feature_selection, self._seed, options)

    def _lime_engine(self) -> LimeEngine:
        law = TableLaw(
            self.discretizer,
            self.feature_values,
            self.feature_frequencies,
            np.nanmean(self._training.table.matrix, axis=0),
            self._training.scale,
            self.sample_around_instance,
        )
        facts = {"engine": "lime", "bandwidth": self.kernel_width, "ridge": 1.0, "seed": self._seed}
        own = self.discretizer.random_state.get_state()[1][:2].tolist() if self.discretizer else []
        seeds = (self._seed, *own)
        return LimeEngine(self._training, law, self.base, self.feature_selection, seeds, self.mode, facts)

    def _engine(self, request: Request) -> tuple[str, str]:
        """Which engine answers, and why, if it is not the one that was asked for."""
        wanted = engine_of(self.engine)
        own = {
            "kernel": self._kernel is not None,
            "model_regressor": request.regressor is not None,
            "distance_metric": request.metric != "euclidean",
            "sample_around_instance": self.sample_around_instance and self.discretizer is None,
            "training_data_stats": bool(self.training_data_stats),
            "discretizer": isinstance(self._bins, BaseDiscretizer),
        }
        only = [option for option, given in own.items() if given]
        if wanted == "lime" or not only:
            return wanted, ""
        return "lime", f"only lime's own sampling knows {', '.join(only)}"

    def _in_words(self, told: Any, request: Request) -> Any:
        """Give limes' explanation with lime's names of columns, bins and classes."""
        classes = self._classes(len(request.said))
        named = {} if classes is None else {"output_names": tuple(str(classes[k]) for k in request.labels)}
        conditions = (self._training.conditions(request.row),)
        return replace(told, feature_names=tuple(self.feature_names), conditions=conditions, **named)

    def _classes(self, k: int) -> list[Any] | None:
        if self.mode == "regression":
            return None
        names = [str(i) for i in range(k)] if self.class_names is None else list(self.class_names)
        if len(names) != k:
            raise InputError(f"class_names has {len(names)} names, but predict_fn answers {k} numbers a row")
        return names

    def _mapper(self, row: Floats) -> TableDomainMapper:
        numeric = self._training.table.numeric
        values = [f"{x:.2f}" if numeric[j] else "True" for j, x in enumerate(row)]
        conditions = self._training.conditions(row)
        scaled = np.ones(len(row)) if self.discretizer else row / self._training.scale
        return TableDomainMapper(self.feature_names, values, scaled, self.categorical_features, conditions)

    def _one(self, data_row: Any) -> Any:
        if hasattr(data_row, "tocsr"):
            raise InputError("sparse rows are not supported: give data_row.toarray()[0]")
        return data_row[None] if isinstance(data_row, np.ndarray) and data_row.ndim == 1 else data_row

    def _labels(self, said: Floats, labels: Sequence[int], top: int | None) -> list[int]:
        if self.mode == "regression":
            return [0]
        if top:
            return [int(k) for k in np.argsort(said)[::-1][:top]]
        wanted = [int(k) for k in labels]
        absent = [k for k in wanted if not 0 <= k < len(said)]
        if absent or not wanted:
            raise InputError(
                f"labels={list(labels)!r}: predict_fn answers {len(said)} numbers a row, 0 to {len(said) - 1}"
            )
        return wanted
