"""Classifiers of transformers: small networks with random weights, and stand-ins for them."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import limes
import words
from limes import ImageExplainer, TextExplainer
from limes.exceptions import InputError, ModelError

LABELS = {0: "sad", 1: "glad", 2: "odd"}
TEXT = "good food and slow bad service"
IMAGE = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)


def scores(text):
    """Three probabilities that depend on words."""
    raw = np.exp([text.count("bad"), text.count("good") * (1 + text.count("food")), 0.3 * text.count("slow")])
    return raw / raw.sum()


class Tokenizer:
    """A word is a token."""

    mask_token = "[MASK]"  # noqa: S105 - no password
    model_max_length = 5

    def convert_tokens_to_ids(self, tokens):
        return tokens

    def __call__(self, text):
        return {"input_ids": text.split()}


@pytest.fixture
def pipeline(monkeypatch):
    """A stand-in for a pipeline: its class is found under the name of transformers'."""
    module = ModuleType("transformers.pipelines.base")

    class Pipeline:
        def __init__(self):
            self.model = SimpleNamespace(config=SimpleNamespace(id2label=LABELS))
            self.tokenizer = Tokenizer()
            self.calls = []

        def __call__(self, texts, **options):
            self.calls.append((list(texts), options))
            answers = [
                [{"label": LABELS[k], "score": p} for k, p in enumerate(scores(text))] for text in texts
            ]
            return [sorted(answer, key=lambda one: -one["score"]) for answer in answers]

    Pipeline.__module__, Pipeline.__qualname__ = module.__name__, "Pipeline"
    module.Pipeline = Pipeline
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return Pipeline()


def deletions(text, mask=""):
    pieces = text.split()
    return [
        " ".join(word if kept else mask for word, kept in zip(pieces, z, strict=True))
        for z in words.subsets(len(pieces))
    ]


# the text has six tokens, of which five are read: where words are deleted, others would be pulled in
@pytest.mark.parametrize(("mask", "shown"), [(None, "[MASK]"), ("", ""), (True, "[MASK]"), ("…", "…")])
def test_a_pipeline_is_called_by_its_labels(pipeline, mask, shown):
    explanation = TextExplainer(pipeline, mask=mask)(TEXT)
    assert explanation.output_names == tuple(LABELS.values())
    assert explanation.method == "exact"
    answers = np.array([scores(text) for text in deletions(TEXT, shown)])
    for k, label in LABELS.items():
        _, coef, _ = words.surrogate(words.law("words", 6, 0.25), answers[:, k])
        np.testing.assert_allclose(
            explanation[..., label].coefficients.values[0], coef, rtol=1e-9, atol=1e-12
        )
    assert pipeline.calls[0][1] == {"top_k": None, "truncation": True, "max_length": 5}


def test_an_image_pipeline_returns_all_labels(pipeline):
    """For an image transformers answers the five likeliest labels, unless it is asked for more."""
    labels = {k: f"class {k}" for k in range(7)}

    def answer(images, top_k=None):
        shares = np.arange(1, 8) / 28
        brightness = [np.asarray(image).mean() / 255 for image in images]
        every = [[{"label": labels[k], "score": b * shares[k]} for k in range(7)] for b in brightness]
        return [sorted(one, key=lambda each: -each["score"])[: top_k or 5] for one in every]

    type(pipeline).__call__ = lambda _, images, **options: answer(images, **options)
    pipeline.tokenizer, pipeline.model.config.id2label = None, labels
    image = np.full((4, 4, 3), 200, dtype=np.uint8)
    halves = {"segments": "grid", "segment_options": {"rows": 1, "columns": 2}, "fill": 0}
    explanation = limes.ImageExplainer(pipeline, top=7, **halves)(image)
    assert sorted(explanation.output_names) == list(labels.values())
    for k, label in labels.items():
        effect = 200 / 255 * (k + 1) / 28 / 2
        np.testing.assert_allclose(explanation[..., label].coefficients.values[0], effect, rtol=1e-9)


def test_a_label_is_chosen_by_its_name(pipeline):
    explanation = TextExplainer(pipeline, output="glad")(TEXT)
    assert explanation.output_names == ("glad",)
    assert explanation.predictions[0] == pytest.approx(scores(TEXT)[1])
    assert explanation.provenance["model"] == "Pipeline"


def test_a_text_that_is_cut_off_is_reported(pipeline):
    assert "reads the first 5 of 6 tokens" in TextExplainer(pipeline)(TEXT).warnings[0]
    assert not TextExplainer(pipeline)("good food").warnings


def test_other_labels_are_refused(pipeline):
    pipeline.model.config.id2label = {0: "LABEL_0", 1: "LABEL_1"}
    with pytest.raises(ModelError, match="which is no label of its network"):
        TextExplainer(pipeline)(TEXT)


def test_a_pipeline_that_does_not_classify(pipeline):
    del pipeline.model.config.id2label
    with pytest.raises(InputError, match="pass a classifier"):
        TextExplainer(pipeline)


def test_a_mask_needs_a_tokenizer():
    with pytest.raises(InputError, match="mask=True needs a model of transformers"):
        TextExplainer(lambda texts: np.zeros(len(texts)), mask=True)


def test_pairs_need_a_tokenizer():
    with pytest.raises(InputError, match="a pair is"):
        TextExplainer((SimpleNamespace(config=SimpleNamespace(id2label=LABELS)), "bert-base"))


# -- with transformers itself --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bert():
    """A network of a hundred weights or so, and a tokenizer of whole words."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {token: k for k, token in enumerate(["[PAD]", "[UNK]", "[MASK]", "[CLS]", *TEXT.split()])}
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "mask_token": "[MASK]"}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, special["unk_token"]))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    first = {"single": "[CLS] $A", "special_tokens": [("[CLS]", vocabulary["[CLS]"])]}
    inner.post_processor = tokenizers.processors.TemplateProcessing(**first)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=12, **special)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=12,
        initializer_range=0.5,
        id2label=LABELS,
    )
    return transformers.BertForSequenceClassification(config).eval(), tokenizer


def softmax(bert, texts):
    """One text at a time, by transformers' own calls."""
    import torch

    network, tokenizer = bert
    with torch.inference_mode():
        logits = [network(**tokenizer(text, return_tensors="pt")).logits[0].double() for text in texts]
    return torch.softmax(torch.stack(logits), dim=1).numpy()


@pytest.mark.parametrize("kind", ["pair", "pipeline"])
def test_a_small_bert(bert, kind):
    import transformers

    network, tokenizer = bert
    model = (
        bert
        if kind == "pair"
        else transformers.pipeline("text-classification", network, tokenizer=tokenizer, device="cpu")
    )
    explanation = TextExplainer(model, mask=True)(TEXT)
    assert explanation.output_names == tuple(LABELS.values())
    answers = softmax(bert, deletions(TEXT, "[MASK]"))
    for k in range(3):
        _, coef, _ = words.surrogate(words.law("words", 6, 0.25), answers[:, k])
        # the network adds up in single precision, and padding changes the order
        np.testing.assert_allclose(explanation.coefficients.values[0, :, k], coef, atol=2e-5)
    assert np.abs(explanation.coefficients.values).max() > 1e-2
    # a batch of texts of different lengths is padded
    assert (TextExplainer(model)(TEXT).coefficients.values != explanation.coefficients.values).any()


def test_tokens_of_the_tokenizer_are_features(bert):
    explanation = TextExplainer(bert, split=bert[1])(TEXT)
    assert explanation.feature_names == tuple(TEXT.split())


def test_a_long_text_is_cut(bert):
    explanation = TextExplainer(bert, max_calls=64)(" ".join([TEXT] * 4))
    assert any("reads the first 12 of 25 tokens" in text for text in explanation.warnings)


@pytest.mark.parametrize("kind", ["pair", "pipeline"])
def test_a_small_vision_transformer(kind):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        image_size=16,
        patch_size=8,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        initializer_range=0.5,
        id2label=LABELS,
    )
    network = transformers.ViTForImageClassification(config).eval()
    processor = transformers.ViTImageProcessor(size={"height": 16, "width": 16})
    model = (network, processor)
    if kind == "pipeline":
        model = transformers.pipeline(
            "image-classification", network, image_processor=processor, device="cpu"
        )
    options = {"segments": "grid", "segment_options": {"rows": 2, "columns": 2}, "fill": 0}
    explanation = ImageExplainer(model, **options)(IMAGE)
    assert explanation.output_names == tuple(LABELS.values())
    answers = []
    for z in words.subsets(4):
        shown = np.kron(z.reshape(2, 2), np.ones((8, 8)))[..., None]
        pixels = torch.as_tensor((shown * IMAGE / 255 - 0.5) / 0.5).permute(2, 0, 1)[None].float()
        with torch.inference_mode():
            answers.append(torch.softmax(network(pixels).logits[0].double(), dim=0).numpy())
    for k in range(3):
        _, coef, _ = words.surrogate(words.law("superpixels", 4, 0.25), np.array(answers)[:, k])
        np.testing.assert_allclose(explanation.coefficients.values[0, :, k], coef, atol=2e-5)
    scaled = ImageExplainer(model, **options)(IMAGE / 255.0)
    np.testing.assert_array_equal(scaled.coefficients.values, explanation.coefficients.values)
    with pytest.raises(ModelError, match="leave preprocess out"):
        ImageExplainer(model, **options, preprocess=limes.Preprocess(mean=127, scale=128))(IMAGE)
