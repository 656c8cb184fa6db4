"""Heads of networks of transformers: the function on their logits, against all subsets of the input's parts.

Stand-ins run everywhere; small networks with random weights run where torch and transformers are installed.
Nothing is downloaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import words
from internals import output_title
from limes import ImageExplainer, TextExplainer
from limes.exceptions import InputError, ModelError
from small_networks import SINGLE, SMALL

WORDS = ["good", "food", "and", "slow", "bad", "service"]
TEXT = " ".join(WORDS)
IMAGE = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)
QUARTERS = {"segments": "grid", "segment_options": {"rows": 2, "columns": 2}, "fill": 0, "top": 9}


def logistic(x):
    return 1 / (1 + np.exp(-x))


def shares(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def itself(x):
    return x


@dataclass(frozen=True)
class Head:
    """A head, the function that transformers puts on its logits, and what its outputs are called."""

    labels: tuple[str, ...]
    problem: str | None
    link: Callable[[Any], Any]
    title: str
    applied: str | None = None
    names: tuple[str, ...] = ()

    @property
    def config(self):
        return {"id2label": dict(enumerate(self.labels)), "problem_type": self.problem}


LABELS = tuple(f"LABEL_{k}" for k in range(5))
HEADS = {
    "regression": Head(LABELS[:1], "regression", itself, "prediction", names=("output",)),
    "regression with a name": Head(("stars",), "regression", itself, "stars"),
    "three regressions": Head(("a", "b", "c"), "regression", itself, "a"),
    "one label": Head(("toxic",), None, logistic, "P(toxic)"),
    "two labels": Head(("bad", "good"), None, shares, "P(bad)"),
    "five labels": Head(LABELS, "single_label_classification", shares, "P(LABEL_0)"),
    "multi-label": Head(("sad", "odd", "glad"), "multi_label_classification", logistic, "P(sad)"),
    "logits": Head(("x", "y", "z"), None, itself, "x", applied="none"),
    "one logit": Head(("x",), None, itself, "x", applied="none"),
    "sigmoids of two": Head(("x", "y"), None, logistic, "P(x)", applied="sigmoid"),
    "softmax of labels": Head(
        ("x", "y", "z"), "multi_label_classification", shares, "P(x)", applied="SOFTMAX"
    ),
}
HEAD = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
KIND = pytest.mark.parametrize("kind", ["pair", "pipeline"])


def check(explanation, head, logits, law, tolerance):
    """Compare an explanation with the answers to all subsets, of which the whole is the last."""
    assert explanation.method == "exact"
    # nothing about sums of probabilities, nor about answers that are alike
    assert all(text.startswith("LIME's surrogate says") for text in explanation.warnings)
    names, answers = head.names or head.labels, head.link(logits)
    assert sorted(explanation.output_names) == sorted(names)
    for k, name in enumerate(names):
        shown = explanation[..., name]
        _, coef, _ = words.surrogate(words.law(law, len(shown.feature_names), 0.25), answers[:, k])
        np.testing.assert_allclose(shown.coefficients.values[0], coef, atol=tolerance)
        np.testing.assert_allclose(shown.predictions[0], answers[-1, k], atol=tolerance)
        assert np.abs(shown.coefficients.values).max() > 1e-3


def deletions():
    return [" ".join(word for word, kept in zip(WORDS, z, strict=True) if kept) for z in words.subsets(6)]


def hidden():
    """All 16 images with quarters set to 0."""
    shown = [np.kron(z.reshape(2, 2), np.ones((8, 8)))[..., None] for z in words.subsets(4)]
    return [(IMAGE * each).astype(np.uint8) for each in shown]


# -- stand-ins -----------------------------------------------------------------------------------------------


class Tensor(np.ndarray):
    """As much of a tensor as is asked for."""

    def double(self):
        return self

    cpu = double

    def numpy(self):
        return np.asarray(self)


class Batch(dict):
    """Inputs of a network."""

    def to(self, *_):
        return self


def raw(inputs, labels):
    """Logits (n, labels) of texts or images: effects, and an interaction."""
    rng = np.random.default_rng(1)
    parts = [
        np.array([word in one.split() for word in WORDS])
        if isinstance(one, str)
        else np.asarray(one).reshape(2, 8, 2, 8, 3).mean(axis=(1, 3, 4)).ravel() / 100
        for one in inputs
    ]
    parts = np.array(parts, dtype=float)
    effects = rng.normal(size=(parts.shape[1], labels))
    return parts @ effects + (parts[:, 0] * parts[:, 2])[:, None] * rng.normal(size=labels)


class Network:
    """A network of transformers; where it is asked for a tokenizer's window, it states none."""

    device = dtype = "cpu"

    def __init__(self, head):
        self.config = SimpleNamespace(**head.config)

    def __call__(self, inputs):
        return SimpleNamespace(logits=raw(inputs, len(self.config.id2label)).view(Tensor))


class Tokenizer:
    """Texts are tokens."""

    def convert_tokens_to_ids(self, tokens):
        return tokens

    def __call__(self, texts, **_):
        return Batch(inputs=texts)


def processor(images, **_):
    return Batch(inputs=images)


@pytest.fixture
def stand_in(monkeypatch):
    """Return what makes a pair or a pipeline of a head."""
    torch, home = ModuleType("torch"), ModuleType("transformers.pipelines.base")
    torch.inference_mode, torch.Tensor = nullcontext, Tensor
    monkeypatch.setitem(sys.modules, "torch", torch)

    class Pipeline:
        def __init__(self, head, tokenizer):
            self.model, self.tokenizer, self._link = Network(head), tokenizer, head.link
            self._postprocess_params = {}
            if head.applied:  # a member of an enumeration
                self._postprocess_params["function_to_apply"] = SimpleNamespace(value=head.applied.lower())

        def __call__(self, inputs, top_k=1):
            labels = self.model.config.id2label
            for one in self._link(raw(inputs, len(labels))):
                scores = [{"label": labels[k], "score": score} for k, score in enumerate(one)]
                yield sorted(scores, key=lambda entry: -entry["score"])[:top_k]

    Pipeline.__module__, Pipeline.__qualname__ = home.__name__, "Pipeline"
    home.Pipeline = Pipeline
    monkeypatch.setitem(sys.modules, home.__name__, home)

    def make(head, kind, of):
        if kind == "pipeline":
            return Pipeline(head, Tokenizer() if of == "texts" else None)
        network = Network(head)
        network.config.function_to_apply = head.applied
        return network, Tokenizer() if of == "texts" else processor

    return make


@KIND
@HEAD
def test_texts(stand_in, head, kind):
    explanation = TextExplainer(stand_in(head, kind, "texts"))(TEXT)
    check(explanation, head, raw(deletions(), len(head.labels)), "words", 1e-9)
    assert output_title(explanation, 0) == head.title
    assert explanation.provenance["answer"] == ("predict" if head.link is itself else "predict_proba")


@KIND
@HEAD
def test_images(stand_in, head, kind):
    explanation = ImageExplainer(stand_in(head, kind, "images"), **QUARTERS)(IMAGE)
    check(explanation, head, raw(hidden(), len(head.labels)), "superpixels", 1e-9)


@KIND
@pytest.mark.parametrize(("output", "names"), [("b", ("b",)), (1, ("b",)), (["c", "a"], ("c", "a"))])
def test_an_amount_is_chosen_by_its_name(stand_in, kind, output, names):
    head = HEADS["three regressions"]
    explanation = TextExplainer(stand_in(head, kind, "texts"), output=output)(TEXT)
    assert explanation.output_names == names
    logits = raw([TEXT], 3)[0]
    expected = [logits[head.labels.index(name)] for name in names]
    np.testing.assert_allclose(explanation.predictions.ravel(), expected, rtol=1e-9)


@pytest.mark.parametrize("output", ["d", 3, ["a", 3], "margin"])
def test_an_amount_that_does_not_exist(stand_in, output):
    with pytest.raises(InputError, match=r"a position|the position of a column .* one of \['a', 'b', 'c'\]"):
        TextExplainer(stand_in(HEADS["three regressions"], "pair", "texts"), output=output)


def test_an_unknown_function(stand_in):
    head = Head(("x", "y"), None, itself, "", applied="tanh")
    for kind in ("pair", "pipeline"):
        with pytest.raises(InputError, match="'tanh': use 'none', 'sigmoid' or 'softmax'"):
            TextExplainer(stand_in(head, kind, "texts"))


@pytest.mark.parametrize("shape", [(3,), (3, 8, 2), (3, 3)], ids=["one number", "a label a token", "three"])
def test_logits_that_are_not_one_a_label(stand_in, shape):
    network, tokenizer = stand_in(HEADS["two labels"], "pair", "texts")

    class Other(Network):
        def __call__(self, inputs):
            return SimpleNamespace(logits=np.zeros((len(inputs), *shape[1:])).view(Tensor))

    network.__class__ = Other
    with pytest.raises(ModelError, match="and 2 labels: pass a network that classifies whole inputs"):
        TextExplainer((network, tokenizer))(TEXT)


@KIND
@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_probabilities_take_no_second_link(stand_in, kind, link):
    model = stand_in(HEADS["two labels"], kind, "images")
    with pytest.raises(InputError, match="answers probabilities already"):
        ImageExplainer(model, **QUARTERS, link=link)(IMAGE)
    # amounts do: a head may be trained on logits and be called a regression
    logits = raw(hidden(), 3)
    explanation = ImageExplainer(stand_in(HEADS["logits"], kind, "images"), **QUARTERS, link=link)(IMAGE)
    expected = (shares if link == "softmax" else logistic)(logits)
    check(explanation, Head(("x", "y", "z"), None, itself, ""), np.asarray(expected), "superpixels", 1e-9)


def test_the_softmax_of_one_number_is_refused():
    def brightness(images):
        return images.mean(axis=(1, 2, 3))[:, None] / 255

    with pytest.raises(InputError, match="is always 1: pass link='sigmoid'"):
        ImageExplainer(brightness, **QUARTERS, link="softmax")(IMAGE)
    explanation = ImageExplainer(brightness, **QUARTERS, link="sigmoid")(IMAGE)
    answers = logistic(np.array([one.mean() / 255 for one in hidden()]))
    _, coef, _ = words.surrogate(words.law("superpixels", 4, 0.25), answers)
    np.testing.assert_allclose(explanation.coefficients.values[0, :, 0], coef, rtol=1e-9)


# -- transformers --------------------------------------------------------------------------------------------


@pytest.fixture
def transformers():
    torch = pytest.importorskip("torch", reason="pip install torch")
    torch.manual_seed(0)
    return pytest.importorskip("transformers", reason="pip install transformers")


@pytest.fixture
def wordpiece(transformers, tmp_path):
    """A tokenizer of pieces of words: "service" is two, "food" three."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "f", "##oo", "##d", "and", "slow", "bad"]
    vocabulary = {piece: k for k, piece in enumerate([*pieces, "serv", "##ice"])}
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    inner.post_processor = tokenizers.processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=32, **special)


def logits_of(network, batches):
    """Logits one input at a time, in evaluation mode."""
    import torch

    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    with torch.no_grad():
        logits = np.array([network(**batch).logits[0].double().numpy() for batch in batches])
    for module, mode in modes:
        module.training = mode
    return logits


@KIND
@HEAD
def test_bert(transformers, wordpiece, head, kind):
    """In training mode, with a frozen layer: dropout must not reach the answers, nor modes the user."""
    config = transformers.BertConfig(vocab_size=14, max_position_embeddings=32, **SMALL, **head.config)
    network = transformers.BertForSequenceClassification(config).train()
    network.bert.embeddings.eval()
    before = [module.training for module in network.modules()]
    logits = logits_of(network, [wordpiece(text, return_tensors="pt") for text in deletions()])
    if kind == "pair":
        network.config.function_to_apply = head.applied
        model = network, wordpiece
    else:
        applied = {"function_to_apply": head.applied} if head.applied else {}
        model = transformers.pipeline(
            "text-classification", network, tokenizer=wordpiece, **applied, device="cpu"
        )
    explanation = TextExplainer(model)(TEXT)
    check(explanation, head, logits, "words", SINGLE * max(1.0, np.abs(head.link(logits)).max()))
    assert output_title(explanation, 0) == head.title
    assert [module.training for module in network.modules()] == before


@KIND
@HEAD
def test_vision_transformer(transformers, head, kind):
    config = transformers.ViTConfig(image_size=16, patch_size=8, **SMALL, **head.config)
    network = transformers.ViTForImageClassification(config).train()
    size = transformers.ViTImageProcessor(size={"height": 16, "width": 16})
    logits = logits_of(network, [size(images=[image], return_tensors="pt") for image in hidden()])
    if kind == "pair":
        network.config.function_to_apply = head.applied
        model = network, size
    else:
        applied = {"function_to_apply": head.applied} if head.applied else {}
        model = transformers.pipeline(
            "image-classification", network, image_processor=size, **applied, device="cpu"
        )
    explanation = ImageExplainer(model, **QUARTERS)(IMAGE)
    check(explanation, head, logits, "superpixels", SINGLE * max(1.0, np.abs(head.link(logits)).max()))
    assert all(module.training for module in network.modules())


@KIND
def test_workers(transformers, wordpiece, kind):
    """Texts that threads explain at the same time: dropout stays off, and every module has its mode back."""
    config = transformers.BertConfig(vocab_size=14, max_position_embeddings=32, **SMALL, num_labels=2)
    network = transformers.BertForSequenceClassification(config).train()
    network.bert.pooler.eval()
    before = [module.training for module in network.modules()]
    model = (network, wordpiece)
    if kind == "pipeline":
        model = transformers.pipeline("text-classification", network, tokenizer=wordpiece, device="cpu")
    explainer = TextExplainer(model)
    texts = [TEXT, "bad food", "good slow service", "slow and bad", "good and good food", "bad service"]
    alone = [explainer(text) for text in texts]
    for _ in range(3):
        together = explainer(texts, workers=4, progress=False)
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_allclose(one.coefficients.values, other.coefficients.values, atol=SINGLE)
        assert [module.training for module in network.modules()] == before
