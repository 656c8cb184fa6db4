"""Networks of transformers in other forms than a pair, other heads, and answers of pipelines.

Stand-ins with the attributes of transformers' classes; ``test_tasks.py`` has its own networks.
"""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

import limes
from limes.exceptions import InputError, ModelError

DOORS = {
    "text": limes.TextExplainer,
    "image": limes.ImageExplainer,
    "parts": lambda model: limes.CompositeExplainer(model, {"text": "text"}),
}


def stand_in(name, library="transformers", **attributes):
    """An object of a class of this name, with attributes."""
    kind = type(name, (), {"__module__": f"{library}.models", "__call__": lambda self, *_: None})
    one = kind()
    vars(one).update(attributes)
    return one


CONFIG = type("Config", (), {"id2label": {0: "bad", 1: "good"}, "problem_type": None})()
NETWORK = stand_in("BertForSequenceClassification", config=CONFIG)
TOKENIZER = stand_in("BertTokenizerFast", convert_tokens_to_ids=len, is_fast=True)
FAST = stand_in("Tokenizer", "tokenizers", token_to_id=len)
PROCESSOR = stand_in("ViTImageProcessor", image_mean=[0.5], do_rescale=True)

PARTS = {
    "list": ([NETWORK, TOKENIZER], "list of BertForSequenceClassification, BertTokenizerFast"),
    "swapped": ((TOKENIZER, NETWORK), "tuple of BertTokenizerFast, BertForSequenceClassification"),
    "swapped list": ([TOKENIZER, NETWORK], "the network first"),
    "swapped images": ((PROCESSOR, NETWORK), "tuple of ViTImageProcessor"),
    "dict": ({"model": NETWORK, "tokenizer": TOKENIZER}, "dict of BertForSequenceClassification"),
    "dict without names": ({0: TOKENIZER, 1: NETWORK}, "dict of BertTokenizerFast"),
    "one": ((NETWORK,), "tuple of BertForSequenceClassification"),
    "three": ((NETWORK, TOKENIZER, 512), "BertTokenizerFast, int"),
    "with a name": (["bert-base-uncased", TOKENIZER], "list of str, BertTokenizerFast"),
    "tokenizer": (TOKENIZER, "BertTokenizerFast prepares inputs and gives no answers"),
    "tokenizer of tokenizers": (FAST, "Tokenizer prepares inputs"),
    "image processor": (PROCESSOR, "ViTImageProcessor prepares inputs"),
    "a name": ("distilbert-base-uncased", "or load what the text names"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", PARTS)
def test_a_network_in_another_form_than_a_pair_is_named(name, door):
    model, words = PARTS[name]
    with pytest.raises(InputError) as error:
        DOORS[door](model)
    assert words in str(error.value)
    if name != "a name":
        assert "pass the tuple (network, tokenizer)" in str(error.value)


def test_a_model_with_numbers_of_its_own_is_no_processor():
    """Attributes alone do not make a tokenizer of a user's network."""

    class Brightness:
        image_mean = 0.5

        def __call__(self, images):
            return np.asarray(images).mean(axis=(1, 2, 3))

    options = {"segments": "grid", "segment_options": {"rows": 1, "columns": 2}}
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    assert limes.ImageExplainer(Brightness(), **options)(image).coefficients.values.shape == (1, 2)


HEADS = {
    "BertForMultipleChoice": "compares several texts",
    "BertForNextSentencePrediction": "tells whether one text follows another",
    "ErnieForNextSentencePrediction": "tells whether one text follows another",
    "RobertaForMultipleChoice": "compares several texts",
    "DetrForObjectDetection": "finds objects",
    "SegformerForSemanticSegmentation": "answers pixel by pixel",
    "DetrForSegmentation": "answers pixel by pixel",
    "DPTForDepthEstimation": "answers pixel by pixel",
    "ViTForMaskedImageModeling": "answers pixel by pixel",
    "Wav2Vec2ForAudioClassification": "takes sound",
    "Wav2Vec2ForCTC": "takes sound",
    "ViltForQuestionAnswering": "answers with a part of a text",
    "T5ForConditionalGeneration": "writes texts",
    "BertForTokenClassification": "labels each word",
}


@pytest.mark.parametrize("kind", ["pair", "pipeline"])
@pytest.mark.parametrize("head", HEADS)
def test_heads_that_give_no_number_to_a_label_are_refused(monkeypatch, head, kind):
    network = stand_in(head, config=CONFIG)
    model = (network, TOKENIZER)
    if kind == "pipeline":
        home = ModuleType("transformers.pipelines.base")
        home.Pipeline = type("Pipeline", (), {"__module__": home.__name__})
        monkeypatch.setitem(sys.modules, home.__name__, home)
        model = home.Pipeline()
        vars(model).update(model=network, tokenizer=TOKENIZER, task="text-classification")
    with pytest.raises(InputError, match=f"{head} {HEADS[head]}: explain a function"):
        limes.TextExplainer(model)


def scored(text):
    share = 0.9 if "good" in text else 0.2
    return {"label": "good", "score": share}


ANSWERS = {
    "the best label": lambda texts: [scored(text) for text in texts],
    "all labels": lambda texts: [[scored(text), {"label": "bad", "score": 0.1}] for text in texts],
    "a tuple": lambda texts: tuple(scored(text) for text in texts),
    "of an array": lambda texts: np.array([scored(text) for text in texts], dtype=object),
    "zero-shot": lambda texts: [{"sequence": t, "labels": ["a", "b"], "scores": [0.7, 0.3]} for t in texts],
    "objects": lambda texts: [[{"label": "cat", "score": 0.9, "box": {}}] for text in texts],
    "words": lambda texts: [[{"label": "PER", "score": 0.9, "word": "x"}] for text in texts],
    "one text at a time": lambda texts: [[scored(text)] for text in texts],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_of_a_pipeline_are_named(name):
    with pytest.raises(
        ModelError, match=r"labels with scores, .*pass the pipeline itself, or return a mapping"
    ):
        limes.TextExplainer(ANSWERS[name])("good food and service")


def test_the_mapping_that_is_advised_is_explained():
    explanation = limes.TextExplainer(
        lambda texts: [{"good": scored(text)["score"], "bad": 1 - scored(text)["score"]} for text in texts]
    )("good food")
    assert explanation.output_names == ("bad", "good")
    assert explanation.coefficients.values[0, 0] == pytest.approx([-0.7, 0.7])
