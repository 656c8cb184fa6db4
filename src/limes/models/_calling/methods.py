"""Methods of a model, and the callables behind them.

scikit-learn has three methods: predict, predict_proba, decision_function. Boosting libraries have the last
one under other names, and one of them needs its own kind of table; networks are called with tensors. The
callable is looked up by the class or a base of it, as readers are, so that no library is imported for it:
``METHODS`` of the library's reader (``readers/__init__.py``), or the table below.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from threading import RLock, get_ident
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import ModelError
from limes.models._identity import qualified_name
from limes.models.readers import LIBRARIES

MEMBERSHIP = "membership"
# table -> predictions
Predict = Callable[[Any], Any]
# (class or a base of it, method) -> find(model), None if it has none
Methods = Mapping[tuple[str, str], Callable[[Any], Predict | None]]


def prediction_method(model: Any, method: str) -> Predict | None:
    """Return table -> predictions of a model's method, "" for the model itself; None if it has none."""
    if method == MEMBERSHIP:
        return membership(model)
    for kind in type(model).__mro__:
        name = qualified_name(kind)
        find = _declared(name, "METHODS", _METHODS).get((name, method))
        if find is not None:
            predict: Predict | None = find(model)
            return predict
        if method in vars(kind):
            break  # a subclass that overrides the method
    if not method:
        return model if callable(model) else None
    return getattr(model, method, None)


def direct_question(model: Any, method: str) -> Predict | None:
    """Return a function that predicts like a method, by the model's booster; None if that saves nothing."""
    name = qualified_name(type(model))
    find = _declared(name, "DIRECT", {}).get((name, method))
    direct: Predict | None = None if find is None else find(model, method)
    return direct


def _declared(name: str, table: str, default: Mapping[tuple[str, str], Any]) -> Mapping[tuple[str, str], Any]:
    """A table of the reader's module of a class's library, or the one for other libraries."""
    library = name.split(".")[0]
    if library not in LIBRARIES:
        return default
    return getattr(import_module(f"limes.models.readers.{library}"), table, {})


def _torch_module(model: Any) -> Predict:
    """A network on numbers: evaluated on the network's device and in its precision, without gradients."""
    torch = import_module("torch")

    def predict(table: Any) -> Any:
        weight = next(model.parameters(), None)
        # a tensor shares its memory with an array, which torch wants to be writable: pandas' need not be
        rows = torch.as_tensor(table if torch.is_tensor(table) else np.require(table, np.float64, ["W"]))
        rows = rows.to(torch.float32) if weight is None else rows.to(weight.device, weight.dtype)
        with evaluating(model), torch.inference_mode():
            return _one_column(model(rows).double().cpu().numpy())

    return predict


def _onnx_session(model: Any) -> Predict:
    """A session with one input of numbers, or an input for each column; its last output of numbers."""
    inputs, outputs = model.get_inputs(), model.get_outputs()
    numeric = [output.name for output in outputs if "float" in output.type or "double" in output.type]
    if not numeric:
        raise ModelError(
            f"the ONNX model has no output of numbers, but {[output.type for output in outputs]}: convert it "
            "with probabilities as a tensor (zipmap=False)"
        )

    def predict(table: Any) -> Any:
        rows = np.asarray(table)
        columns = list(rows.T[..., None]) if len(inputs) > 1 else [rows]
        if len(columns) != len(inputs):
            raise ValueError(f"the ONNX model has {len(inputs)} inputs, the table {len(columns)} columns")
        feed = {
            entry.name: column.astype(ONNX_TYPES.get(entry.type, np.float32), copy=False)
            for entry, column in zip(inputs, columns, strict=True)
        }
        return _one_column(_in_parts(partial(_run, model, numeric[-1]), feed, inputs[0].shape))

    return predict


ONNX_TYPES: Mapping[str, Any] = {
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(string)": np.str_,
}


def _run(session: Any, output: str, feed: Mapping[str, Any]) -> Any:
    return session.run([output], feed)[0]


def _in_parts(run: Callable[[Mapping[str, Any]], Any], feed: Mapping[str, Any], shape: Any) -> Any:
    """Run in parts if the model accepts batches of one size only; the last part repeats its last row."""
    size = shape[0] if shape and isinstance(shape[0], int) else 0
    rows = len(next(iter(feed.values())))
    if size < 1 or size == rows:
        return run(feed)
    parts = []
    for start in range(0, rows, size):
        positions = np.minimum(np.arange(start, start + size), rows - 1)
        parts.append(run({name: column[positions] for name, column in feed.items()}))
    return np.concatenate(parts)[:rows]


def _one_column(predictions: Any) -> Any:
    """Drop the axis of one output: networks often return (n, 1)."""
    single = predictions.ndim == 2 and predictions.shape[1] == 1
    return predictions[:, 0] if single else predictions


def _pipeline_margin(model: Any) -> Predict | None:
    method: Predict | None = getattr(model, "decision_function", None)
    if method is not None or len(model.steps) < 2:
        return method or prediction_method(model.steps[-1][1], "decision_function")
    last = prediction_method(model.steps[-1][1], "decision_function")
    return None if last is None else lambda table: last(model[:-1].transform(table))


def _search_margin(model: Any) -> Predict | None:
    best = getattr(model, "best_estimator_", None)
    return None if best is None else prediction_method(best, "decision_function")


def _log_of_prediction(model: Any) -> Predict:
    """The sum behind a log link; -inf where the prediction is 0 in float64."""

    def predict(table: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(model.predict(table))

    return predict


def has_identity_link(model: Any) -> bool:
    """Return whether a generalised linear model of scikit-learn predicts its margin itself."""
    link = getattr(model, "link", "log")  # only TweedieRegressor has other links
    return bool(link == "identity" or (link == "auto" and model.power <= 0))


def _generalized_margin(model: Any) -> Predict:
    return model.predict if has_identity_link(model) else _log_of_prediction(model)


def _histogram_margin(model: Any) -> Predict:
    return _log_of_prediction(model) if model.loss in ("poisson", "gamma") else model.predict


def _joint_log_likelihood(model: Any) -> Predict:
    """The log odds (n,) of two classes; the joint log-likelihoods (n, k) of several."""

    def predict(table: Any) -> Any:
        joint = np.asarray(model.predict_joint_log_proba(table))
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    return predict


def _network_margin(model: Any) -> Predict:
    """The sums of the output layer, before the logistic function or the softmax."""
    plain = copy(model)
    plain.out_activation_ = "identity"
    return lambda table: _one_column(np.asarray(plain._forward_pass_fast(table)))  # noqa: SLF001 - without the link


_METHODS: Methods = {
    ("sklearn.Pipeline", "decision_function"): _pipeline_margin,
    ("sklearn.FrozenEstimator", "decision_function"): lambda model: prediction_method(
        model.estimator, "decision_function"
    ),
    ("sklearn.BaseSearchCV", "decision_function"): _search_margin,
    ("sklearn.GammaRegressor", "decision_function"): _generalized_margin,
    ("sklearn.PoissonRegressor", "decision_function"): _generalized_margin,
    ("sklearn.TweedieRegressor", "decision_function"): _generalized_margin,
    ("sklearn.HistGradientBoostingRegressor", "decision_function"): _histogram_margin,
    ("sklearn.BernoulliNB", "decision_function"): _joint_log_likelihood,
    ("sklearn.ComplementNB", "decision_function"): _joint_log_likelihood,
    ("sklearn.GaussianNB", "decision_function"): _joint_log_likelihood,
    ("sklearn.MultinomialNB", "decision_function"): _joint_log_likelihood,
    ("sklearn.MLPClassifier", "decision_function"): _network_margin,
    ("torch.Module", ""): _torch_module,
    ("onnxruntime.InferenceSession", ""): _onnx_session,
}


# -- clusters ------------------------------------------------------------------------------------------


# Attributes of composed models with the part that answers
_ANSWERING = ("best_estimator_", "estimator_", "estimator")


def kind_of(model: Any) -> str | None:
    """Return scikit-learn's type of an estimator, such as "clusterer"; None of anything else."""
    kind = getattr(model, "_estimator_type", None)
    if kind is None and hasattr(model, "__sklearn_tags__"):
        try:
            kind = model.__sklearn_tags__().estimator_type
        except (AttributeError, TypeError, ValueError):  # of a class that only looks like an estimator
            return None
    return kind if isinstance(kind, str) else None


def clusters_of(model: Any) -> tuple[Any, ...] | None:
    """Return the numbers of a model's clusters, increasing; None if it has none, or does not list them."""
    if getattr(model, "classes_", None) is not None or not hasattr(model, "predict"):
        return None
    kind, last = kind_of(model), _answering(model)
    if kind == "density_estimator" and hasattr(last, "predict_proba"):
        return tuple(range(len(last.weights_))) if hasattr(last, "weights_") else None
    if kind != "clusterer":
        return None
    centres = getattr(last, "cluster_centers_", None)
    labels = set() if getattr(last, "labels_", None) is None else {*np.unique(last.labels_).tolist()}
    labels |= set() if centres is None else {*range(len(centres))}
    return tuple(sorted(labels)) or None


def _answering(model: Any) -> Any:
    """Return the last step of a pipeline, or the estimator that a search found best."""
    while True:
        parts = [getattr(model, name) for name in _ANSWERING if hasattr(model, name)]
        if isinstance(getattr(model, "steps", None), list) and model.steps:
            parts = [model.steps[-1][1]]
        if not parts:
            return model
        model = parts[0]


def membership(model: Any) -> Callable[[Any], Floats] | None:
    """Return table -> (n, clusters), 1 in the column of the cluster that ``predict`` names."""
    clusters = clusters_of(model)
    if clusters is None:
        return None

    def predict(table: Any) -> Floats:
        of_cluster = np.asarray(model.predict(table))[:, None] == np.array(clusters)
        return np.asarray(of_cluster, dtype=np.float64)

    return predict


# -- evaluation mode of torch's networks -----------------------------------------------------------------
#
# In training mode dropout and batch statistics make answers random. A mode is a flag of the module, one for
# all threads: the first thread that calls a module puts it into evaluation mode, and the last one restores
# it.


@dataclass(eq=False)
class _InUse:
    """A module that threads call: how often each entered it, and its mode before."""

    module: Any
    was_training: bool
    entries: Counter[int] = field(default_factory=Counter)

    @property
    def is_free(self) -> bool:
        return not self.entries.total()


class _Modes:
    """Modules in use, submodules one by one: two networks may share some, and a user may have frozen others.

    Modules are compared by identity, and referred to only as long as a thread calls them.
    """

    def __init__(self) -> None:
        # reentrant: modules may override ``train`` and call an explainer there
        self._lock = RLock()
        self._in_use: dict[int, _InUse] = {}

    def enter(self, network: Any) -> list[Any]:
        """Put a network into evaluation mode; return its modules, which `leave` takes."""
        modules = list(network.modules())
        with self._lock:
            for module in modules:
                entry = self._in_use.setdefault(id(module), _InUse(module, bool(module.training)))
                entry.entries[get_ident()] += 1
            try:
                if any(module.training for module in modules):
                    network.eval()
            except BaseException:
                self.leave(modules)
                raise
        return modules

    def leave(self, modules: list[Any]) -> None:
        """Restore the modes of modules that no thread calls any longer."""
        with self._lock:
            for module in modules:
                self._in_use[id(module)].entries[get_ident()] -= 1
            self._restore([self._in_use[id(module)] for module in modules])

    def keep_this_thread(self) -> None:
        """Forget the other threads of the process that this one was forked from."""
        self._lock, entries = RLock(), list(self._in_use.values())
        for entry in entries:
            entry.entries = Counter({get_ident(): entry.entries[get_ident()]})
        self._restore(entries)

    def _restore(self, entries: list[_InUse]) -> None:
        """Restore free ones of these, parents before their children, and forget them."""
        free = [entry for entry in entries if entry.is_free]
        for module, was_training in ((entry.module, entry.was_training) for entry in free):
            if module.training == was_training:
                continue
            if all(self._is_free(inner) for inner in module.modules()):
                module.train(was_training)  # may be overridden; sets all inner modules, whose turn comes next
            else:
                module.training = was_training  # another thread calls an inner module: leave that alone
        for entry in free:
            self._in_use.pop(id(entry.module), None)

    def _is_free(self, module: Any) -> bool:
        entry = self._in_use.get(id(module))
        return entry is None or entry.is_free


_modes = _Modes()


@contextmanager
def evaluating(network: Any) -> Iterator[None]:
    """Call a network in evaluation mode; afterwards every submodule has the mode that it had before.

    Threads may overlap, and contexts may be nested. Objects that are no modules of torch are left alone.
    """
    if not any(qualified_name(kind) == "torch.Module" for kind in type(network).__mro__):
        yield
        return
    modules = _modes.enter(network)
    try:
        yield
    finally:
        _modes.leave(modules)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_modes.keep_this_thread)
