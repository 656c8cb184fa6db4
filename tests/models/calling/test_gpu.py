"""Networks on an accelerator answer as on the processor, and stay on their device."""

from __future__ import annotations

import numpy as np
import pytest

import limes
from limes import CompositeExplainer, ImageExplainer, SeriesExplainer, TabularExplainer, TextExplainer
from small_networks import SINGLE, SMALL

torch = pytest.importorskip("torch")

DEVICES = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
WORDS = ["a", "good", "film", "and", "a", "long", "one"]
LABELS = {0: "no", 1: "maybe", 2: "yes"}
# Largest difference of two answers of a network with few weights, by the precision of these
HALF = {"float16": 4e-3, "bfloat16": 3e-2}


@pytest.fixture(params=DEVICES)
def device(request):
    if not DEVICES[request.param]:
        pytest.skip(f"torch has no {request.param} here")
    return request.param


def twice(network, explained, device):
    """The explanations of a network on the processor and on the device, where it stays."""
    before = explained(network)
    network.to(device).train()
    after = explained(network)
    assert {weight.device.type for weight in network.parameters()} == {device}
    assert network.training
    return before, after


@pytest.fixture
def table():
    return np.random.default_rng(0).normal(size=(200, 4))


@pytest.fixture
def perceptron():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def test_weights_are_read_off_the_device(perceptron, table, device):
    before, after = twice(perceptron, lambda net: TabularExplainer(net, table)(table[:3]), device)
    assert before.method == after.method == "exact"
    # the same weights: what is computed of them has the same bits
    np.testing.assert_array_equal(after.values, before.values)
    np.testing.assert_allclose(after.predictions, before.predictions, atol=SINGLE)


def test_a_table_is_answered_on_the_device(table, device):
    """Batch norm and dropout are not read; they must be in evaluation mode."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(4, 8),
        torch.nn.BatchNorm1d(8),
        torch.nn.GELU(),
        torch.nn.Dropout(),
        torch.nn.Linear(8, 3),
    )

    def explained(net):
        return TabularExplainer(net, table, method="sampled", rng=0, output="probability")(table[:2])

    before, after = twice(network, explained, device)
    np.testing.assert_allclose(after.predictions, before.predictions, atol=SINGLE)
    allowed = 5 * np.hypot(before.standard_errors, after.standard_errors) + SINGLE
    assert (np.abs(after.values - before.values) <= allowed).all()


def test_an_image_and_a_series_are_answered_on_the_device(device):
    torch.manual_seed(0)
    image = np.random.default_rng(1).random((16, 16, 3))
    conv = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(4, 2), torch.nn.Softmax(dim=1),
    )  # fmt: skip
    options = {
        "segments": "grid",
        "segment_options": {"rows": 2, "columns": 3},
        "preprocess": limes.Preprocess(mean=0, scale=1, channels="first"),
        "fill": 0,
    }
    before, after = twice(conv, lambda net: ImageExplainer(net, **options)(image), device)
    np.testing.assert_allclose(after.values, before.values, atol=SINGLE)
    assert np.abs(before.values).max() > 100 * SINGLE

    flat = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(12, 6), torch.nn.SiLU(), torch.nn.Linear(6, 1)
    )
    series = np.sin(np.arange(12.0))
    before, after = twice(flat, lambda net: SeriesExplainer(net, count=6)(series), device)
    np.testing.assert_allclose(after.values, before.values, atol=SINGLE)


@pytest.fixture
def bert():
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = {token: k for k, token in enumerate(["[PAD]", "[UNK]", "[MASK]", "[CLS]", *dict.fromkeys(WORDS)])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "mask_token": "[MASK]", "cls_token": "[CLS]"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=24, **special)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), max_position_embeddings=24, id2label=LABELS, **SMALL
    )
    return transformers.BertForSequenceClassification(config).eval(), tokenizer


@pytest.mark.parametrize("kind", ["pair", "pipeline", "two texts"])
def test_transformers_answer_on_the_device(bert, kind, device):
    import transformers

    network, tokenizer = bert

    def explained(net):
        model = (net, tokenizer)
        if kind == "two texts":
            parts = {"text": "text", "text_pair": "text"}
            return CompositeExplainer(model, parts)({"text": "a good film", "text_pair": "a long one"})
        if kind == "pipeline":
            model = transformers.pipeline(
                "text-classification", net, tokenizer=tokenizer, device=next(net.parameters()).device
            )
        return TextExplainer(model)(" ".join(WORDS))

    before, after = twice(network, explained, device)
    assert after.output_names == tuple(LABELS.values())
    np.testing.assert_allclose(after.values, before.values, atol=SINGLE)


@pytest.mark.parametrize("precision", HALF)
def test_half_precision_is_explained_to_its_rounding(bert, precision, device):
    """Against the network's own answers in single precision, and exact for those that it gives."""
    network, tokenizer = bert
    before = TextExplainer((network, tokenizer))(" ".join(WORDS))
    half = network.to(device, getattr(torch, precision))
    after = TextExplainer((half, tokenizer))(" ".join(WORDS))
    np.testing.assert_allclose(after.predictions, before.predictions, atol=HALF[precision])
    # a coefficient is a weighted mean of differences of answers, with weights below ten here
    np.testing.assert_allclose(after.values, before.values, atol=10 * HALF[precision])


def test_a_small_vision_transformer_on_the_device(device):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ViTConfig(image_size=16, patch_size=8, id2label=LABELS, **SMALL)
    network = transformers.ViTForImageClassification(config).eval()
    processor = transformers.ViTImageProcessor(size={"height": 16, "width": 16})
    image = np.random.default_rng(2).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    options = {"segments": "grid", "segment_options": {"rows": 2, "columns": 2}, "fill": 0}
    before, after = twice(network, lambda net: ImageExplainer((net, processor), **options)(image), device)
    np.testing.assert_allclose(after.values, before.values, atol=SINGLE)
