r"""One call of ``explain_instance``, and the two engines that answer it, for data of any kind.

Engine "limit" computes what lime converges to, with a surrogate on m of the d features, S, as lime has it.
It follows from the one on all of them:

    β_j(S) = β_j + c / (a + mc) Σ_out β_l,     β₀(S) = E_w f - Σ_S β_j(S) E_w h_j,
    R²(S) = Σ_S β_j(S) Γ_j / Var_w f.

Words and superpixels are removed, all pairs with the same covariance c, and Σ has eigenvalues a across
(1, ..., 1) and a + dc along it. Features of tables are uncorrelated, c = 0. Standard errors are those of the
whole: a few per cent too wide, as (Σ_SS⁻¹)_jj is below (Σ⁻¹)_jj.

Engine "lime" draws lime's own rows, the instance first, and fits lime's own surrogate to their answers.

The choice of an engine made by the explainer goes before that of a ``with engine(...)`` block, which goes
before LIMES_ENGINE.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from math import isnan
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from limes._arrays import ROUNDING, Floats, Ints, r_squared
from limes._checks import check_choice, check_count
from limes._explainers.budget import least_for_input
from limes._explanation.explanation import from_fields
from limes._fitting import Fitted
from limes._sampling.least_squares import DEFAULT_TOLERANCE
from limes._threads import one_blas_thread, progress_of, user_blas_threads
from limes.compat.lime._leniency import feature_count, selection_of, sliced_count
from limes.compat.lime.exceptions import warn_or_raise
from limes.compat.lime.explanation import DomainMapper, Explanation
from limes.compat.lime.lime_base import (
    SELECTIONS,
    CentredEquations,
    LimeBase,
    LocalFit,
    PerturbedRows,
    Surrogates,
    default_kernel,
    report,
    selected,
)
from limes.designs._product import Features
from limes.exceptions import InputError, LimesError, ModelError
from limes.models._calling.border import FAILURES, Border, failure_text
from limes.models._calling.hugging_face import Estimator, adapted
from limes.models._calling.outputs import clusters_of, prediction_method

if TYPE_CHECKING:
    from limes._explainers.masked import MaskedExplainer, MaskedInput
    from limes._explanation import Explanation as LimesExplanation
    from limes.models._documents import Document

ENGINES = ("limit", "lime")
VARIABLE = "LIMES_ENGINE"
_chosen: ContextVar[str | None] = ContextVar("engine", default=None)
# Rows that the range of the answers is estimated from
SCORED_ROWS = 4096
# Method of a fitted model -> the output that limes knows it by
_READABLE: dict[str, dict[str, str | None]] = {
    "classification": {"predict_proba": "probability"},
    "regression": {"predict": None, "decision_function": "margin"},
}


@contextmanager
def engine(name: str) -> Iterator[None]:
    """Let an engine answer inside a ``with`` block.

    Parameters
    ----------
    name : "limit" or "lime"

    Raises
    ------
    InputError
        Another name.

    Examples
    --------
    >>> with engine("lime"):
    ...     engine_name(None)
    'lime'
    """
    token = _chosen.set(check_choice("engine", name, ENGINES))
    try:
        yield
    finally:
        _chosen.reset(token)


def engine_name(choice: str | None) -> str:
    """Return the engine that answers an explainer with this choice."""
    if choice is not None:
        return check_choice("engine", choice, ENGINES)
    return _chosen.get() or check_choice(VARIABLE, os.environ.get(VARIABLE, ENGINES[0]), ENGINES)


def _owner(predict_fn: Any) -> Any:
    model = getattr(predict_fn, "__self__", None)
    return model if getattr(model, getattr(predict_fn, "__name__", ""), None) == predict_fn else None


def model_behind(predict_fn: Any, mode: str) -> tuple[Any, str | None] | None:
    """The model and output of a bound method such as ``model.predict_proba``; None of any other function."""
    model, method = _owner(predict_fn), getattr(predict_fn, "__name__", "")
    if method not in _READABLE[mode] or not hasattr(model, "predict"):
        return None
    classes = getattr(model, "classes_", None)
    count = 0 if classes is None else len(classes)
    # labels that a classifier predicts are no quantity to be read; columns of probabilities are classes
    # only where the model has classes, and one target
    readable = (
        count == 0 and clusters_of(model) is None
        if method == "predict"
        else count > 1 and not isinstance(classes, list)
    )
    return (model, _READABLE[mode][method]) if readable else None


def in_batches(predict: Callable[[Any], Floats], rows: Any, size: int, *, progress: bool) -> Floats:
    """Answers (n, k) to rows, asked ``size`` at a time, with a progress bar if it takes long."""
    answers = []
    with progress_of(shown=progress)(len(rows)) as advance:
        for start in range(0, len(rows), size):
            answers.append(predict(rows[start : start + size]))
            advance(len(answers[-1]))
    return np.concatenate(answers)


@dataclass(frozen=True)
class PredictFunction:
    """Calls ``predict_fn`` of tables or texts, which must be callable, and checks its answers."""

    predict_fn: Callable[[Any], Any]
    mode: str
    # whether answers (n, 1) are those of one label, as lime has it; else p of two classes
    one_label: bool = False

    def __post_init__(self) -> None:
        if isinstance(adapted(self.predict_fn), Estimator):
            return
        if not callable(self.predict_fn) and prediction_method(self.predict_fn, "") is None:
            method = "predict" if self.mode == "regression" else "predict_proba"
            raise InputError(
                f"predict_fn is {type(self.predict_fn).__name__}, which cannot be called: pass its .{method}"
            )

    def __call__(self, table: Any) -> Floats:
        """Answers (n, k); (n, 1) of a regression. Probabilities p of one column become 1 - p and p.

        Not so columns (n, 1) of a call that lime can answer: they are label 0.
        """
        rows = table.shape[0] if hasattr(table, "tocsr") else len(table)
        with user_blas_threads():
            try:
                with Border():
                    values = self._function(table)
            except FAILURES as error:
                failure = failure_text(error, f"on a table of {rows} rows")
                raise ModelError(f"predict_fn {failure}", batch=table) from error
        answers = _numbers(values, rows)
        if not np.isfinite(answers).all():
            raise ModelError("predict_fn answered with values that are not finite")
        if self.mode == "regression":
            return self.checked(answers)
        both = answers.shape[1] == 1 and not (self.one_label and np.ndim(values) > 1)
        return _both_classes(answers) if both else answers

    def checked(self, answers: Floats) -> Floats:
        """The answers, of a regression the first column, with one warning if there are others."""
        if self.mode == "regression" and answers.shape[1] != 1:
            self._warned_of_columns  # noqa: B018 - once a call
            return answers[:, :1]
        return answers

    @cached_property
    def _warned_of_columns(self) -> None:
        warn_or_raise(
            "predict_fn answered several numbers a row",
            "explain one at a time, as with lambda X: model.predict(X)[:, 0]",
            "the first is explained, as lime does",
        )

    @property
    def function(self) -> Callable[[Any], Floats]:
        """Answers (n, k), (n,) of a regression, as a plain function, which errors call by its name."""

        def predict_fn(table: Any) -> Floats:
            return self(table)[:, 0] if self.mode == "regression" else self(table)

        return predict_fn

    @cached_property
    def model(self) -> tuple[Any, str | None] | None:
        return model_behind(self.predict_fn, self.mode)

    @cached_property
    def _function(self) -> Callable[[Any], Any]:
        network = adapted(self.predict_fn)
        if isinstance(network, Estimator):  # a pipeline or a pair of transformers
            answer: Callable[[Any], Any] = getattr(network, "predict_proba", network.predict)
            return answer
        # networks and boosters take something else for a table than numbers
        model = _owner(self.predict_fn)
        method = None if model is None else prediction_method(model, getattr(self.predict_fn, "__name__", ""))
        return method or prediction_method(self.predict_fn, "") or self.predict_fn


def _numbers(values: Any, rows: int) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        first = np.asarray(values, dtype=object).ravel()[:1].tolist()
        raise ModelError(
            f"predict_fn answered with {first}, which is no number: pass predict_proba, or a function "
            "that returns one number or one line of numbers a row"
        ) from None
    columns = numbers[:, None] if numbers.ndim == 1 else numbers
    if columns.ndim != 2 or len(columns) != rows:
        raise ModelError(
            f"predict_fn answered {rows} rows with shape {numbers.shape}: expected one line a row"
        )
    return columns


def _both_classes(p: Floats) -> Floats:
    if p.min() < 0 or p.max() > 1:
        raise InputError(
            "predict_fn answered one number a row that is no probability: pass predict_proba, "
            'or mode="regression" to explain a score'
        )
    return np.hstack([1.0 - p, p])


@dataclass(frozen=True, eq=False)
class Call:
    """One checked call of ``explain_instance``, with lime's options, of any kind of data."""

    # a row (d,), a sparse row (1, d), an indexed text, or an image with its superpixels
    instance: Any
    # a PredictFunction or ImageClassifier
    predict: Any
    # the labels to be explained, of the model's answer (k,) at the instance
    choose_labels: Callable[[Floats], list[int]]
    num_features: int
    num_samples: int
    metric: Any
    regressor: Any
    sampling: str = "gaussian"
    progress: bool = False
    # the model's answer (k,) at the instance, where it was asked already
    prediction: Floats | None = None

    def __post_init__(self) -> None:
        check_count("num_samples", self.num_samples)


class DataAdapter(ABC):
    """A kind of data: what both engines need to know of it."""

    # the distance that the limit has, its unit, and ν in this unit
    metric: ClassVar[str] = "cosine"
    distance_unit: ClassVar[float] = 1.0
    bandwidth: float | None

    @abstractmethod
    def only_sampled(self, call: Call) -> dict[str, bool]:
        """Return what the limit does not cover, in words, and whether the call has it."""

    def fit(self, call: Call, seed: int) -> LimesFit:
        """Explain the instance by an explainer of limes with this seed, where it covers the data."""
        raise NotImplementedError

    def near(self, call: Call, fit: LimesFit, seed: int) -> Floats:
        """The model's answers (n, k) to rows of w, where there is a limit."""
        raise NotImplementedError

    def explanation(self, call: Call, fit: LimesFit, outputs: list[int]) -> LimesExplanation:
        """The explanation of some outputs, or the only one of a regression, as limes has it."""
        whole = fit.to_explanation()
        if call.predict.mode == "regression":
            return whole if whole.coefficients.values.ndim == 2 else whole[..., 0]
        return whole[..., outputs]

    @abstractmethod
    def fingerprint(self, instance: Any) -> Sequence[int]:
        """Whole numbers that tell instances apart: with the seed, they are the seed of lime's rows."""

    @abstractmethod
    def draw(self, call: Call, rng: np.random.Generator) -> tuple[Floats, Any]:
        """Features (n, m) as lime draws them, the instance's first, and the rows to be asked about."""

    def ask(self, call: Call, rows: Any) -> Floats:
        """Answers (n, k) to rows of `draw`."""
        return np.asarray(call.predict(rows))

    @abstractmethod
    def describe(self, instance: Any) -> dict[str, Any]:
        """Fields of limes' explanation: names, conditions, data, and facts for the provenance."""

    def columns(self, instance: Any) -> Ints | None:  # noqa: ARG002
        """Numbers (m,) of the features that `draw` draws, if they are some of all."""
        return None

    @property
    def units(self) -> tuple[Floats, Floats] | None:
        """Scales and origins (d,) of lime's features (x - origin) / scale, if they are not limes' x."""
        return None


class LimesFit(NamedTuple):
    """The fit of an explainer of limes."""

    explainer: Any
    model: Any  # with `predict`, of texts and images
    fitted: Fitted
    to_explanation: Callable[[], LimesExplanation]
    # moments of the features, in lime's units
    features: Features
    # R² of the surrogates, (k,) or (); NaN where it takes some time to compute
    fidelity: Floats


def least_subset_calls(d: int) -> int:
    """Model calls that the limit of d words or superpixels needs: lime's own prediction is one of them."""
    return 1 + least_for_input(d)


@dataclass(frozen=True, eq=False)
class MaskedAdapter(DataAdapter):
    """Texts and images, of whose words or superpixels some are removed."""

    # words for too few samples
    few: ClassVar[str] = "num_samples < {}"
    # facts for the provenance beside those of an input
    facts: ClassVar[Mapping[str, Any]] = {}
    # as many features as R² is computed for at once, where a sample does not have it
    most_enumerated: ClassVar[float] = np.inf
    bandwidth: float

    @abstractmethod
    def item(self, instance: Any) -> MaskedInput | Document:
        """The input as limes has it."""

    @abstractmethod
    def is_read(self, call: Call) -> bool:
        """Whether the model is one that may be read, and need not be called."""

    @abstractmethod
    def explainer(self, call: Call, seed: int) -> MaskedExplainer[Any]:
        """The explainer of limes for the call's model and labels."""

    def only_sampled(self, call: Call) -> dict[str, bool]:
        least = least_subset_calls(self.item(call.instance).size)
        return {self.few.format(least): call.num_samples < least and not self.is_read(call)}

    def fit(self, call: Call, seed: int) -> LimesFit:
        explainer, item = self.explainer(call, seed), self.item(call.instance)
        # every feature has a coefficient, as lime has it, also one whose removal changes nothing
        model, fitted, calls = explainer._fit(item, progress=call.progress)  # noqa: SLF001
        fidelity = fitted.surrogate.fidelity
        if np.isnan(fidelity).any() and item.size <= self.most_enumerated:
            fits = explainer._fits(model, fitted)  # noqa: SLF001
            fidelity = fits.fidelities([0])[0][0]
        every = np.ones(item.size, dtype=np.bool_)
        explain = partial(explainer._to_explanation, item, every, model, fitted, calls)  # noqa: SLF001
        features: Any = fitted.features
        return LimesFit(explainer, model, fitted, explain, features, fidelity)

    def near(self, call: Call, fit: LimesFit, seed: int) -> Floats:  # noqa: ARG002 - the same rows in all calls
        design: Any = fit.features
        rows, _ = design.sample(SCORED_ROWS, np.random.SeedSequence(0))
        return np.asarray(fit.model.predict(rows).reshape(SCORED_ROWS, -1))

    def describe(self, instance: Any) -> dict[str, Any]:
        item = self.item(instance)
        return {
            "feature_names": item.names,
            "conditions": (item.conditions,),
            "data": item.data[None],
            "provenance": {**self.facts, **item.picture},
        }


@dataclass(frozen=True, eq=False)
class Limit:
    """One output's surrogate on all features of lime: coefficients and standard errors (d,).

    ``fidelity`` is its R², NaN where it takes some time to compute.
    """

    coef: Floats
    errors: Floats
    intercept: float
    fidelity: float
    features: Features

    @cached_property
    def gram(self) -> Floats:
        return self.features.gamma(np.eye(len(self.coef)))

    @cached_property
    def gamma(self) -> Floats:
        return self.features.gamma(self.coef)

    def fit(self, count: int, selection: str) -> LocalFit:
        if len(self.coef) == 1:  # nothing to select from
            used = np.zeros(1, dtype=np.int64)
        else:
            at_instance = self.features.at_instance
            equations = CentredEquations(self.gram, self.gamma, at_instance, lambda: self.coef)
            used = selected(equations, count, selection)
        coef = self._coef(used)
        order = np.argsort(-np.abs(coef), kind="stable")
        used, coef = used[order], coef[order]
        intercept = self._mean_answer - float(self.features.inclusion[used] @ coef)
        return LocalFit(
            intercept=intercept,
            features=used,
            coef=coef,
            errors=self.errors[used],
            score=np.nan if isnan(self.fidelity) else self.share(used, coef) * self.fidelity,
            local_pred=intercept + float(self.features.at_instance[used] @ coef),
        )

    def share(self, used: Ints, coef: Floats) -> float:
        """Return what part of R² a surrogate on the used features keeps."""
        return float(r_squared(coef @ self.gamma[used], self.coef @ self.gamma, self._mean_answer)[0])

    def _coef(self, used: Ints) -> Floats:
        shared = float(self.gram[0, -1]) if len(self.coef) > 1 else 0.0
        along = float(self.gram[0, 0]) + (len(used) - 1) * shared
        left_out = float(np.delete(self.coef, used).sum())
        return self.coef[used] + (shared / along * left_out if along > 0 else 0.0)

    @property
    def _mean_answer(self) -> float:
        return self.intercept + float(self.features.inclusion @ self.coef)


def limit(adapter: DataAdapter, call: Call, selection: str, seed: int, *, verbose: bool) -> Surrogates:
    """Answer a call by the limit; scores and bounds are computed when they are read."""
    with _unwrapped_errors():
        fit = adapter.fit(call, seed)
    prediction = call.prediction
    if prediction is None:
        prediction = call.predict.checked(fit.fitted.predictions.reshape(1, -1))[0]
    labels = call.choose_labels(prediction)
    # images are explained for their labels alone
    outputs = labels if call.prediction is None else list(range(len(labels)))
    limits = dict(zip(labels, _limits(fit, outputs, adapter.units), strict=True))
    fits = {k: one.fit(call.num_features, selection) for k, one in limits.items()}
    if verbose:
        for k, one in fits.items():
            report(one, float(prediction[k]))

    def scores() -> dict[int, float]:
        if not fits:
            return {}
        whole = zip(fits.items(), np.atleast_1d(explanation().fidelity[0]).tolist(), strict=True)
        return {k: limits[k].share(one.features, one.coef) * r2 for (k, one), r2 in whole}

    explanation = cache(partial(adapter.explanation, call, fit, outputs))
    return Surrogates(fits, prediction, scores, lambda: adapter.near(call, fit, seed), explanation)


def _limits(fit: LimesFit, outputs: Sequence[int], units: tuple[Floats, Floats] | None) -> list[Limit]:
    """Limits of some outputs, of features in lime's units."""
    surrogate, d = fit.fitted.surrogate, len(fit.features.inclusion)
    coef, errors = (b.reshape(d, -1) for b in (surrogate.coef, surrogate.standard_errors))
    intercepts, fidelity = surrogate.intercept.ravel(), np.ravel(fit.fidelity)
    if units is not None:
        scale, origin = units
        intercepts = intercepts + origin @ coef
        coef, errors = coef * scale[:, None], errors * scale[:, None]
    return [
        Limit(coef[:, i], errors[:, i], float(intercepts[i]), float(fidelity[i]), fit.features)
        for i in outputs
    ]


@contextmanager
def _unwrapped_errors() -> Iterator[None]:
    try:
        yield
    except ModelError as error:
        if isinstance(error.__cause__, LimesError):
            raise error.__cause__ from error.__cause__.__cause__  # what the user's function raised
        raise


def sampled(
    adapter: DataAdapter, call: Call, near: PerturbedRows, base: Any, selection: str, seed: int
) -> Surrogates:
    """Answer a call by a fit to rows near the instance, as lime does."""
    distance = near.distances
    if distance is None:
        distance = adapter.distance_unit * distances(near.features, call.metric, adapter.metric)
    prediction = near.answers[0] if call.prediction is None else call.prediction
    labels = call.choose_labels(prediction)
    data, options = (near.features, near.answers, distance), (call.num_features, selection, call.regressor)
    if type(base) is LimeBase:
        fits = base.fits(*data, labels, *options)
    else:
        fits = {k: _foreign_fit(base, data, k, *options) for k in labels}
    if (columns := adapter.columns(call.instance)) is not None:
        fits = {k: replace(fit, features=columns[fit.features]) for k, fit in fits.items()}
    facts = {"engine": "lime", "bandwidth": adapter.bandwidth, "ridge": 1.0, "seed": seed}
    fields = adapter.describe(call.instance)
    fields["provenance"] = {k: v for k, v in facts.items() if v is not None} | fields["provenance"]
    in_units = (
        fits if adapter.units is None else {k: _unscaled(fit, *adapter.units) for k, fit in fits.items()}
    )
    answers = near.answers[:, labels]
    explanation = cache(
        partial(_explanation, in_units, call.predict.mode, prediction[labels], answers, fields)
    )
    scores = {k: fit.score for k, fit in fits.items()}
    return Surrogates(fits, prediction, lambda: scores, lambda: near.answers, explanation)


def perturbed_rows(adapter: DataAdapter, call: Call, seed: int) -> PerturbedRows:
    """Draw rows as lime does, which depend on seed and instance alone, and call the model."""
    rng = np.random.default_rng([seed, *adapter.fingerprint(call.instance)])
    features, rows = adapter.draw(call, rng)
    # first what may be refused, then what may take long
    distance = adapter.distance_unit * distances(features, call.metric, adapter.metric)
    return PerturbedRows(features, adapter.ask(call, rows), distance)


def _foreign_fit(
    base: Any, rows: tuple[Floats, Floats, Floats], label: int, count: int, selection: str, regressor: Any
) -> LocalFit:
    """Fit by a user's own base, with the method that lime calls; it has no standard errors."""
    intercept, pairs, score, local = base.explain_instance_with_data(
        *rows, label, count, model_regressor=regressor, feature_selection=selection
    )[:4]
    return LocalFit(
        intercept=float(np.ravel(intercept)[0]),
        features=np.array([int(j) for j, _ in pairs], dtype=np.int64),
        coef=np.array([float(value) for _, value in pairs]),
        errors=np.full(len(pairs), np.inf),
        score=float(score),
        local_pred=float(np.ravel(local)[0]),
    )


def _unscaled(fit: LocalFit, scale: Floats, origin: Floats) -> LocalFit:
    coef, errors = fit.coef / scale[fit.features], fit.errors / scale[fit.features]
    intercept = fit.intercept - float(coef @ origin[fit.features])
    return replace(fit, intercept=intercept, coef=coef, errors=errors)


def _explanation(
    fits: Mapping[int, LocalFit], mode: str, predictions: Floats, answers: Floats, fields: Mapping[str, Any]
) -> LimesExplanation:
    from limes._warnings import by_output

    values, errors = np.zeros((2, 1, len(fields["feature_names"]), len(fits)))
    for k, fit in enumerate(fits.values()):
        values[0, fit.features, k] = fit.coef
        errors[0, fit.features, k] = fit.errors
    numbers = np.array([[(fit.intercept, fit.local_pred, fit.score) for fit in fits.values()]])
    index = (..., 0) if mode == "regression" else (...,)
    names = ("output",) if mode == "regression" else tuple(str(label) for label in fits)
    alike = np.ptp(answers, axis=0) <= ROUNDING * np.abs(answers).max(axis=0)
    unchanged = (
        f"the model answered the same in all {len(answers):,} perturbed rows, so that all coefficients are "
        "0: check that it receives what is explained"
    )
    return from_fields(
        values=values[index],
        standard_errors=errors[index],
        intercepts=numbers[..., 0][index],
        predictions=predictions[None][index],
        surrogate_predictions=numbers[..., 1][index],
        fidelity=numbers[..., 2][index],
        output_names=names,
        method="sampled",
        reason='engine "lime" samples',
        calls=np.array([len(answers)]),
        row_converged=DEFAULT_TOLERANCE.excess(values, np.where(alike, 0.0, errors)) <= 1.0,
        row_warnings=(by_output([unchanged if same else "" for same in alike], names, "unchanged"),),
        **fields,
    )


# Distances (n,) of features (n, d) from the first row, by the metric that is each kind of data's default
_DISTANCES: dict[str, Callable[[Floats], Floats]] = {
    "euclidean": lambda h: np.asarray(np.sqrt(((h - h[0]) ** 2).sum(axis=1))),
    # of rows of 0 and 1, the first of which has no 0
    "cosine": lambda z: np.asarray(1.0 - np.sqrt(z.mean(axis=1))),
}


def distances(features: Floats, metric: Any, default: str) -> Floats:
    """Distances (n,) of features (n, d) from the first row; the ``default`` of a kind has a formula."""
    if metric == default:
        return _DISTANCES[default](features)
    from sklearn.metrics import pairwise_distances

    try:
        return np.asarray(pairwise_distances(features, features[:1], metric=metric)).ravel()
    except ValueError as error:
        raise InputError(
            f"distance_metric={metric!r} is no metric of scikit-learn's that measures these rows: {error}"
        ) from error


def listed_labels(labels: int | Iterable[Any]) -> list[Any]:
    """The labels of a call, which may be one."""
    return [labels] if isinstance(labels, int | np.integer | str) else list(labels)


def numbers_a_row(k: int) -> str:
    """How many numbers a function answers, in words."""
    return f"{k} number{'s' if k > 1 else ''} a row"


class EngineSeeds(NamedTuple):
    """Seeds of the engines, drawn from the user's, if there is one."""

    limit: int  # 0 without a user's seed, so that results repeat
    lime: int  # random without a user's seed, so that lime's scatter shows


class BaseExplainer(ABC):
    """Options, seeds and engines of lime's explainers, and which engine answers a call.

    ``random_state``, ``feature_selection``, ``base`` and ``base.kernel_fn`` may be rebound, as lime's may:
    the next call uses them.
    """

    # lime's own method that draws rows, which users call and override by its name
    _draws: ClassVar[str]

    def __init__(
        self,
        mode: str,
        kernel: Callable[..., Floats] | None,
        verbose: bool,
        class_names: Sequence[Any] | None,
        feature_selection: str,
        random_state: Any,
        engine: str | None,
    ) -> None:
        from sklearn.utils import check_random_state

        engine_name(engine)
        self.mode = check_choice("mode", mode, ("classification", "regression"))
        self.feature_selection = selection_of(feature_selection, tuple(SELECTIONS))
        self.engine = engine
        self.random_state = check_random_state(random_state)
        self.class_names = class_names
        self._kernel = kernel
        self._verbose = verbose
        self._seeded = self.random_state, self._drawn_seeds(seeded=random_state is not None)

    def _drawn_seeds(self, *, seeded: bool) -> EngineSeeds:
        from sklearn.utils import check_random_state

        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return EngineSeeds(limit=seed if seeded else 0, lime=seed)

    @property
    def _seeds(self) -> EngineSeeds:
        if self.random_state is not self._seeded[0]:  # it was rebound
            self._seeded = self.random_state, self._drawn_seeds(seeded=True)
        return self._seeded[1]

    def _adapt(self, adapter: DataAdapter, kernel_width: float) -> None:
        self._adapter = adapter
        self._weigh = partial(self._kernel or default_kernel, kernel_width=kernel_width)
        self.base: Any = LimeBase(self._weigh, self._verbose, self.random_state)

    @abstractmethod
    def _overridden_rows(self, call: Call) -> PerturbedRows:
        """Rows that the method `_draws` returns, where it is not lime's any more."""

    @property
    def _override(self) -> str:
        # what reasons call it, if a subclass overrides it, or it was rebound
        owner = next(kind for kind in type(self).__mro__ if "_draws" in vars(kind))
        function = getattr(getattr(self, self._draws), "__func__", None)
        if function is vars(owner)[self._draws]:
            return ""
        return f"your own {self._draws.removeprefix(f'_{owner.__name__}')}"

    def _only_sampled(self, call: Call) -> list[str]:
        own_base = type(self.base) is not LimeBase
        uses = {
            "kernel": self._kernel is not None,
            "model_regressor": call.regressor is not None,
            "distance_metric": call.metric != self._adapter.metric,
            type(self.base).__name__: own_base,
            "base.kernel_fn": not own_base and self.base.kernel_fn is not self._weigh,
        }
        if override := self._override:
            uses[override] = True
        return [option for option, is_used in (uses | self._adapter.only_sampled(call)).items() if is_used]

    @one_blas_thread()
    def _answer(self, call: Call, top_labels: int | None) -> dict[str, Any]:
        """Options of lime's result object: surrogates, the engine, and why, if it was not the one chosen."""
        name, reason, seeds = engine_name(self.engine), "", self._seeds
        selection = self.feature_selection
        if type(self.base) is LimeBase:
            check_choice("feature_selection", selection, tuple(SELECTIONS))
        call = replace(call, num_features=feature_count(call.num_features, selection))
        if name == "limit" and (used := self._only_sampled(call)):
            name, reason = "lime", f"only lime's sampling supports {', '.join(used)}"
        if name == "limit":
            surrogates = limit(self._adapter, call, selection, seeds.limit, verbose=self._verbose)
        else:
            near = (
                self._overridden_rows(call)
                if self._override
                else perturbed_rows(self._adapter, call, seeds.lime)
            )
            surrogates = sampled(self._adapter, call, near, self.base, selection, seeds.lime)
        options = {"random_state": self.random_state, "engine": (name, reason), "top": bool(top_labels)}
        return {"surrogates": surrogates, **options}

    @one_blas_thread()
    def _explanation(self, call: Call, mapper: DomainMapper, top_labels: int | None) -> Explanation:
        options = self._answer(call, top_labels)
        classes = self._classes(len(options["surrogates"].prediction))
        return Explanation(mapper, self.mode, classes, **options)

    def _choose_labels(self, prediction: Floats, labels: int | Iterable[int], top: int | None) -> list[int]:
        """The labels asked for, or those of the ``top`` largest answers (k,), largest first."""
        if self.mode == "regression":
            return [0]
        self._classes(len(prediction))
        if top:
            count = sliced_count("top_labels", top)
            return [int(k) for k in np.argsort(prediction)[-count:][::-1]]
        wanted, k = listed_labels(labels), len(prediction)
        if any(label not in range(-k, k) for label in wanted):
            raise InputError(f"labels={wanted!r}: predict_fn answers {numbers_a_row(k)}, 0 to {k - 1}")
        if not wanted:
            warn_or_raise("labels is empty", "name a label", "nothing is explained, as in lime")
        elif min(wanted) < 0:
            consequence = "they are counted from the last answer, as in lime"
            warn_or_raise(f"labels={wanted!r}", f"pass labels from 0 to {k - 1}", consequence)
        return [int(label) for label in dict.fromkeys(wanted)]

    def _one_label(self, labels: Sequence[Any], top: int | None) -> bool:
        """Whether lime can answer a call where the function answers (n, 1): it has label 0 alone."""
        return bool(top) or 1 not in labels

    def _classes(self, k: int) -> list[Any] | None:
        if self.mode == "regression":
            return None
        numbers = [str(i) for i in range(k)]
        names = numbers if self.class_names is None else list(self.class_names)
        if len(names) != k:
            warn_or_raise(
                f"class_names has {len(names)} names, but predict_fn answers {numbers_a_row(k)}",
                "pass one name a column",
                "classes without a name are called by their position",
            )
        return [*names[:k], *numbers[len(names) :]]
