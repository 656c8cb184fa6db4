"""Hugging Face's transformers as estimators: pipelines, and networks with a tokenizer or an image processor.

Nothing of transformers is imported. A pipeline returns dicts of labels and scores, a network logits: both
become (n, labels), in the order of ``config.id2label``, or of the labels that a pipeline was given. What is
put on the logits follows transformers (`function_of`). Heads of probabilities have ``predict_proba``, heads
of amounts, as regressions are, ``predict`` alone. Inputs are texts, images, or a mapping of two lists of
texts, of which each pair is one input. A head that gives no number to each label is refused by its name.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._warnings import sentence
from limes.exceptions import InputError, ModelError
from limes.models._calling.networks import evaluating
from limes.models._identity import qualified_name

# Inputs in one pass of a network: memory grows with them
_BATCH = 32
# On a GPU short texts fill a pass up to this many tokens: a pass of 32 is over before the next is prepared
_TOKENS_ON_GPU = 2**15
# Larger numbers are not lengths: tokenizers without a limit report 10^30
_LONGEST = 10**9
# What transformers calls the functions that it puts on logits
_NONE, _SIGMOID, _SOFTMAX = "none", "sigmoid", "softmax"
# Labels that transformers makes up
_NO_NAME = re.compile(r"LABEL_\d+")
# What pipelines call the two texts of a pair
_PAIR = ("text", "text_pair")

# Tasks of pipelines that give a number to each label, of the network or of those in candidate_labels
_CLASSIFYING = ("text-classification", "sentiment-analysis", "image-classification")
_ZERO_SHOT = "zero-shot-classification"
_ZERO_SHOT_IMAGES = "zero-shot-image-classification"
# What other heads do, by the ends of their classes' names and by tasks, and a number of theirs
_TOKENS = "labels each word", "the score of one label at one word"
_SPANS = (
    "answers with a part of a text",
    "the probability of one answer, where CompositeExplainer(function, {'question': 'text', 'context': "
    "'text'}) explains both texts",
)
_FILLED = "fills in masked words", "the probability of one word at a mask that the function adds"
_WRITTEN = (
    "writes texts",
    "the probability of one continuation; limes.PromptExplainer explains causal language models by the parts "
    "of their prompts",
)
_BOTH_TEXTS = "where CompositeExplainer(function, {'first': 'text', 'second': 'text'}) explains both"
_FOLLOWS = "tells whether one text follows another", f"the probability that it does, {_BOTH_TEXTS}"
_CHOICES = "compares several texts", f"the probability of one of two, {_BOTH_TEXTS}"
_PIXELS = "answers pixel by pixel", "the mean over a part of the photograph"
_OBJECTS = "finds objects", "the largest score of one kind of object"
_SOUND = "takes sound", "the score of one label, which SeriesExplainer(function) explains"
_OTHER_HEADS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("ForTokenClassification", "token-classification"), _TOKENS),
    **dict.fromkeys(("ForQuestionAnswering", "question-answering"), _SPANS),
    **dict.fromkeys(("ForMaskedLM", "fill-mask"), _FILLED),
    "ForNextSentencePrediction": _FOLLOWS,
    "ForMultipleChoice": _CHOICES,
    **dict.fromkeys(("ForObjectDetection", "object-detection", "ForKeypointDetection"), _OBJECTS),
    **dict.fromkeys(("Segmentation", "ForDepthEstimation", "ForMaskedImageModeling"), _PIXELS),
    **dict.fromkeys(("image-segmentation", "depth-estimation", "ForImageToImage"), _PIXELS),
    **dict.fromkeys(("ForAudioClassification", "ForCTC", "audio-classification"), _SOUND),
    **dict.fromkeys(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration"), _WRITTEN),
    **dict.fromkeys(("text-generation", "text2text-generation", "summarization", "translation"), _WRITTEN),
}


def adapted(model: Any) -> Any:
    """A pipeline, or a pair (network, tokenizer or image processor), as an estimator; others as they are."""
    if isinstance(model, tuple) and len(model) == 2 and hasattr(model[0], "config"):
        return _of_pair(*model)
    if any(qualified_name(kind) == "transformers.Pipeline" for kind in type(model).__mro__):
        return _of_pipeline(model)
    refuse_parts(model)
    return model


# Attributes of tokenizers and image processors, and the libraries that these are of
_PREPARES = ("convert_tokens_to_ids", "token_to_id", "image_mean")
_LIBRARIES = {"transformers", "tokenizers"}


def refuse_parts(model: Any) -> None:
    """Raise for a network and its tokenizer in another form than a pair, and for one of them by its name."""
    if isinstance(model, str):
        raise InputError(
            f"model={model!r} is a text: pass a fitted model or a callable, or load what the text names, "
            "such as by transformers.pipeline(task, ...)"
        )
    container = [*model.values()] if isinstance(model, Mapping) else model
    if isinstance(container, list | tuple):
        if any(_prepares(part) or hasattr(part, "config") for part in container):
            got = ", ".join(type(part).__name__ for part in container)
            raise InputError(f"model is a {type(model).__name__} of {got}: {_AS_PAIR}")
    elif _prepares(model) and any(
        kind.__module__.split(".")[0] in _LIBRARIES for kind in type(model).__mro__
    ):
        raise InputError(f"{type(model).__name__} prepares inputs and gives no answers: {_AS_PAIR}")


_AS_PAIR = "pass the tuple (network, tokenizer), the network first, or a pipeline of both"


def _prepares(part: Any) -> bool:
    return any(hasattr(part, name) for name in _PREPARES)


def _of_pair(network: Any, tokenizer: Any) -> Estimator:
    if not callable(tokenizer):
        raise InputError(f"a pair is (network, tokenizer), got {type(tokenizer).__name__} for the tokenizer")
    _refuse_head(network)
    labels, texts = _labels_of(network), 2 if hasattr(tokenizer, "convert_tokens_to_ids") else 0
    function = function_of(network.config, getattr(network.config, "function_to_apply", None))
    return _estimator(network, tokenizer, labels, function, network_scores, texts)


def _of_pipeline(pipeline: Any) -> Estimator:
    network, tokenizer = pipeline.model, getattr(pipeline, "tokenizer", None)
    # a pipeline that is made by its class has no task
    task = getattr(pipeline, "task", "") or _task_of(type(pipeline).__name__)
    prepared, finished = (getattr(pipeline, f"_{step}_params", {}) for step in ("preprocess", "postprocess"))
    if task in _CLASSIFYING:
        _refuse_head(network)
        labels, texts = _labels_of(network), 0 if tokenizer is None else 2
        function = function_of(network.config, finished.get("function_to_apply"))
        # None means all labels of a text, and five of an image
        options: dict[str, Any] = {"top_k": None if texts else len(labels)}
    elif task in (_ZERO_SHOT, _ZERO_SHOT_IMAGES):
        if not prepared.get("candidate_labels"):
            raise InputError(
                f"the {task} pipeline has no candidate_labels, which are its outputs: pass them where it is "
                f"made, pipeline({task!r}, ..., candidate_labels=[...])"
            )
        labels, texts = tuple(map(str, prepared["candidate_labels"])), int(task == _ZERO_SHOT)
        one_by_one = len(labels) == 1 if texts else "siglip" in network.config.model_type
        function = _SIGMOID if one_by_one or finished.get("multi_label") else _SOFTMAX
        # a pipeline of images asks for them in each call
        options = {} if texts else {"candidate_labels": list(labels)}
    else:
        raise _other_head(f"the {task} pipeline", next((kind for kind in _OTHER_HEADS if kind in task), ""))
    return _estimator(
        network, tokenizer, labels, function, partial(pipeline_scores, pipeline, options), texts
    )


def _task_of(name: str) -> str:
    """The task of a pipeline's class: "zero-shot-classification" of ZeroShotClassificationPipeline."""
    words = re.findall("[A-Z][a-z0-9]*", name.removesuffix("Pipeline"))
    return "-".join(words).lower() or _CLASSIFYING[0]


def _estimator(
    network: Any, tokenizer: Any, labels: tuple[str, ...], function: str, scores: Any, texts: int
) -> Estimator:
    kind = Amounts if function == _NONE else Classifier
    return kind(network, tokenizer, labels, function, scores, texts)


def _refuse_head(network: Any) -> None:
    """Raise for a network with another head than one of labels, by its class."""
    name = type(network).__name__
    other = next((kind for kind in _OTHER_HEADS if name.endswith(kind)), None)
    if other is not None:
        raise _other_head(name, other)


def _other_head(name: str, kind: str) -> InputError:
    does, number = _OTHER_HEADS.get(
        kind, ("gives no number to each of its labels", "the score of one answer")
    )
    return InputError(
        f"{name} {does}: explain a function of a batch of inputs that returns a number each, such as {number}"
    )


def _labels_of(network: Any) -> tuple[str, ...]:
    labels = getattr(network.config, "id2label", None)
    if not isinstance(labels, Mapping) or not labels:
        raise InputError(f"{type(network).__name__} has no labels (config.id2label): pass a classifier")
    return tuple(str(labels[k]) for k in sorted(labels))


def function_of(config: Any, applied: Any) -> str:
    """Return what is put on the logits of a network: "none", "sigmoid" or "softmax", as transformers does."""
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


def longest_read(network: Any, tokenizer: Any) -> int | None:
    """The largest number of tokens that a network reads, or None where neither states one."""
    lengths = (
        getattr(tokenizer, "model_max_length", None),
        getattr(network.config, "max_position_embeddings", None),
    )
    return min((int(n) for n in lengths if n is not None and 0 < n < _LONGEST), default=None)


class Estimator(ABC):
    """A network of ``from_pretrained`` with its labels, and its tokenizer or image processor, or None.

    ``scores`` maps (estimator, n inputs) to the numbers of each label, (n, labels), ``function`` applied. An
    input is one text or, of ``texts`` = 2, two; it is an image where ``texts`` is 0.
    """

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        labels: tuple[str, ...],
        function: str,
        scores: Callable[[Estimator, Any], Floats],
        texts: int,
    ) -> None:
        self.network, self.tokenizer, self.labels, self.function = network, tokenizer, labels, function
        self._scores, self.texts = scores, texts
        self.beside: tuple[str, ...] = ()  # the longest text that a pipeline puts beside each input
        self.__name__ = type(network).__name__  # for messages

    @abstractmethod
    def predict(self, inputs: Any) -> Any:
        """The likeliest label of each of n inputs, or their amounts."""

    @property
    def mask_token(self) -> str | None:
        return getattr(self.tokenizer, "mask_token", None)

    @cached_property
    def longest(self) -> int | None:
        """Largest number of tokens that the network reads; None if it states none."""
        return longest_read(self.network, self.tokenizer)

    @property
    def cut(self) -> dict[str, Any]:
        return {} if self.longest is None else {"truncation": True, "max_length": self.longest}

    def truncation(self, *texts: str) -> str:
        """A remark on what the network does not read of a text, or of both of a pair; "" if it reads all."""
        if self.longest is None or (count := self._tokens(*texts)) <= self.longest:
            return ""
        return sentence("input", "tokens", longest=self.longest, count=count)

    def _tokens(self, *texts: str) -> int:
        return len(self.tokenizer(*texts, *self.beside)["input_ids"])

    def inputs_in_a_pass(self, longest: tuple[str, ...]) -> int:
        on_processor = str(self.network.device).startswith("cpu")
        if on_processor or not self.texts:
            return _BATCH
        return max(_BATCH, _TOKENS_ON_GPU // max(1, self._tokens(*longest)))

    def inputs_of(self, batch: Any) -> list[Any]:
        """The inputs of a batch one by one: texts, images, or tuples of the parts of a mapping of batches."""
        parts = batch if isinstance(batch, Mapping) else {"": batch}
        for name, part in parts.items():
            if isinstance(part, list) != bool(self.texts):
                takes = "texts" if self.texts else "images"
                raise InputError(f"{self.__name__} takes {takes}, and {name!r} has none: leave that part out")
        if len(parts) > max(self.texts, 1):
            takes = ("one image", "one text", "a text or two")[self.texts]
            raise InputError(f"{self.__name__} takes {takes}, and {[*parts]} are {len(parts)} parts")
        return list(zip(*parts.values(), strict=True)) if self.texts else list(*parts.values())


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


def _in_order(estimator: Estimator, items: Sequence[Any]) -> list[int]:
    """Positions of inputs in the order in which they are asked, texts by length: a batch is padded."""
    order = range(len(items))
    return sorted(order, key=lambda i: sum(map(len, items[i]))) if estimator.texts else [*order]


def pipeline_scores(pipeline: Any, options: Mapping[str, Any], estimator: Estimator, batch: Any) -> Floats:
    items = estimator.inputs_of(batch)
    order = _in_order(estimator, items)
    can_pad = not estimator.texts or getattr(estimator.tokenizer, "pad_token", None) is not None
    inputs = [_for_pipeline(items[i]) if estimator.texts else _picture(items[i]) for i in order]
    if estimator.texts == len(_PAIR):  # a zero-shot pipeline cuts texts itself
        options = {**options, **estimator.cut}
    # None is one input at a time; a pipeline that was made with another size keeps it
    if can_pad and getattr(pipeline, "_batch_size", 1) is None:
        options = {**options, "batch_size": _BATCH}
    with evaluating(estimator.network):
        answers = list(pipeline(inputs, **options))  # it may answer as it is read
    column = {label: k for k, label in enumerate(estimator.labels)}
    scores = np.full((len(items), len(column)), np.nan)
    for i, answer in zip(order, answers, strict=True):
        for label, score in _pairs_of(answer):
            if label not in column:
                raise InputError(f"the pipeline answers {label!r}, which is no label of its network")
            scores[i, column[label]] = score
    return scores


def _for_pipeline(texts: tuple[str, ...]) -> Any:
    return texts[0] if len(texts) == 1 else dict(zip(_PAIR, texts, strict=True))


def _pairs_of(answer: Any) -> Any:
    """Labels with their scores, which a zero-shot pipeline has in two lists."""
    if isinstance(answer, Mapping):
        return zip(answer["labels"], answer["scores"], strict=True)
    return ((one["label"], one["score"]) for one in answer)


def network_scores(estimator: Estimator, batch: Any) -> Floats:
    """The scores of a network with its tokenizer, or with its image processor."""
    torch = import_module("torch")
    network, tokenizer, labels = estimator.network, estimator.tokenizer, len(estimator.labels)
    items, parts = estimator.inputs_of(batch), []
    order = _in_order(estimator, items)
    size = estimator.inputs_in_a_pass(items[order[-1]])
    for start in range(0, len(items), size):
        some = [items[i] for i in order[start : start + size]]
        if estimator.texts:
            texts = map(list, zip(*some, strict=True))
            inputs = tokenizer(*texts, padding=True, return_tensors="pt", **estimator.cut).to(network.device)
        else:
            # pixels in half precision where the network is
            pictures = tokenizer(images=[*map(_picture, some)], return_tensors="pt")
            inputs = pictures.to(network.device, network.dtype)
        with evaluating(network), torch.inference_mode():
            answer = getattr(network(**inputs), "logits", None)
        if answer is None:
            raise ModelError(f"{type(network).__name__} returns no logits: pass a network that classifies")
        parts.append(answer.cpu().double().numpy())  # GPUs of Apple have no doubles
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


# What white is in pixels that are no bytes; floats above 1 are bytes, too
_WHITE = {"bool": 1, "uint16": 65535}


def as_bytes(shown: Any, *others: Any) -> tuple[Any, ...]:
    """An image, and others by its scale, as processors take them: bytes, of which 255 is white."""
    low, high = float(shown.min()), float(shown.max())
    white = 1 if shown.dtype.kind == "f" and high <= 1 else _WHITE.get(shown.dtype.name, 255)
    if low < 0 or high > white:
        raise InputError(
            f"networks of transformers take images from 0 to 255, or floats from 0 to 1, and this one has "
            f"numbers from {low:.6g} to {high:.6g}: pass the unscaled image, because the image processor "
            "scales it"
        )
    return tuple(
        image if image.dtype == np.uint8 else np.rint(np.clip(image * (255 / white), 0, 255)).astype(np.uint8)
        for image in (shown, *others)
    )


def _picture(image: Any) -> Any:
    """An array as the image that processors take: bytes of RGB."""
    from PIL import Image

    pixels = np.asarray(image)
    if pixels.dtype != np.uint8:
        raise InputError(
            f"networks of transformers take images of uint8, 0 to 255; got {pixels.dtype}: leave preprocess "
            "out, since their image processor prepares images"
        )
    return Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels).convert("RGB")
