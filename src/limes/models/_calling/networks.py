"""Networks: modules of torch, and ONNX sessions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from threading import RLock, get_ident
from typing import Any

import numpy as np

from limes._arrays import are_probabilities
from limes.exceptions import InputError, ModelError
from limes.models._identity import qualified_name


def is_module(model: Any) -> bool:
    return any(qualified_name(kind) == "torch.Module" for kind in type(model).__mro__)


def torch_module(model: Any) -> Callable[[Any], Any]:
    """A network on numbers: evaluated on the network's device and in its precision, without gradients."""
    torch = import_module("torch")

    def predict(table: Any) -> Any:
        weight = next(model.parameters(), None)
        # a tensor shares its memory with an array, which torch wants to be writable: pandas' need not be
        rows = torch.as_tensor(table if torch.is_tensor(table) else np.require(table, np.float64, ["W"]))
        rows = rows.to(torch.float32) if weight is None else rows.to(weight.device, weight.dtype)
        with evaluating(model), torch.inference_mode():
            return _as_arrays(model(rows))

    return predict


def _as_arrays(answer: Any) -> Any:
    """Return what a module returned, as an array, or a mapping of arrays by the names of its heads.

    Of a tuple the first part counts, and of a mapping with logits, as transformers returns, these.
    """
    if isinstance(answer, tuple | list) and answer:
        return _as_arrays(answer[0])
    if isinstance(answer, Mapping) and answer:
        if "logits" in answer:
            return _as_arrays(answer["logits"])
        return {name: _as_arrays(part) for name, part in answer.items()}
    return one_column(answer.cpu().double().numpy())


def onnx_session(model: Any) -> Callable[[Any], Any]:
    """A session with one input of numbers, or an input for each column; its last output of numbers.

    That of a classifier may be a mapping {label: probability} a row, as skl2onnx writes it (ZipMap).
    """
    inputs, outputs = model.get_inputs(), model.get_outputs()
    numeric = [output.name for output in outputs if "float" in output.type or "double" in output.type]
    if not numeric:
        raise ModelError(
            f"the ONNX model has no output of numbers, but {[output.type for output in outputs]}: convert it "
            "with probabilities"
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
        return one_column(_in_parts(lambda part: model.run(numeric[-1:], part)[0], feed, inputs[0].shape))

    return predict


def probabilities(model: Any) -> Callable[[Any], Any]:
    """Probabilities of a network of logits: the logistic function of one, the softmax of several."""
    is_torch = is_module(model)
    predict = torch_module(model) if is_torch else onnx_session(model)
    already = InputError(
        f"{type(model).__name__} answers probabilities already: leave output='probability' out"
    )
    if is_torch and type([*model.modules()][-1]).__name__ == "Sigmoid":
        raise already

    def probable(table: Any) -> Any:
        from scipy.special import expit, softmax

        logits = predict(table)
        if isinstance(logits, Mapping):
            raise InputError(f"the network has the heads {[*logits]}: pass a function of one of them")
        if isinstance(logits, list) or (np.ndim(logits) == 2 and are_probabilities(logits)):
            raise already
        return expit(logits) if np.ndim(logits) == 1 else softmax(logits, axis=1)

    return probable


ONNX_TYPES: Mapping[str, Any] = {
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(string)": np.str_,
}


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
    if isinstance(parts[0], list):
        return [answer for part in parts for answer in part][:rows]
    return np.concatenate(parts)[:rows]


def one_column(predictions: Any) -> Any:
    """Drop the axis of one output: networks often return (n, 1)."""
    return predictions[:, 0] if np.shape(predictions)[1:] == (1,) else predictions


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
    """Modules in use, by identity, as long as a thread calls them.

    In training mode dropout and batch statistics make answers random. A mode is a flag of the module, one for
    all threads: the first thread that calls a module puts it into evaluation mode, and the last one restores
    it. Submodules are counted one by one: two networks may share some, and a user may have frozen others.
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
        with self._lock:
            for module in modules:
                self._in_use[id(module)].entries[get_ident()] -= 1
            self._restore([self._in_use[id(module)] for module in modules])

    def keep_this_thread(self) -> None:
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
            inner = (self._in_use.get(id(part)) for part in module.modules())
            if all(entry is None or entry.is_free for entry in inner):
                module.train(was_training)  # may be overridden; sets all inner modules, whose turn comes next
            else:
                module.training = was_training  # another thread calls an inner module: leave that alone
        for entry in free:
            self._in_use.pop(id(entry.module), None)


_modes = _Modes()


@contextmanager
def evaluating(network: Any) -> Iterator[None]:
    """Call a network in evaluation mode; afterwards every submodule has the mode that it had before.

    Threads may overlap, and contexts may be nested. Objects that are no modules of torch are left alone.
    """
    if not is_module(network):
        yield
        return
    modules = _modes.enter(network)
    try:
        yield
    finally:
        _modes.leave(modules)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_modes.keep_this_thread)
