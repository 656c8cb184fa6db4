"""One call of ``explain_instance``: what it explains (`Call`), whom it asks (`PredictFunction`), who answers.

An explainer (`BaseExplainer`) has two engines, "limit" and "lime", which know nothing of tables, texts or
images: a `Kind` of data supplies what they need. The choice of an engine made by the explainer goes before
that of a ``with engine(...)`` block, which goes before LIMES_ENGINE.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from limes._arrays import Floats
from limes._bars import progress_of
from limes._checks import check_choice, check_count
from limes._threads import one_blas_thread, user_blas_threads
from limes.compat.lime._lenient import object_to
from limes.compat.lime._limit import LimitEngine, Limits
from limes.compat.lime._sampling import SamplingEngine
from limes.compat.lime.explanation import DomainMapper, Explanation
from limes.compat.lime.lime_base import (
    SELECTIONS,
    LimeBase,
    LocalFit,
    PerturbedRows,
    Surrogates,
    default_kernel,
)
from limes.exceptions import InputError, ModelError
from limes.models._calling.caller import FAILURES, failure_text
from limes.models._calling.methods import clusters_of, prediction_method

ENGINES = ("limit", "lime")
VARIABLE = "LIMES_ENGINE"
_chosen: ContextVar[str | None] = ContextVar("engine", default=None)
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
    """Return the object whose method this is; None of other functions, and where the method was replaced."""
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
    """Calls ``predict_fn``, which must be callable, and checks its answers."""

    predict_fn: Callable[[Any], Any]
    mode: str

    def __post_init__(self) -> None:
        if prediction_method(self.predict_fn, "") is None:
            method = "predict" if self.mode == "regression" else "predict_proba"
            raise InputError(
                f"predict_fn is {type(self.predict_fn).__name__}, which cannot be called: pass its .{method}"
            )

    def __call__(self, table: Any) -> Floats:
        """Answers (n, k); (n, 1) of a regression. Probabilities p of one column become 1 - p and p.

        Raises
        ------
        ModelError, InputError
            If the function fails; or if its answers are not usable.
        """
        rows = table.shape[0] if hasattr(table, "tocsr") else len(table)
        try:
            with user_blas_threads():
                values = self._function(table)
        except FAILURES as error:
            raise ModelError(
                f"predict_fn {failure_text(error, f'on a table of {rows} rows')}", batch=table
            ) from error
        answers = _numbers(values, rows)
        if not np.isfinite(answers).all():
            raise ModelError("predict_fn answered with values that are not finite")
        if self.mode == "regression":
            return self.checked(answers)
        return _both_classes(answers) if answers.shape[1] == 1 else answers

    def checked(self, answers: Floats) -> Floats:
        """Return answers (n, k); raise InputError if they are several numbers a row of a regression."""
        if self.mode == "regression" and answers.shape[1] != 1:
            raise InputError(
                f"predict_fn answered {answers.shape[1]} numbers a row: explain one at a time, "
                "as with lambda X: model.predict(X)[:, 0]"
            )
        return answers

    @property
    def function(self) -> Callable[[Any], Floats]:
        """Answers (n, k), (n,) of a regression, as a plain function, which errors call by its name."""

        def predict_fn(table: Any) -> Floats:
            return self(table)[:, 0] if self.mode == "regression" else self(table)

        return predict_fn

    @cached_property
    def model(self) -> tuple[Any, str | None] | None:
        """The model and output behind it, if it may be read."""
        return model_behind(self.predict_fn, self.mode)

    @cached_property
    def _function(self) -> Callable[[Any], Any]:
        """The function; of networks and boosters what they take for a table."""
        model = _owner(self.predict_fn)
        method = None if model is None else prediction_method(model, getattr(self.predict_fn, "__name__", ""))
        return method or prediction_method(self.predict_fn, "") or self.predict_fn


def _numbers(values: Any, rows: int) -> Floats:
    """Values as numbers (n, k)."""
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
    """Probabilities 1 - p and p, (n, 2), of p (n, 1)."""
    if p.min() < 0 or p.max() > 1:
        raise InputError(
            "predict_fn answered one number a row that is no probability: pass predict_proba, "
            'or mode="regression" to explain a score'
        )
    return np.hstack([1.0 - p, p])


@dataclass(frozen=True, eq=False)
class Override:
    """A user's own way to draw rows: a method of lime's that a subclass overrides, or that was rebound."""

    name: str
    draw: Callable[[], PerturbedRows]


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
    override: Override | None = None

    def __post_init__(self) -> None:
        check_count("num_features", self.num_features)
        check_count("num_samples", self.num_samples)


class Kind(ABC):
    """A kind of data: what both engines need to know of it."""

    # the distance that the limit has, its unit, and ν in this unit
    metric: ClassVar[str] = "cosine"
    distance_unit: ClassVar[float] = 1.0
    bandwidth: float | None
    # whether an explainer of limes serves other calls of the same function
    reuses_explainers: ClassVar[bool] = False
    mode: str

    @abstractmethod
    def with_seed(self, seed: int) -> Kind:
        """The same kind with another seed of the limit."""

    @abstractmethod
    def only_sampled(self, call: Call) -> dict[str, bool]:
        """What the limit does not cover, in words, and whether the call has it."""

    def explainer(self, call: Call) -> tuple[Any, Any]:
        """An explainer of limes for a call, and the model that was read for it; None where none was read."""
        raise NotImplementedError

    def limits(self, explainer: Any, call: Call) -> Limits:
        """The limit at the instance."""
        raise NotImplementedError

    @abstractmethod
    def fingerprint(self, call: Call) -> Sequence[int]:
        """Whole numbers that tell instances apart: with the seed, they are the seed of lime's rows."""

    @abstractmethod
    def draw(self, call: Call, rng: np.random.Generator) -> tuple[Floats, Any]:
        """Features (n, m) as lime draws them, the instance's first, and the rows to be asked about."""

    @abstractmethod
    def ask(self, call: Call, rows: Any) -> Floats:
        """Answers (n, k) to rows of `draw`."""

    @abstractmethod
    def describe(self, call: Call, provenance: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of limes' explanation: names, conditions, data, and the provenance with more facts."""

    def place_features(self, call: Call, fits: dict[int, LocalFit]) -> dict[int, LocalFit]:  # noqa: ARG002
        """Renumber the features of fits on drawn rows to the instance's."""
        return fits

    def in_input_units(self, fit: LocalFit) -> LocalFit:
        """A fit on lime's features as one on limes'."""
        return fit


class EngineSeeds(NamedTuple):
    """Seeds of the engines, drawn from the user's, if there is one."""

    # 0 without a user's seed, so that results repeat
    limit: int
    # random without a user's seed, so that lime's scatter shows
    lime: int


@dataclass(frozen=True)
class _Engines:
    """The engines, and the attributes of the explainer that they were made for."""

    random_state: Any
    selection: str
    base: Any
    by_name: Mapping[str, Callable[[Call], Surrogates]]


class BaseExplainer:
    """Options, seeds and engines of lime's explainers, and which engine answers a call.

    ``random_state``, ``feature_selection``, ``base`` and ``base.kernel_fn`` may be rebound, as lime's may:
    the next call uses them.
    """

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
        self._is_seeded = random_state is not None
        self.mode = check_choice("mode", mode, ("classification", "regression"))
        self.feature_selection = check_choice("feature_selection", feature_selection, tuple(SELECTIONS))
        self.engine = engine
        self.random_state = check_random_state(random_state)
        self.class_names = class_names
        self._kernel = kernel
        self._verbose = verbose
        self._seeds = self._drawn_seeds()

    def _drawn_seeds(self) -> EngineSeeds:
        from sklearn.utils import check_random_state

        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return EngineSeeds(limit=seed if self._is_seeded else 0, lime=seed)

    def _set_kind(self, kind: Kind, kernel_width: float) -> None:
        """Make the engines of a kind of data."""
        self._weigh = partial(self._kernel or default_kernel, kernel_width=kernel_width)
        self.base: Any = LimeBase(self._weigh, self._verbose, self.random_state)
        self._engines = self._made_engines(kind)

    def _made_engines(self, kind: Kind) -> _Engines:
        self._kind = kind
        selection = check_choice("feature_selection", self.feature_selection, tuple(SELECTIONS))
        by_name: dict[str, Callable[[Call], Surrogates]] = {
            "limit": LimitEngine(kind, selection, self._verbose),
            "lime": SamplingEngine(kind, self.base, selection, self._seeds.lime),
        }
        return _Engines(self.random_state, self.feature_selection, self.base, by_name)

    def _override(self, owner: type, method: str, draw: Callable[[], PerturbedRows]) -> Override | None:
        """The user's own ``method`` in place of that of lime's explainer ``owner``; None without one."""
        function = getattr(getattr(self, method), "__func__", None)
        if function is getattr(owner, method):
            return None
        return Override(f"your own {method.removeprefix(f'_{owner.__name__}')}", draw)

    def _current_engines(self) -> _Engines:
        """The engines for the attributes as they are now."""
        engines = self._engines
        if self.random_state is not engines.random_state:
            self._is_seeded = True
            self._seeds = self._drawn_seeds()
            self._engines = self._made_engines(self._kind.with_seed(self._seeds.limit))
        elif self.base is not engines.base or self.feature_selection != engines.selection:
            self._engines = self._made_engines(self._kind)
        return self._engines

    def _rebound(self) -> dict[str, bool]:
        """Return which parts of the fit the user may replace, which the limit does not cover, and whether."""
        own_base = type(self.base) is not LimeBase
        return {
            type(self.base).__name__: own_base,
            "base.kernel_fn": not own_base and self.base.kernel_fn is not self._weigh,
        }

    @one_blas_thread()
    def _answer(self, call: Call, top_labels: int | None) -> dict[str, Any]:
        """Options of lime's result object: surrogates, the engine, and why, if it was not the one chosen."""
        name, reason = engine_name(self.engine), ""
        engines = self._current_engines().by_name
        only_sampled = {
            "kernel": self._kernel is not None,
            "model_regressor": call.regressor is not None,
            "distance_metric": call.metric != self._kind.metric,
            **self._rebound(),
            **({} if call.override is None else {call.override.name: True}),
        } | self._kind.only_sampled(call)
        used = [option for option, is_used in only_sampled.items() if is_used]
        if name == "limit" and used:
            name, reason = "lime", f"only lime's sampling supports {', '.join(used)}"
        options = {"random_state": self.random_state, "engine": (name, reason), "top": bool(top_labels)}
        return {"surrogates": engines[name](call), **options}

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
            return [int(k) for k in np.argsort(prediction)[::-1][: check_count("top_labels", top)]]
        wanted: list[Any] = [labels] if isinstance(labels, int | np.integer | str) else list(labels)
        if not wanted or any(k not in range(len(prediction)) for k in wanted):
            raise InputError(
                f"labels={wanted!r}: predict_fn answers {len(prediction)} numbers a row, "
                f"0 to {len(prediction) - 1}"
            )
        return [int(k) for k in dict.fromkeys(wanted)]

    def _classes(self, k: int) -> list[Any] | None:
        """Names of a classifier's k classes, their numbers unless the user names them."""
        if self.mode == "regression":
            return None
        numbers = [str(i) for i in range(k)]
        names = numbers if self.class_names is None else list(self.class_names)
        if len(names) != k:
            object_to(
                f"class_names has {len(names)} names, but predict_fn answers {k} numbers a row",
                "pass one name a column",
                "classes without a name are called by their position",
            )
        return [*names[:k], *numbers[len(names) :]]
