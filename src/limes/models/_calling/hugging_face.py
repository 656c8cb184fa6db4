"""Classifiers of Hugging Face's transformers, as the estimators that explainers call.

A pipeline returns dicts of labels and scores, a network logits: both become ``predict_proba`` with one
column for each label, in the order of ``config.id2label``. Nothing of transformers is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.models._calling.evaluating import evaluating
from limes.models._identity import qualified_name

# Larger numbers are not lengths: tokenizers without a limit report 10^30
_LONGEST = 10**9


def adapted(model: Any) -> Any:
    """Return a pipeline, or a pair (network, tokenizer or image processor), as an estimator; else the model.

    Raises
    ------
    InputError
        If it is a pipeline or pair that does not classify.
    """
    if isinstance(model, tuple) and len(model) == 2 and hasattr(model[0], "config"):
        return NetworkClassifier(*model)
    if any(qualified_name(kind) == "transformers.Pipeline" for kind in type(model).__mro__):
        return PipelineClassifier(model)
    return model


class HuggingFace:
    """Labels of a network of transformers, and the length of text that it reads."""

    def __init__(self, network: Any, tokenizer: Any) -> None:
        labels = getattr(network.config, "id2label", None)
        if not isinstance(labels, Mapping) or not labels:
            raise InputError(f"{type(network).__name__} has no labels (config.id2label): pass a classifier")
        self._network, self._tokenizer = network, tokenizer
        self.classes_ = np.array([str(labels[k]) for k in sorted(labels)])

    def predict(self, inputs: Any) -> Any:
        """Return the most likely label of each input, (n,)."""
        return self.classes_[np.argmax(self.predict_proba(inputs), axis=1)]

    def predict_proba(self, inputs: Any) -> Floats:
        """Return the probability of each label, (n, labels)."""
        raise NotImplementedError

    @property
    def mask_token(self) -> str | None:
        """The tokenizer's token for a hidden word; None without one."""
        return getattr(self._tokenizer, "mask_token", None)

    @cached_property
    def longest(self) -> int | None:
        """Largest number of tokens that the network reads; None if it states none."""
        lengths = (
            getattr(self._tokenizer, "model_max_length", None),
            getattr(self._network.config, "max_position_embeddings", None),
        )
        return min((int(n) for n in lengths if n is not None and 0 < n < _LONGEST), default=None)

    def truncation(self, text: str) -> str:
        """Return a warning if the network reads only the beginning of a text, else ""."""
        if self.longest is None:
            return ""
        count = len(self._tokenizer(text)["input_ids"])
        if count <= self.longest:
            return ""
        return (
            f"the model reads the first {self.longest} of {count} tokens alone: words behind them have no "
            "effect; explain a part of the text"
        )

    @property
    def _cut(self) -> dict[str, Any]:
        return {} if self.longest is None else {"truncation": True, "max_length": self.longest}


class PipelineClassifier(HuggingFace):
    """A pipeline of transformers that classifies texts or images.

    Parameters
    ----------
    pipeline
        A ``transformers`` pipeline.

    Raises
    ------
    InputError
        If its network has no labels.
    """

    def __init__(self, pipeline: Any) -> None:
        super().__init__(pipeline.model, getattr(pipeline, "tokenizer", None))
        self._pipeline = pipeline

    def predict_proba(self, inputs: Any) -> Floats:
        """Return the pipeline's scores of each label, (n, labels).

        Raises
        ------
        InputError
            If it returns other labels than its network's.
        """
        of_texts = self._tokenizer is not None
        items = list(inputs) if of_texts else [_picture(image) for image in inputs]
        # None means all labels of a text, and five of an image
        options = {"top_k": None, **self._cut} if of_texts else {"top_k": len(self.classes_)}
        with evaluating(self._network):
            answers = list(self._pipeline(items, **options))  # it may answer as it is read
        place = {label: k for k, label in enumerate(self.classes_.tolist())}
        scores = np.full((len(items), len(place)), np.nan)
        for row, answer in zip(scores, answers, strict=True):
            for one in answer:
                if one["label"] not in place:
                    raise InputError(
                        f"the pipeline answers {one['label']!r}, which is no label of its network"
                    )
                row[place[one["label"]]] = one["score"]
        return scores


class NetworkClassifier(HuggingFace):
    """A network of transformers with its tokenizer, or with its image processor.

    Parameters
    ----------
    network, tokenizer
        The objects that ``from_pretrained`` returns.

    Raises
    ------
    InputError
        If the network has no labels, or the tokenizer cannot be called.
    """

    def __init__(self, network: Any, tokenizer: Any) -> None:
        if not callable(tokenizer):
            raise InputError(
                f"a pair is (network, tokenizer), got {type(tokenizer).__name__} for the tokenizer"
            )
        super().__init__(network, tokenizer)

    def predict_proba(self, inputs: Any) -> Floats:
        """The softmax of the logits; for labels that do not exclude others, the logistic function."""
        torch = import_module("torch")
        if _takes_texts(self._tokenizer):
            batch = self._tokenizer(list(inputs), padding=True, return_tensors="pt", **self._cut)
        else:
            batch = self._tokenizer(images=[_picture(image) for image in inputs], return_tensors="pt")
        with evaluating(self._network), torch.inference_mode():
            logits = self._network(**batch.to(self._network.device)).logits.double().cpu().numpy()
        if getattr(self._network.config, "problem_type", None) == "multi_label_classification":
            return np.asarray(1.0 / (1.0 + np.exp(-logits)))
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _takes_texts(processor: Any) -> bool:
    return hasattr(processor, "convert_tokens_to_ids")


def _picture(image: Any) -> Any:
    """Return an array as the image that processors take: bytes of RGB."""
    from PIL import Image

    pixels = np.asarray(image)
    if pixels.dtype != np.uint8:
        raise InputError(f"networks of transformers take images of uint8, 0 to 255; got {pixels.dtype}")
    return Image.fromarray(pixels).convert("RGB")
