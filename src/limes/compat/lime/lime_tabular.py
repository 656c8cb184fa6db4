"""lime's explainers of tables: their calls and results, with the limit or lime's own sampling behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Never

import numpy as np

from limes._arrays import Floats
from limes._checks import check_choice, check_count, check_size, refuse_unknown
from limes.compat.lime.answers import Answers, chosen_labels, classes_of, model_behind
from limes.compat.lime.discretize import BaseDiscretizer
from limes.compat.lime.engines import Seeds, engine_for, engine_of
from limes.compat.lime.explanation import Explanation
from limes.compat.lime.lime_base import SELECTIONS, LimeBase, default_kernel
from limes.compat.lime.surrogates import Surrogates, filled, named
from limes.compat.lime.tables.engines import dense_engines, sparse_engines
from limes.compat.lime.tables.law import SAMPLINGS
from limes.compat.lime.tables.sequences import Asked, Sequences
from limes.compat.lime.tables.sparse import SparseTraining, is_sparse
from limes.compat.lime.tables.training import Request, Training, check_stats
from limes.compat.lime.tables.words import TableDomainMapper
from limes.exceptions import InputError
from limes.expectations.sampled import least_calls

__all__ = ["LimeTabularExplainer", "RecurrentTabularExplainer", "TableDomainMapper"]


class LimeTabularExplainer:
    """Explain rows of a table.

    The parameters are lime's. ``training_data`` may be any table, with texts, and with missing values for the
    limit, or a sparse matrix; ``engine`` is "limit", "lime" or None (:mod:`limes.compat.lime.engines`).
    Requests that only lime's own sampling knows (another kernel, metric or regressor, sampling around the
    instance, sparse tables) go to engine "lime" in any case, and ``explanation.engine_reason`` says so. A
    seed fixes each row's result, whatever came before.

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

        refuse_unknown(unknown, type(self))
        engine_of(engine)
        self.mode = check_choice("mode", mode, ("classification", "regression"))
        self.feature_selection = check_choice("feature_selection", feature_selection, tuple(SELECTIONS))
        self.engine = engine
        self.random_state = check_random_state(random_state)
        self.class_names = class_names
        self.categorical_names = dict(categorical_names or {})
        self.sample_around_instance = sample_around_instance
        if training_data_stats:
            self.validate_training_data_stats(training_data_stats)
        self.training_data_stats = training_data_stats
        self._training: Training | SparseTraining
        if is_sparse(training_data):
            self._training = SparseTraining.of(training_data, feature_names, categorical_features)
        else:
            self._training = Training.of(
                training_data,
                names=feature_names,
                categorical=categorical_features,
                categories=self.categorical_names,
                cut=discretizer if discretize_continuous else None,
                labels=training_labels,
                stats=training_data_stats,
                random_state=self.random_state,
            )
        learnt = self._training
        self.feature_names, self.discretizer = learnt.names, learnt.discretizer
        self.categorical_features = learnt.categorical
        self.feature_values, self.feature_frequencies = learnt.values, learnt.frequencies
        if sample_around_instance and self.discretizer is not None:
            raise InputError(
                "sample_around_instance changes nothing where numbers are cut into bins: "
                "give discretize_continuous=False too"
            )
        width = np.sqrt(len(self.feature_names)) * 0.75 if kernel_width is None else kernel_width
        self.kernel_width = check_size("kernel_width", width)
        self._kernel = kernel
        weigh = partial(kernel or default_kernel, kernel_width=self.kernel_width)
        self.base = LimeBase(weigh, verbose, random_state=self.random_state)
        self._seeds = Seeds.of(random_state, self.random_state)
        self._engines = self._made_engines(training_labels)

    @staticmethod
    def convert_and_round(values: Iterable[float]) -> list[str]:
        """Two digits of each."""
        return [f"{value:.2f}" for value in values]

    @staticmethod
    def validate_training_data_stats(training_data_stats: Mapping[str, Any]) -> None:
        """Refuse statistics that lack something.

        Raises
        ------
        InputError
            Says what.
        """
        check_stats(training_data_stats)

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
        request = Request(
            self._training.encode(data_row),
            Answers(predict_fn, self.mode),
            self._labels(labels, top_labels),
            check_count("num_features", num_features),
            check_count("num_samples", num_samples),
            distance_metric,
            model_regressor,
            check_choice("sampling_method", sampling_method, tuple(SAMPLINGS)),
        )
        engine = self._engine(request)
        found = self._engines[engine[0]](request)
        classes = self._classes(len(found.answers))
        explanation = Explanation(self._training.mapper(request.row), self.mode, classes, self.random_state)
        return filled(explanation, named(found, classes), engine, top=bool(top_labels))

    def explain_instances(
        self, data_rows: Any, predict_fn: Callable[[Any], Any], **options: Any
    ) -> list[Explanation]:
        """Explain many rows, (n, d) or a dataframe, with the options of :meth:`explain_instance`."""
        several = data_rows.iloc if hasattr(data_rows, "iloc") else data_rows
        count = data_rows.shape[0] if hasattr(data_rows, "shape") else len(data_rows)
        return [self.explain_instance(several[i], predict_fn, **options) for i in range(count)]

    def _labels(self, labels: int | Iterable[int], top: int | None) -> Callable[[Floats], list[int]]:
        if self.mode == "regression":
            return lambda said: [0]  # noqa: ARG005 - there is one
        return partial(chosen_labels, labels=labels, top=top)

    def _made_engines(self, target: Any) -> dict[str, Callable[[Request], Surrogates]]:
        common = (self.base, self.feature_selection, self._seeds, self.mode, self.sample_around_instance)
        if isinstance(self._training, SparseTraining):
            return sparse_engines(self._training, *common)
        return dense_engines(self._training, *common, bandwidth=self.kernel_width, target=target)

    def _engine(self, request: Request) -> tuple[str, str]:
        """Which engine answers, and why, if it is not the one that was asked for."""
        few = request.samples < (least := least_calls(len(self.feature_names)))
        only_lime = {
            "kernel": self._kernel is not None,
            "model_regressor": request.regressor is not None,
            "distance_metric": request.metric != "euclidean",
            "sample_around_instance": self.sample_around_instance,
            f"num_samples < {least}": few and model_behind(request.answers.predict_fn, self.mode) is None,
        }
        return engine_for(self.engine, only_lime | dict.fromkeys(self._training.unlimited, True))

    def _classes(self, k: int) -> list[Any] | None:
        return None if self.mode == "regression" else classes_of(self.class_names, k)


class RecurrentTabularExplainer(LimeTabularExplainer):
    """Explain sequences, arrays (n, timesteps, features), as recurrent networks take them.

    Each value at each time step is a column of its own, named ``feature_t-k``, k steps before the last; the
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
    >>> found = explainer.explain_instance(loads[0], lambda x: x[:, 2, 1], num_features=1)
    >>> found.as_list()[0][0]
    '0.20 < b_t-0 <= 0.70'
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
        random_state: Any = None,
        *,
        engine: str | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, type(self))
        self._sequences = Sequences.of(training_data)
        self.n_timesteps, self.n_features = self._sequences.timesteps, self._sequences.features
        super().__init__(
            self._sequences.flat(training_data),
            mode,
            training_labels,
            self._sequences.names(feature_names),
            categorical_features,
            categorical_names,
            kernel_width,
            kernel,
            verbose,
            class_names,
            feature_selection,
            discretize_continuous,
            discretizer,
            random_state=random_state,
            engine=engine,
        )

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
            As :meth:`LimeTabularExplainer.explain_instance` says.
        """
        options = (labels, top_labels, num_features, num_samples, distance_metric, model_regressor)
        asked = Asked(classifier_fn, self._sequences)
        return super().explain_instance(self._sequences.flat(data_row), asked, *options)
