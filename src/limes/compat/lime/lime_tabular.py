"""lime's explainers of tables and sequences: their calls, answered by the limit or by lime's sampling."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Never

import numpy as np

from limes._arrays import Floats, Objects
from limes._checks import check_choice, refuse_unknown
from limes.compat.lime import explanation, lime_base
from limes.compat.lime._engines import BaseExplainer, Call, PredictFunction, listed_labels
from limes.compat.lime._leniency import kernel_width_of
from limes.compat.lime._tables import SAMPLINGS, SparseTableAdapter, TableAdapter, TableDomainMapper
from limes.compat.lime.discretize import (
    BaseDiscretizer,
    DecileDiscretizer,
    EntropyDiscretizer,
    QuartileDiscretizer,
    StatsDiscretizer,
)
from limes.compat.lime.exceptions import warn_or_raise
from limes.compat.lime.explanation import Explanation
from limes.compat.lime.lime_base import PerturbedRows
from limes.exceptions import InputError

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
        width = None if kernel_width is None else kernel_width_of(kernel_width, None, kernel)
        adapter = make(training_data, feature_names, width, **options)
        self.feature_names, self.discretizer = adapter.names, adapter.discretizer
        self.categorical_features = adapter.categorical
        self.feature_values, self.feature_frequencies = adapter.shown_values, adapter.frequencies
        # a kernel of the user's gets any number
        unchecked = kernel is not None and kernel_width is not None
        self.kernel_width: float = float(kernel_width) if unchecked else adapter.kernel_width  # type: ignore[arg-type]
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
        instance, wanted = self._adapter.encode(data_row), listed_labels(labels)
        predict = PredictFunction(predict_fn, self.mode, self._one_label(wanted, top_labels))
        sampling = check_choice("sampling_method", sampling_method, tuple(SAMPLINGS))
        choose = partial(self._choose_labels, labels=wanted, top=top_labels)
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
        adapter = self._adapter
        rng = np.random.default_rng([self._seeds.lime, *adapter.fingerprint(data_row)])
        features, rows = adapter.sample(data_row, num_samples, rng, sampling_method)
        if isinstance(adapter, SparseTableAdapter):
            return rows, rows.copy()
        scale, origin = adapter.units
        return scale * features + origin, rows

    def _overridden_rows(self, call: Call) -> PerturbedRows:
        method, adapter = getattr(self, self._draws), self._adapter
        # lime's last release has no third parameter
        options = (call.sampling,) if len(inspect.signature(method).parameters) > 2 else ()
        data, rows = method(call.instance, call.num_samples, *options)
        scale, origin = adapter.units
        if isinstance(adapter, SparseTableAdapter):
            columns = adapter.columns(call.instance)
            dense = data[:, columns].toarray() if hasattr(data, "tocsr") else np.asarray(data)[:, columns]
            return PerturbedRows(dense / scale[columns], adapter.ask(call, rows))
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
            problem = f"feature_names has {len(names)} names, but training_data has {self.n_features} a step"
            if len(names) < self.n_features:
                raise InputError(problem)
            consequence = f"the first {self.n_features} are used"
            warn_or_raise(problem, "leave out what is no feature, such as the target", consequence)
            names = names[: self.n_features]
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
            problem = (
                f"data_row has shape {array.shape}, expected ({self.n_timesteps}, {self.n_features}): "
                "timesteps, features"
            )
            if array.size != self.n_timesteps * self.n_features:
                raise InputError(problem)
            warn_or_raise(problem, "move the axes", "its transpose is read as the columns, as in lime")
            return array.T.reshape(1, -1)
        return sequences.transpose(0, 2, 1).reshape(len(sequences), -1)
