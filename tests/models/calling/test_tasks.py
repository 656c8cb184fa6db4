"""Tasks of transformers: pairs of texts, zero-shot labels, photographs of floats; other heads are refused.

Small networks with random weights; nothing is downloaded. The oracle is the network itself, asked about each
subset of the parts one at a time.
"""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import words
from limes import CompositeExplainer, ImageExplainer, TextExplainer
from limes.exceptions import InputError, ModelError
from small_networks import SINGLE, SMALL

PREMISE, HYPOTHESIS = ["good", "food", "slow"], ["bad", "service"]
PAIR = {"premise": " ".join(PREMISE), "hypothesis": " ".join(HYPOTHESIS)}
PARTS = dict.fromkeys(PAIR, "text")
WORDS = ["good", "food", "and", "slow", "bad", "service"]
TEXT = " ".join(WORDS)
LABELS = {0: "entailment", 1: "neutral", 2: "contradiction"}


def kept(pieces, z):
    return " ".join(word for word, shown in zip(pieces, z, strict=True) if shown)


def expected(answers, kind="words"):
    """Coefficients for the answers (2^d, k) to all subsets."""
    d = int(np.log2(len(answers)))
    return np.stack([words.surrogate(words.law(kind, d, 0.25), one)[1] for one in np.transpose(answers)], -1)


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch", reason="pip install torch")
    torch.manual_seed(0)
    return torch


@pytest.fixture
def transformers(torch):
    return pytest.importorskip("transformers", reason="pip install transformers")


@pytest.fixture
def tokenizer(transformers):
    """A word is a token, between [CLS] and [SEP], of one text or two."""
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    more = ["This", "example", "is", "about", "food.", "service."]
    vocabulary = {token: k for k, token in enumerate([*special.values(), *WORDS, *more])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, "[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    inner.post_processor = tokenizers.processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=32, **special)


@pytest.fixture
def bert(transformers, tokenizer):
    """Return what makes a network of a head."""

    def make(head="BertForSequenceClassification", **config):
        options = {"vocab_size": len(tokenizer), "max_position_embeddings": 32, **SMALL, **config}
        return getattr(transformers, head)(transformers.BertConfig(**options)).eval()

    return make


def logits_of(network, tokenizer, inputs):
    """One input at a time; in a list, for outside of one a tokenizer takes an empty second text for none."""
    import torch

    with torch.inference_mode():
        batches = [tokenizer(*([text] for text in texts), return_tensors="pt") for texts in inputs]
        return np.array([network(**batch).logits[0].double().numpy() for batch in batches])


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


# -- pairs of texts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pair", "pipeline"])
@pytest.mark.parametrize("names", [("premise", "hypothesis"), ("text", "text_pair")])
def test_both_texts_of_a_pair_are_explained(transformers, tokenizer, bert, kind, names):
    network = bert(id2label=LABELS)
    model = (network, tokenizer)
    if kind == "pipeline":
        model = transformers.pipeline("text-classification", network, tokenizer=tokenizer, device="cpu")
    explainer = CompositeExplainer(model, dict.fromkeys(names, "text"))
    explanation = explainer(dict(zip(names, PAIR.values(), strict=True)))
    assert explanation.feature_names == tuple(
        f"{name}: {word}" for name, text in zip(names, (PREMISE, HYPOTHESIS), strict=True) for word in text
    )
    inputs = [(kept(PREMISE, z[:3]), kept(HYPOTHESIS, z[3:])) for z in words.subsets(5)]
    answers = softmax(logits_of(network, tokenizer, inputs))
    assert explanation.output_names == tuple(LABELS.values())
    np.testing.assert_allclose(explanation.coefficients.values[0], expected(answers), atol=SINGLE)
    np.testing.assert_allclose(explanation.predictions[0], answers[-1], atol=SINGLE)
    assert np.abs(explanation.coefficients.values).max() > 1e-2
    one = CompositeExplainer(model, PARTS, output="neutral")(PAIR)
    assert one.output_names == ("neutral",)
    np.testing.assert_allclose(
        np.squeeze(one.coefficients.values), explanation.coefficients.values[0, :, 1], atol=SINGLE
    )


def test_labels_of_a_pair_that_do_not_exclude_each_other(tokenizer, bert):
    network = bert(id2label=LABELS, problem_type="multi_label_classification")
    explanation = CompositeExplainer((network, tokenizer), PARTS)(PAIR)
    logits = logits_of(network, tokenizer, [tuple(PAIR.values())])[0]
    np.testing.assert_allclose(explanation.predictions[0], 1 / (1 + np.exp(-logits)), atol=SINGLE)
    assert not any("add up to" in text for text in explanation.warnings)


def test_a_pair_that_is_cut_is_reported(tokenizer, bert):
    explainer = CompositeExplainer((bert(id2label=LABELS), tokenizer), PARTS, max_calls=64)
    long = {"premise": " ".join(4 * WORDS), "hypothesis": " ".join(2 * WORDS)}
    assert any("reads the first 32 of 39 tokens" in text for text in explainer(long).warnings)
    assert not any("tokens" in text for text in explainer(PAIR).warnings)


def test_other_parts_than_two_texts(tokenizer, bert):
    model = (bert(id2label=LABELS), tokenizer)
    with pytest.raises(ModelError, match=r"takes a text or two, and \['a', 'b', 'c'\] are 3 parts"):
        CompositeExplainer(model, dict.fromkeys("abc", "text"))(dict.fromkeys("abc", "good food"))
    with pytest.raises(ModelError, match="takes texts, and 'image' has none: leave that part out"):
        CompositeExplainer(model, {"text": "text", "image": "image"})(
            {"text": "good food", "image": np.eye(16, dtype=np.uint8) * 255}
        )
    # the advice: one text is explained as by TextExplainer
    one = CompositeExplainer(model, {"text": "text"})({"text": TEXT})
    np.testing.assert_allclose(
        one.coefficients.values, TextExplainer(model)(TEXT).coefficients.values, atol=1e-9
    )


def test_a_text_explainer_names_what_explains_pairs():
    pair = {"text": "good food", "text_pair": "bad service"}
    explainer = TextExplainer(lambda texts: np.array([len(text) for text in texts]))
    for texts in (pair, [pair]):
        with pytest.raises(InputError, match=r"CompositeExplainer\(model, \{'text': 'text', 'text_pair'"):
            explainer(texts)


# -- labels of the user --------------------------------------------------------------------------------------


@pytest.mark.parametrize("several", [False, True])
def test_candidate_labels_are_outputs(transformers, tokenizer, bert, several):
    network = bert(id2label=LABELS, label2id={name: k for k, name in LABELS.items()})
    task, names = "zero-shot-classification", ["food.", "service."]
    options = {"tokenizer": tokenizer, "hypothesis_template": "This example is about {}"}
    with pytest.raises(InputError, match=r"no candidate_labels.*candidate_labels=\[\.\.\.\]"):
        TextExplainer(transformers.pipeline(task, network, **options, device="cpu"))
    pipe = transformers.pipeline(
        task, network, **options, candidate_labels=names, multi_label=several, device="cpu"
    )
    explanation = TextExplainer(pipe)(TEXT)
    inputs = [(kept(WORDS, z), f"This example is about {name}") for z in words.subsets(6) for name in names]
    logits = logits_of(network, tokenizer, inputs).reshape(64, 2, 3)
    # transformers: entailment among the labels, or of each label against its contradiction
    answers = softmax(logits[..., [2, 0]])[..., 1] if several else softmax(logits[..., 0])
    assert explanation.output_names == tuple(names)
    # the pipeline rounds to single precision, and pads
    np.testing.assert_allclose(explanation.coefficients.values[0], expected(answers), atol=SINGLE)
    assert np.abs(explanation.coefficients.values).max() > 1e-3
    assert not any("add up to" in text for text in explanation.warnings)
    with pytest.raises(ModelError, match="takes one text, and"):
        CompositeExplainer(pipe, PARTS)(PAIR)


def test_candidate_labels_of_photographs(transformers, torch, tokenizer):
    text = {"vocab_size": len(tokenizer), "max_position_embeddings": 32, "eos_token_id": 3, **SMALL}
    vision = {"image_size": 16, "patch_size": 8, **SMALL}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    network = transformers.CLIPModel(config).eval()
    sides = {"height": 16, "width": 16}
    processor = transformers.CLIPImageProcessor(size=sides, crop_size=sides)
    names = ["good food", "bad service"]
    task, parts = "zero-shot-image-classification", {"tokenizer": tokenizer, "image_processor": processor}
    with pytest.raises(InputError, match="no candidate_labels"):
        ImageExplainer(transformers.pipeline(task, network, **parts, device="cpu"))
    pipe = transformers.pipeline(
        task, network, **parts, candidate_labels=names, hypothesis_template="{}", device="cpu"
    )
    explanation = ImageExplainer(pipe, **QUARTERS)(IMAGE)
    answers = []
    for z in words.subsets(4):
        batch = {
            **tokenizer(names, padding=True, return_tensors="pt"),
            **processor(images=[hidden(IMAGE, z)], return_tensors="pt"),
        }
        with torch.inference_mode():
            answers.append(softmax(network(**batch).logits_per_image[0].double().numpy()))
    order = [explanation.output_names.index(name) for name in names]
    np.testing.assert_allclose(
        explanation.coefficients.values[0][:, order], expected(answers, "superpixels"), atol=10 * SINGLE
    )
    assert np.abs(explanation.coefficients.values).max() > 1e-3


# -- heads that give no number to a label --------------------------------------------------------------------


def chance(network, tokenizer, texts, place, token):
    """The probability of a token, or label, at a place of each text."""
    import torch

    with torch.inference_mode():
        batches = [tokenizer(text, return_tensors="pt") for text in texts]
        logits = [network(**batch).logits[0, place].double().numpy() for batch in batches]
    return softmax(np.array(logits))[:, token]


def of_two(network, tokenizer, *choices):
    """The probability of the first of two texts of a network that compares them."""
    import torch

    batch = tokenizer(list(choices), padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = network(**{name: one[None] for name, one in batch.items()}).logits
    return softmax(logits[0].double().numpy())[0]


HEADS = [
    ("BertForTokenClassification", "labels each word: .* the score of one label at one word"),
    ("BertForMaskedLM", "fills in masked words: .* one word at a mask that the function adds"),
    ("BertLMHeadModel", "writes texts: .* the probability of one continuation"),
    (
        "BertForNextSentencePrediction",
        "tells whether one text follows another: .* the probability that it does",
    ),
    ("BertForMultipleChoice", "compares several texts: .* the probability of one of two"),
]


@pytest.mark.parametrize(("head", "advice"), HEADS, ids=[head for head, _ in HEADS])
def test_a_head_is_refused_by_its_name_and_the_advice_works(tokenizer, bert, head, advice):
    network = bert(head, is_decoder=head == "BertLMHeadModel")
    with pytest.raises(InputError, match=f"{head} {advice}"):
        TextExplainer((network, tokenizer))
    adds = " [MASK]" if head == "BertForMaskedLM" else ""
    place = 1 if head == "BertForTokenClassification" else -2

    def number(texts):
        if head == "BertForNextSentencePrediction":  # with the first text that the function adds
            pairs = [("good food", text) for text in texts]
            return softmax(logits_of(network, tokenizer, pairs))[:, 0]
        if head == "BertForMultipleChoice":
            return np.array([of_two(network, tokenizer, text, "bad service") for text in texts])
        return chance(network, tokenizer, [text + adds for text in texts], place, 1)

    explanation = TextExplainer(number)(TEXT)
    answers = number([kept(WORDS, z) for z in words.subsets(6)])
    np.testing.assert_allclose(
        explanation.coefficients.values[0], expected(answers[:, None])[:, 0], atol=1e-9
    )
    assert np.abs(explanation.coefficients.values).max() > 1e-4


def test_answers_to_questions(tokenizer, bert, torch):
    network = bert("BertForQuestionAnswering")
    advice = r"answers with a part of a text: .*CompositeExplainer\(function, \{'question': 'text'"
    with pytest.raises(InputError, match=advice):
        CompositeExplainer((network, tokenizer), {"question": "text", "context": "text"})

    def answer_is_slow(batch):
        """The probability that the answer is "slow", 0 where the context lacks it."""
        numbers = []
        for question, context in zip(batch["question"], batch["context"], strict=True):
            encoded = tokenizer(question, context, return_tensors="pt")
            place = (
                encoded.input_ids[0].tolist().index(tokenizer.vocab["slow"]) if "slow" in context else None
            )
            with torch.inference_mode():
                answer = network(**encoded)
            both = softmax(answer.start_logits[0].numpy()) * softmax(answer.end_logits[0].numpy())
            numbers.append(0.0 if place is None else float(both[place]))
        return np.array(numbers)

    inputs = {"question": "good service", "context": "and slow food"}
    explanation = CompositeExplainer(answer_is_slow, dict.fromkeys(inputs, "text"))(inputs)
    assert explanation.feature_names[explanation.coefficients.values[0].argmax()] == "context: slow"


@pytest.mark.parametrize(
    ("task", "head", "advice"),
    [
        ("token-classification", "BertForTokenClassification", "labels each word"),
        ("fill-mask", "BertForMaskedLM", "fills in masked words"),
        ("feature-extraction", "BertModel", "gives no number to each of its labels"),
        ("text-generation", "BertLMHeadModel", "writes texts"),
    ],
)
def test_pipelines_are_refused_by_their_tasks(transformers, tokenizer, bert, task, head, advice):
    pipe = transformers.pipeline(task, bert(head), tokenizer=tokenizer, device="cpu")
    with pytest.raises(InputError, match=f"the {task} pipeline {advice}: explain a function"):
        TextExplainer(pipe)


def test_a_network_without_a_head(tokenizer, bert):
    with pytest.raises(ModelError, match="BertModel returns no logits: pass a network that classifies"):
        TextExplainer((bert("BertModel"), tokenizer))(TEXT)


def test_a_network_and_its_tokenizer_in_another_form_than_a_pair(tokenizer, bert):
    network = bert(id2label=LABELS)
    model = {"model": network, "tokenizer": tokenizer}
    for wrong in ([network, tokenizer], (tokenizer, network), model, (network,), [network, tokenizer, 3]):
        with pytest.raises(InputError, match=r"pass the tuple \(network, tokenizer\), the network first"):
            TextExplainer(wrong)
    with pytest.raises(InputError, match="prepares inputs and gives no answers"):
        TextExplainer(tokenizer)
    with pytest.raises(InputError, match="Tokenizer prepares inputs and gives no answers"):
        TextExplainer(tokenizer.backend_tokenizer)


def test_a_function_that_returns_what_a_pipeline_returns(transformers, tokenizer, bert):
    pipe = transformers.pipeline(
        "text-classification", bert(id2label=LABELS), tokenizer=tokenizer, device="cpu"
    )
    for answer in (lambda texts: pipe(texts), lambda texts: pipe(texts, top_k=None)):
        with pytest.raises(ModelError, match="pass the pipeline itself"):
            TextExplainer(answer)(TEXT)
    assert TextExplainer(pipe)(TEXT).output_names == tuple(LABELS.values())


def test_a_pipeline_that_is_made_by_its_class(transformers, tokenizer, bert):
    """It has no task, and was refused."""
    network = bert(id2label=LABELS)
    pipe = transformers.TextClassificationPipeline(model=network, tokenizer=tokenizer, device="cpu")
    expected = TextExplainer((network, tokenizer))(TEXT)
    np.testing.assert_allclose(
        TextExplainer(pipe)(TEXT).coefficients.values, expected.coefficients.values, atol=SINGLE
    )
    pipe = transformers.TokenClassificationPipeline(
        model=bert("BertForTokenClassification"), tokenizer=tokenizer, device="cpu"
    )
    with pytest.raises(InputError, match="the token-classification pipeline labels each word"):
        TextExplainer(pipe)


def test_a_pipeline_with_a_network_of_another_head(transformers, tokenizer, bert):
    for head in ("BertForNextSentencePrediction", "BertForMultipleChoice"):
        pipe = transformers.TextClassificationPipeline(model=bert(head), tokenizer=tokenizer, device="cpu")
        with pytest.raises(InputError, match=f"{head} .*: explain a function"):
            TextExplainer(pipe)


def test_a_network_without_its_tokenizer(tokenizer, bert):
    network = bert(id2label=LABELS)
    with pytest.raises(
        InputError, match=r"takes tokens, not texts: .*TextExplainer\(\(network, tokenizer\)\)"
    ):
        TextExplainer(network)
    assert TextExplainer((network, tokenizer))(TEXT).output_names == tuple(LABELS.values())


# -- photographs ---------------------------------------------------------------------------------------------

IMAGE = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)
QUARTERS = {"segments": "grid", "segment_options": {"rows": 2, "columns": 2}, "fill": 0}
GREY = IMAGE[..., :1]
# The same photograph in the types that people bring
PHOTOGRAPHS = {
    "floats to 1": (IMAGE / 255.0, IMAGE),
    "single floats to 1": ((IMAGE / 255.0).astype(np.float32), IMAGE),
    "floats to 255": (IMAGE.astype(np.float64), IMAGE),
    "long whole numbers": (IMAGE.astype(np.int64), IMAGE),
    "16 bits": (IMAGE.astype(np.uint16) * 257, IMAGE),
    "booleans": (IMAGE > 99, np.where(IMAGE > 99, 255, 0).astype(np.uint8)),
    "grey": (GREY[..., 0], np.repeat(GREY, 3, axis=2)),
    "grey with an axis": (GREY / 255.0, np.repeat(GREY, 3, axis=2)),
    "transparent": (np.concatenate([IMAGE, 0 * GREY + 255], axis=2), IMAGE),
}


def hidden(image, z):
    return (image * np.kron(np.reshape(z, (2, 2)), np.ones((8, 8)))[..., None]).astype(np.uint8)


@pytest.fixture
def vit(transformers):
    config = transformers.ViTConfig(image_size=16, patch_size=8, **SMALL, id2label={0: "cat", 1: "dog"})
    size = transformers.ViTImageProcessor(size={"height": 16, "width": 16})
    return transformers.ViTForImageClassification(config).eval(), size


@pytest.mark.parametrize(("photo", "seen"), PHOTOGRAPHS.values(), ids=PHOTOGRAPHS)
def test_a_photograph_of_any_type(torch, vit, photo, seen):
    explanation = ImageExplainer(vit, **QUARTERS)(photo)
    network, processor = vit
    answers = []
    for z in words.subsets(4):
        with torch.inference_mode():
            batch = processor(images=[hidden(seen, z)], return_tensors="pt")
            answers.append(softmax(network(**batch).logits[0].double().numpy()))
    order = [explanation.output_names.index(name) for name in ("cat", "dog")]
    np.testing.assert_allclose(
        explanation.coefficients.values[0][:, order], expected(answers, "superpixels"), atol=SINGLE
    )
    assert np.abs(explanation.coefficients.values).max() > 1e-3


def test_photographs_that_were_scaled_already(vit):
    for photo in (IMAGE / 127.5 - 1.0, IMAGE * 3.0):
        with pytest.raises(
            InputError, match=r"images from 0 to 255, or floats from 0 to 1, .* the unscaled image"
        ):
            ImageExplainer(vit, **QUARTERS)(photo)
    # the advice
    assert ImageExplainer(vit, **QUARTERS)((IMAGE / 127.5 - 1.0 + 1.0) / 2).method == "exact"


# -- devices and precisions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["texts", "images"])
def test_half_precision(torch, tokenizer, bert, vit, kind):
    """Explained probabilities of a bfloat16 network equal the network's answers."""
    if kind == "texts":
        network = bert(id2label=LABELS).to(torch.bfloat16)
        explanation = TextExplainer((network, tokenizer))(TEXT)
        expect = softmax(logits_of(network, tokenizer, [(TEXT,)])[0])
    else:
        network, processor = vit[0].to(torch.bfloat16), vit[1]
        explanation = ImageExplainer((network, processor), **QUARTERS, output=["cat", "dog"])(IMAGE)
        batch = processor(images=[IMAGE], return_tensors="pt").to(torch.bfloat16)
        expect = softmax(network(**batch).logits[0].detach().double().numpy())
    np.testing.assert_allclose(explanation.predictions[0], expect, atol=0.02)


def test_inputs_go_to_the_networks_own_device(monkeypatch):
    """A stand-in on another device: it refuses inputs that were not brought there, and has no doubles."""
    import sys
    from contextlib import nullcontext

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(inference_mode=nullcontext))

    class OnProcessor(np.ndarray):
        def double(self):
            return self

        def numpy(self):
            return np.asarray(self)

    class Logits(np.ndarray):
        def cpu(self):
            return self.view(OnProcessor)

    class Batch(dict):
        on = "cpu"

        def to(self, device):
            self.on = device
            return Batch(batch=self, texts=self["texts"])

    class Network:
        device = "cuda:1"
        config = SimpleNamespace(id2label=LABELS)

        def __call__(self, texts, batch):
            assert batch.on == "cuda:1"
            passes.append(len(texts))
            return SimpleNamespace(logits=np.array([[len(t), 0.0, 1.0] for t in texts]).view(Logits))

    class Tokenizer:
        def convert_tokens_to_ids(self, tokens):
            return tokens

        def __call__(self, texts, **_):
            return Batch(texts=texts, input_ids=texts)  # a token a letter

    passes = []
    explanation = TextExplainer((Network(), Tokenizer()))("a b")
    np.testing.assert_allclose(explanation.predictions[0], softmax(np.array([3.0, 0.0, 1.0])))
    # a GPU takes up to 2^15 tokens at once, and 32 texts of any length
    TextExplainer((Network(), Tokenizer()), max_calls=200, mask="0")(
        "a b c d e f g h i j k l m n o p q r s t"
    )
    assert 32 < max(passes) <= 200
    passes.clear()
    long = " ".join("w" * 1000 + letter for letter in "abcdefgh")
    TextExplainer((Network(), Tokenizer()), max_calls=200, mask="0")(long)
    assert max(passes) == 32


# -- batches -------------------------------------------------------------------------------------------------

LONG = "good food and slow bad service " * 2 + "good and bad food"


@pytest.mark.parametrize("kind", ["pair", "pipeline", "pipeline with its size"])
def test_batches_are_small_and_of_like_lengths(transformers, tokenizer, bert, kind):
    """Memory grows with a batch, and a batch is padded to its longest text."""
    network, shapes = bert(id2label=LABELS), []
    network.register_forward_pre_hook(
        lambda _, args, options: shapes.append(tuple(options["input_ids"].shape)), with_kwargs=True
    )
    model = (network, tokenizer)
    if kind != "pair":
        batch = {} if kind == "pipeline" else {"batch_size": 7}
        model = transformers.pipeline(
            "text-classification", network, tokenizer=tokenizer, **batch, device="cpu"
        )
    explainer = TextExplainer(model, bag=False, max_calls=400, contributions=False)
    explanation = explainer(LONG)
    assert max(rows for rows, _ in shapes) == (7 if kind == "pipeline with its size" else 32)
    assert sum(rows for rows, _ in shapes) >= explanation.model_calls >= 200
    # the largest call in order of length: within it no batch is shorter than the one before
    full = [length for rows, length in shapes if rows in (7, 32)]
    assert sum(a > b for a, b in pairwise(full)) <= len(shapes) / 4
    assert len(set(full)) > 3


@pytest.mark.parametrize("engine", ["limit", "lime"])
def test_limes_names_of_lime_take_pipelines_and_pairs(transformers, tokenizer, bert, engine):
    from limes.compat.lime.lime_text import LimeTextExplainer

    network = bert(id2label=LABELS)
    pipe = transformers.pipeline("text-classification", network, tokenizer=tokenizer, device="cpu")
    explained = LimeTextExplainer(class_names=[*LABELS.values()], engine=engine, random_state=0)

    def function(texts):
        return softmax(logits_of(network, tokenizer, [(text,) for text in texts]))

    of_function, of_pipe, of_pair = (
        dict(explained.explain_instance("good food", model, labels=(0,), num_samples=100).as_list(label=0))
        for model in (function, pipe, (network, tokenizer))
    )
    for other in (of_pipe, of_pair):
        assert other == pytest.approx(of_function, abs=SINGLE)
    assert max(map(abs, of_function.values())) > 1e-4
