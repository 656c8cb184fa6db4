"""Networks: modules of torch, ONNX sessions, and Hugging Face's transformers as estimators.

Nothing of transformers is imported. A pipeline returns dicts of labels and scores, a network logits: both
become (n, labels), in the order of ``config.id2label``. What is put on the logits follows transformers
(`function_of`). Heads of probabilities have ``predict_proba``, heads of amounts, as regressions are,
``predict`` alone.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from threading import RLock, get_ident
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError, ModelError
from limes.models._identity import qualified_name

# Inputs in one pass of a network: memory grows with them
_BATCH = 32
# Larger numbers are not lengths: tokenizers without a limit report 10^30
_LONGEST = 10**9
# What transformers calls the functions that it puts on logits
_NONE, _SIGMOID, _SOFTMAX = "none", "sigmoid", "softmax"
# Labels that transformers makes up
_NO_NAME = re.compile(r"LABEL_\d+")


def adapted(model: Any) -> Any:
    """A pipeline, or a pair (network, tokenizer or image processor), as an estimator; others as they are."""
    if isinstance(model, tuple) and len(model) == 2 and hasattr(model[0], "config"):
        network, tokenizer = model
        if not callable(tokenizer):
            raise InputError(
                f"a pair is (network, tokenizer), got {type(tokenizer).__name__} for the tokenizer"
            )
        scores, applied = network_scores, getattr(network.config, "function_to_apply", None)
    elif any(qualified_name(kind) == "transformers.Pipeline" for kind in type(model).__mro__):
        network, tokenizer = model.model, getattr(model, "tokenizer", None)
        scores = partial(pipeline_scores, model)
        applied = getattr(model, "_postprocess_params", {}).get("function_to_apply")
    else:
        return model
    labels = getattr(network.config, "id2label", None)
    if not isinstance(labels, Mapping) or not labels:
        raise InputError(f"{type(network).__name__} has no labels (config.id2label): pass a classifier")
    function = function_of(network.config, applied)
    names = tuple(str(labels[k]) for k in sorted(labels))
    return (Amounts if function == _NONE else Classifier)(network, tokenizer, names, function, scores)


def function_of(config: Any, applied: Any) -> str:
    """What is put on the logits of a network: "none", "sigmoid" or "softmax", as transformers does."""
    problem = getattr(config, "problem_type", None)
    if applied is not None:
        name = str(getattr(applied, "value", applied)).lower()  # pipelines hold a member of an enumeration
        if name not in (_NONE, _SIGMOID, _SOFTMAX):
            raise InputError(f"function_to_apply={name!r}: use 'none', 'sigmoid' or 'softmax'")
        return name
    if problem == "regression":
        return _NONE
    # the softmax of one logit is 1 whatever the network answers
    one_by_one = problem == "multi_label_classification" or len(config.id2label) == 1
    return _SIGMOID if one_by_one else _SOFTMAX


class Estimator:
    """A network of ``from_pretrained`` with its labels, and its tokenizer or image processor, or None.

    ``scores`` maps (estimator, n inputs) to the numbers of each label, (n, labels), ``function`` applied.
    """

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        labels: tuple[str, ...],
        function: str,
        scores: Callable[[Estimator, Any], Floats],
    ) -> None:
        self.network, self.tokenizer, self.labels, self.function = network, tokenizer, labels, function
        self._scores = scores
        self.__name__ = type(network).__name__  # for messages

    @property
    def mask_token(self) -> str | None:
        return getattr(self.tokenizer, "mask_token", None)

    @cached_property
    def longest(self) -> int | None:
        """Largest number of tokens that the network reads; None if it states none."""
        lengths = (
            getattr(self.tokenizer, "model_max_length", None),
            getattr(self.network.config, "max_position_embeddings", None),
        )
        return min((int(n) for n in lengths if n is not None and 0 < n < _LONGEST), default=None)

    @property
    def cut(self) -> dict[str, Any]:
        return {} if self.longest is None else {"truncation": True, "max_length": self.longest}

    def truncation(self, text: str) -> str:
        if self.longest is None or (count := len(self.tokenizer(text)["input_ids"])) <= self.longest:
            return ""
        return (
            f"the model reads the first {self.longest} of {count} tokens alone: words behind them count only "
            "where earlier ones are deleted, and not at all behind a mask; explain a part of the text"
        )


class Classifier(Estimator):
    """Probabilities of labels, which are ``multilabel_`` if they do not exclude each other."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.classes_ = np.array(self.labels)
        self.multilabel_ = self.function == _SIGMOID

    def predict(self, inputs: Any) -> Any:
        return self.classes_[np.argmax(self.predict_proba(inputs), axis=1)]

    def predict_proba(self, inputs: Any) -> Floats:
        return self._scores(self, inputs)


class Amounts(Estimator):
    """Numbers that are no probabilities: of regressions, and logits where a user wants these."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        anonymous = len(self.labels) == 1 and _NO_NAME.fullmatch(self.labels[0])
        self.output_names_ = ("output",) if anonymous else self.labels

    def predict(self, inputs: Any) -> Floats:
        return self._scores(self, inputs)


def pipeline_scores(pipeline: Any, estimator: Estimator, inputs: Any) -> Floats:
    of_texts = estimator.tokenizer is not None
    items = list(inputs) if of_texts else [_picture(image) for image in inputs]
    # None means all labels of a text, and five of an image
    options = {"top_k": None, **estimator.cut} if of_texts else {"top_k": len(estimator.labels)}
    can_pad = not of_texts or getattr(estimator.tokenizer, "pad_token", None) is not None
    # None is one input at a time; a pipeline that was made with another size keeps it
    if can_pad and getattr(pipeline, "_batch_size", 1) is None:
        options["batch_size"] = _BATCH
    order = _by_length(items) if of_texts else range(len(items))
    with evaluating(estimator.network):
        answers = list(pipeline([items[i] for i in order], **options))  # it may answer as it is read
    column = {label: k for k, label in enumerate(estimator.labels)}
    scores = np.full((len(items), len(column)), np.nan)
    for i, answer in zip(order, answers, strict=True):
        row = scores[i]
        for one in answer:
            if one["label"] not in column:
                raise InputError(f"the pipeline answers {one['label']!r}, which is no label of its network")
            row[column[one["label"]]] = one["score"]
    return scores


def _by_length(texts: Sequence[str]) -> list[int]:
    """Positions of texts by their length: those of a batch are padded to the longest."""
    return sorted(range(len(texts)), key=lambda i: len(texts[i]))


def network_scores(estimator: Estimator, inputs: Any) -> Floats:
    """The scores of a network with its tokenizer, or with its image processor."""
    torch = import_module("torch")
    network, tokenizer, labels = estimator.network, estimator.tokenizer, len(estimator.labels)
    of_texts = hasattr(tokenizer, "convert_tokens_to_ids")
    items = list(inputs) if of_texts else [_picture(image) for image in inputs]
    order, parts = _by_length(items) if of_texts else [*range(len(items))], []
    for start in range(0, len(items), _BATCH):
        some = [items[i] for i in order[start : start + _BATCH]]
        if of_texts:
            batch = tokenizer(some, padding=True, return_tensors="pt", **estimator.cut)
        else:
            batch = tokenizer(images=some, return_tensors="pt")
        with evaluating(network), torch.inference_mode():
            parts.append(network(**batch.to(network.device)).logits.double().cpu().numpy())
    logits: Floats = np.concatenate(parts)[np.argsort(order)]
    if logits.shape[1:] != (labels,):
        raise ModelError(
            f"{type(network).__name__} returned logits of shape {logits.shape} for {len(logits)} "
            f"inputs and {labels} labels: pass a network that classifies whole inputs"
        )
    if estimator.function == _NONE:
        return logits
    from scipy.special import expit, softmax

    return np.asarray(expit(logits) if estimator.function == _SIGMOID else softmax(logits, axis=1))


def _picture(image: Any) -> Any:
    """An array as the image that processors take: bytes of RGB."""
    from PIL import Image

    pixels = np.asarray(image)
    if pixels.dtype != np.uint8:
        raise InputError(f"networks of transformers take images of uint8, 0 to 255; got {pixels.dtype}")
    return Image.fromarray(pixels).convert("RGB")


# -- modules of torch and ONNX sessions --------------------------------------------------------------------


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
    """What a module returned, as an array, or a mapping of arrays by the names of its heads.

    Of a tuple the first part counts, and of a mapping with logits, as transformers returns, these.
    """
    if isinstance(answer, tuple | list) and answer:
        return _as_arrays(answer[0])
    if isinstance(answer, Mapping) and answer:
        if "logits" in answer:
            return _as_arrays(answer["logits"])
        return {name: _as_arrays(part) for name, part in answer.items()}
    return one_column(answer.double().cpu().numpy())


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
