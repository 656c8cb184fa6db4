"""Prompts of functions: their texts, and accounts against all orders of showing parts."""

from __future__ import annotations

import re
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import limes
from limes.exceptions import InputError, ModelError, UnknownOptionError

DOCUMENTS = {
    "keeper": "The keeper is called Tomas. He came in 1911.",
    "boat": "The boat is red. It leaks.",
    "mill": "The mill is old. Its owner is Ada. She likes bread.",
}
QUESTION = "\nWho is the keeper?"


def prompt_of(by: str = "sentence", **options: Any) -> limes.Prompt:
    return limes.Prompt("Read:\n", limes.sources(DOCUMENTS, by=by, **options), QUESTION)


def answers(prompts: list[str]) -> list[float]:
    """A sum, a pair that is needed together, and a fact that is enough once."""
    return [
        4.0 * ("Tomas" in text)
        + 1.5 * ("Ada" in text and "bread" in text)
        - 0.5 * ("red" in text or "old" in text)
        - 6.0
        for text in prompts
    ]


def shapley(f: Any, d: int) -> Any:
    values, orders = np.zeros(d), [*permutations(range(d))]
    for order in orders:
        shown = np.zeros(d)
        before = f(shown)
        for j in order:
            shown[j] = 1.0
            values[j] += f(shown) - before
            before = f(shown)
    return values / len(orders)


class Counted:
    """A function that counts the prompts that it answers."""

    def __init__(self, function: Any) -> None:
        self.function, self.prompts = function, 0

    def __call__(self, prompts: list[Any]) -> Any:
        self.prompts += len(prompts)
        return self.function(prompts)


# -- texts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["document", "paragraph", "sentence"])
@pytest.mark.parametrize("separator", ["\n", " -- ", ""])
def test_the_whole_prompt_is_the_documents_with_their_separators(by, separator):
    prompt = prompt_of(by, separator=separator)
    whole = "Read:\n" + "".join(text + separator for text in DOCUMENTS.values()) + QUESTION
    assert prompt.compose(np.ones((1, len(prompt.names)))) == [whole] == [str(prompt)]
    assert prompt.compose(np.zeros((1, len(prompt.names)))) == [f"Read:\n{QUESTION}"]


def test_parts_are_documents_paragraphs_or_sentences():
    text = "One. Two.\n\nThree."
    assert limes.Prompt(limes.sources([text])).names == (text,)
    assert limes.Prompt(limes.sources([text], by="paragraph")).names == ("One. Two.", "Three.")
    assert limes.Prompt(limes.sources([text], by="sentence")).names == ("One.", "Two.", "Three.")
    assert prompt_of("document").names == ("keeper", "boat", "mill")
    assert not prompt_of("document").has_levels
    assert prompt_of().group.tolist() == [0, 0, 1, 1, 2, 2, 2]


def test_a_part_takes_the_space_behind_it_along():
    prompt = limes.Prompt(limes.sources(["One. Two.", "Three."], by="sentence"), "?")
    assert prompt.compose([[1, 0, 1], [0, 1, 0], [0, 0, 1]]) == ["One. \nThree.\n?", "Two.\n?", "Three.\n?"]


def test_fill_stands_in_the_place_of_each_part():
    prompt = limes.Prompt(limes.sources(["One. Two.", "Three."], by="sentence"), "?").filled("[...]")
    assert prompt.compose([[0, 1, 0]]) == ["[...] Two.\n[...]\n?"]


def test_fields_of_a_template():
    text = "Dear {name}, {{keep}} {it}: {city}"
    prompt = limes.Prompt.template(text, {"name": "Ann", "city": "Rome"}, explain=["city"])
    assert prompt.names == ("city",)
    assert prompt.compose([[0], [1]]) == ["Dear Ann, {{keep}} {it}: ", "Dear Ann, {{keep}} {it}: Rome"]


def test_chats_are_messages_whose_contents_come_and_go():
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I am in Rome. It rains."},
        {"role": "assistant", "content": "I see."},
        {"role": "user", "content": "What now?"},
    ]
    prompt = limes.Prompt.chat(messages)
    assert prompt.names == ("system 0", "user 1", "assistant 2")
    assert prompt.compose([[1, 1, 1]]) == [messages]
    (without,) = prompt.compose([[1, 0, 1]])
    assert without == [messages[0], {"role": "user", "content": ""}, *messages[2:]]
    sentences = limes.Prompt.chat(messages, explain=["user"], by="sentence")
    assert sentences.names == ("I am in Rome.", "It rains.", "user 3")
    assert sentences.group_names == ("user 1", "user 3")
    assert limes.Prompt.chat(messages, explain=[-1]).names == ("user 3",)


def test_a_message_may_have_sources():
    content = limes.Prompt("Read:\n", limes.sources(["One.", "Two."]), "Which?")
    prompt = limes.Prompt.chat([{"role": "user", "content": content}])
    assert prompt.names == ("One.", "Two.")
    assert prompt.compose([[0, 1]]) == [[{"role": "user", "content": "Read:\nTwo.\nWhich?"}]]


def test_the_texts_of_parts_are_where_the_picture_says():
    for prompt in (prompt_of(), limes.Prompt.chat([{"role": "user", "content": prompt_of()}])):
        explanation = limes.PromptExplainer(lambda prompts: np.zeros(len(prompts)))(prompt)
        text = explanation.provenance["text"]
        for level, names in zip(explanation.levels, (DOCUMENTS.values(), prompt.names), strict=True):
            spans = [level.provenance["spans"][condition][0] for condition in level.conditions[0]]
            assert [text[start:end] for start, end in spans] == [*names]


# -- accounts ------------------------------------------------------------------------------------------------


def test_few_parts_are_exact():
    prompt, model = prompt_of(), Counted(answers)
    explanation = limes.PromptExplainer(model, max_calls=256)(prompt)
    expected = shapley(lambda shown: answers(prompt.compose(shown[None]))[0], 7)
    np.testing.assert_allclose(explanation.contributions.values[0], expected, atol=1e-12)
    assert explanation.contributions.base_values[0] == answers(prompt.compose(np.zeros((1, 7))))[0]
    assert explanation.predictions[0] == answers([str(prompt)])[0]
    assert explanation.method == "exact"
    assert not explanation.contributions.standard_errors.any()
    assert explanation.model_calls == model.prompts <= 256


@pytest.mark.parametrize("level", [0.1, 1.0, -3.7e8])
def test_a_constant_has_contributions_of_zero(level):
    prompt, _ = _two_levels([2, 1, 1])
    explanation = limes.PromptExplainer(lambda prompts: [level] * len(prompts))(prompt)
    assert not explanation.contributions.values.any()
    assert not explanation.levels[0].contributions.values.any()
    words = limes.TextExplainer(lambda texts: [level] * len(texts))("one two three four")
    assert not words.contributions.values.any()


def test_documents_are_sums_of_their_sentences():
    coarse, fine = limes.PromptExplainer(answers, max_calls=256)(prompt_of()).levels
    assert coarse.feature_names == ("keeper", "boat", "mill")
    parts = np.split(fine.contributions.values[0], [2, 4])
    np.testing.assert_allclose(coarse.contributions.values[0], [part.sum() for part in parts], atol=1e-12)


def test_many_parts_are_sampled_within_the_budget_and_add_up():
    prompt = limes.Prompt(limes.sources([f"Fact {i}." for i in range(30)]), "?")

    def score(prompts: list[str]) -> list[float]:
        return [("Fact 7." in text) + 2.0 * ("Fact 3." in text and "Fact 5." in text) for text in prompts]

    model = Counted(score)
    explanation = limes.PromptExplainer(model, max_calls=128)(prompt)
    account = explanation.contributions
    assert explanation.method == "sampled"
    assert explanation.model_calls == model.prompts <= 128
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, atol=1e-12)
    truth = np.zeros(30)
    truth[[7, 3, 5]] = 1.0
    assert (np.abs(account.values[0] - truth) <= 4.0 * account.standard_errors[0] + 1e-12).all()


def test_batches_change_nothing():
    prompt = limes.Prompt(limes.sources([f"Fact {i}." for i in range(20)]), "?")

    def score(prompts: list[str]) -> list[float]:
        return [float(len(text) % 7) for text in prompts]

    alone, together = (
        limes.PromptExplainer(score, max_calls=80, batch_size=size, rng=3)(prompt) for size in (1, 64)
    )
    np.testing.assert_array_equal(alone.contributions.values, together.contributions.values)
    other = limes.PromptExplainer(score, max_calls=80, rng=4)(prompt)
    assert (other.contributions.values != alone.contributions.values).any()


def test_several_numbers_are_several_outputs():
    def two(prompts: list[str]) -> Any:
        return np.column_stack([answers(prompts), np.zeros(len(prompts))])

    explanation = limes.PromptExplainer(two, max_calls=256)(prompt_of())
    assert explanation.contributions.values.shape == (1, 7, 2)
    assert not explanation.contributions.values[..., 1].any()


def test_a_random_model_is_never_exact():
    rng = np.random.default_rng(0)
    explanation = limes.PromptExplainer(
        lambda prompts: answers(prompts) + rng.normal(size=len(prompts)), max_calls=200
    )(prompt_of())
    assert explanation.method == "sampled"
    assert explanation.contributions.base_errors.all()
    assert any("answered differently" in text for text in explanation.row_warnings[0])


def test_texts_that_a_hosted_model_writes_are_compared():
    def write(prompts: list[str]) -> list[str]:
        return ["Tomas" if "Tomas" in text else "I do not know" for text in prompts]

    def same(answer: str, text: str) -> float:
        return float(answer == text)

    explanation = limes.PromptExplainer(write, similarity=same, max_calls=256)(prompt_of())
    assert explanation.output_names == ("similarity to 'Tomas'",)
    assert explanation.predictions[0] == 1.0
    np.testing.assert_allclose(explanation.contributions.values[0], [1, 0, 0, 0, 0, 0, 0], atol=1e-12)
    other = limes.PromptExplainer(write, similarity=same, max_calls=256)(prompt_of(), "Ada")
    assert not other.contributions.values.any()


@pytest.mark.parametrize(
    ("similarity", "message"),
    [
        (lambda a, b: 1 / 0, "similarity of 'Tomas' and 'Ada' raised ZeroDivisionError: division by zero"),
        (lambda a, b: None, "similarity of 'Tomas' and 'Ada' raised TypeError"),
        (lambda a, b: float("nan") if b != a else 1.0, "similarity of 'Tomas' and 'Ada' returned nan"),
    ],
)
def test_failures_of_a_similarity_are_not_the_models(similarity, message):
    def write(prompts: list[str]) -> list[str]:
        return ["Tomas" if "Tomas" in text else "Ada" for text in prompts]

    with pytest.raises(ModelError, match=f"^{message}") as caught:
        limes.PromptExplainer(write, similarity=similarity)(prompt_of(), "Tomas")
    assert len(caught.value.batch) == 2


def test_texts_without_a_similarity_are_refused_by_what_is_missing():
    def write(prompts: list[str]) -> list[str]:
        return ["yes"] * len(prompts)

    with pytest.raises(ModelError, match=r"^write\(\) returns texts: pass similarity="):
        limes.PromptExplainer(write)(prompt_of())


def test_a_failed_call_continues():
    calls = []

    def fails_once(prompts: list[str]) -> list[float]:
        calls.append(len(prompts))
        if len(calls) == 5:
            raise TimeoutError("the service is busy")
        return answers(prompts)

    explainer = limes.PromptExplainer(fails_once, max_calls=256, batch_size=16)
    with pytest.raises(ModelError, match="busy"):
        explainer(prompt_of())
    explanation = explainer(prompt_of())
    whole = limes.PromptExplainer(answers, max_calls=256, batch_size=16)(prompt_of())
    np.testing.assert_array_equal(explanation.contributions.values, whole.contributions.values)
    # all subsets once, 16 of them twice, the ends twice in each call; and the batch that failed
    assert sum(calls) <= 128 + 16 + 8 + 16


def test_a_model_that_writes_at_random_is_not_exact():
    """Two answers to the whole prompt are often the same: other sets are asked about again."""
    prompt = limes.Prompt(limes.sources([f"Fact {i}." for i in range(4)]), "?")
    inside = []
    for seed in range(25):
        rng = np.random.default_rng(seed)

        def write(prompts: list[str], rng: Any = rng) -> list[str]:
            return [
                ("yes" if "Fact 0" in text else "no") if rng.random() < 0.8 else "perhaps" for text in prompts
            ]

        explainer = limes.PromptExplainer(
            write, similarity=lambda _, text: float(text == "yes"), max_calls=64, rng=seed
        )
        explanation = explainer(prompt, "yes", progress=False)
        its = explanation.contributions
        assert explanation.method == "sampled"
        assert explanation.model_calls <= 64
        assert its.values.sum() + its.base_values[0] == pytest.approx(explanation.predictions[0])
        inside.append(np.abs(its.values[0] - [0.8, 0.0, 0.0, 0.0]) <= 1.96 * its.standard_errors[0])
    assert np.mean(inside) >= 0.9


def test_costs_are_told_before_anything_is_asked():
    model = Counted(answers)
    cost = limes.PromptExplainer(model).cost(prompt_of(), max_calls=48)
    assert model.prompts == 0
    assert cost.calls == 48
    assert cost.tokens is cost.passes is cost.seconds is None
    assert limes.PromptExplainer(model).cost(prompt_of(), max_calls=10_000).calls == 2**7 + 2 + 16
    assert re.fullmatch(r"48 calls, about [\d,]+ characters", str(cost))


def test_costs_of_a_function_that_answers_at_random_are_bounded_too():
    """Such a function is asked more often than about all subsets, which the cost says."""
    rng = np.random.default_rng(0)
    model = Counted(lambda prompts: rng.normal(size=len(prompts)))
    prompt = limes.Prompt(limes.sources(["One.", "Two.", "Three."]), "?")
    explainer = limes.PromptExplainer(model, max_calls=60)
    cost = explainer.cost(prompt)
    explanation = explainer(prompt, progress=False)
    assert (cost.calls, cost.random_calls) == (2**3 + 2 + 16, 60)
    assert str(cost).endswith("; up to 60 calls if answers to one prompt differ")
    assert cost.calls < explanation.model_calls <= model.prompts <= cost.random_calls


def test_one_source_of_a_function_that_answers_at_random_has_errors():
    """Its contribution is a difference of two means, whose errors cover."""
    prompt = limes.Prompt("Read: ", limes.sources(["A fact."]), "?")
    inside = []
    for seed in range(200):
        rng = np.random.default_rng(seed)

        def score(prompts: list[str], rng: Any = rng) -> Any:
            return ["fact" in text for text in prompts] + rng.normal(scale=0.5, size=len(prompts))

        its = limes.PromptExplainer(score, max_calls=(8, 16, 64)[seed % 3])(prompt, progress=False)
        assert its.method == "sampled"
        account = its.contributions
        assert account.values[0, 0] + account.base_values[0] == pytest.approx(its.predictions[0])
        inside.append(abs(account.values[0, 0] - 1.0) <= 1.96 * account.standard_errors[0, 0])
    assert np.mean(inside) >= 0.9


def test_explanations_are_shown_and_stored(tmp_path):
    explanation = limes.PromptExplainer(answers, max_calls=256)(prompt_of())
    assert "with every source left out" in str(explanation)
    assert "LIME" not in str(explanation)
    page = explanation.to_html()
    assert "The keeper is called Tomas." in page
    again = limes.Explanation.from_json(explanation.to_json())
    np.testing.assert_array_equal(again.contributions.values, explanation.contributions.values)
    np.testing.assert_array_equal(
        again.levels[0].contributions.values, explanation.levels[0].contributions.values
    )
    assert explanation.plot.text() is not None
    assert explanation.to_frame().shape[0] == 7
    explanation.to_report(tmp_path / "report.html")
    with pytest.raises(InputError, match="contributions alone"):
        _ = explanation.coefficients


def test_names_are_data():
    markup = "<script>alert(1)</script> was here."
    page = limes.PromptExplainer(answers)(limes.Prompt(limes.sources([markup, "Tomas"]))).to_html()
    assert "<script>" not in page


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: limes.sources([]), "empty"),
        (lambda: limes.sources("one text"), r"pass \[text\]"),
        (lambda: limes.sources(["a", 3]), "document 1 is no text"),
        (lambda: limes.sources({"a": " "}), "document 'a' is empty"),
        (lambda: limes.sources(["a"], by="word"), "by='word'"),
        (lambda: limes.sources(["a"], separator=None), "separator"),
        (lambda: limes.Prompt("a text"), "no part to explain"),
        (lambda: limes.Prompt(["a"]), "limes.sources"),
        (lambda: limes.Prompt.template("{a}", {"b": "x"}), "no place {b}"),
        (lambda: limes.Prompt.template("{a}", {"a": 3}), "'a' is 3"),
        (lambda: limes.Prompt.template("{a}", {"a": "x"}, explain=["b"]), "must name fields"),
        (lambda: limes.Prompt.chat([]), "one or more"),
        (lambda: limes.Prompt.chat([{"content": "a"}]), "message 0"),
        (lambda: limes.Prompt.chat([{"role": "user", "content": [1]}]), "content of message 0"),
        (lambda: limes.Prompt.chat([{"role": "user", "content": "a"}]), "one message"),
        (
            lambda: limes.Prompt.chat([{"role": "user", "content": "a"}], explain=["tool"]),
            "'tool' is no role",
        ),
        (lambda: limes.PromptExplainer(3), "text-generation pipeline"),
        (lambda: limes.PromptExplainer(len, fill=None), "fill"),
        (lambda: limes.PromptExplainer(len, similarity=3), "similarity"),
        (lambda: limes.PromptExplainer(answers)("a text"), "limes.Prompt"),
        (lambda: limes.PromptExplainer(answers)(prompt_of(), "Tomas"), "leave answer= out"),
        (lambda: limes.PromptExplainer(answers)(prompt_of(), by="word"), "by='word'"),
    ],
)
def test_errors_are_advice(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_unknown_options_are_refused():
    with pytest.raises(UnknownOptionError, match="max_calls"):
        limes.PromptExplainer(answers, max_call=3)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda prompts: [1.0], r"was given 2 prompts .*expected"),
        (lambda prompts: ["a"] * len(prompts), "number|text|str"),
        (lambda prompts: [np.nan] * len(prompts), r"nan for prompt 0 of a batch of 2"),
    ],
)
def test_answers_of_another_kind_are_refused(returned, words):
    with pytest.raises(ModelError, match=words):
        limes.PromptExplainer(returned)(prompt_of())


def test_a_writer_must_return_texts():
    with pytest.raises(ModelError, match="a text for each"):
        limes.PromptExplainer(answers, similarity=lambda a, b: 0.0)(prompt_of(), "Tomas")


def test_batches_are_as_large_as_the_user_says():
    sizes = []

    def score(prompts: list[str]) -> list[float]:
        sizes.append(len(prompts))
        return answers(prompts)

    limes.PromptExplainer(score, max_calls=256, batch_size=5)(prompt_of())
    assert max(sizes) == 5


def test_a_failed_explanation_continues_with_the_same_sets():
    prompt = limes.Prompt(limes.sources([f"Fact {i}." for i in range(20)]), "?")
    calls = []

    def score(prompts: list[str]) -> list[float]:
        calls.append(len(prompts))
        if len(calls) == 4:
            raise TimeoutError("the service is busy")
        return [float(len(text) % 7) for text in prompts]

    explainer = limes.PromptExplainer(score, max_calls=60, batch_size=8)
    with pytest.raises(ModelError, match="busy"):
        explainer(prompt)
    continued = explainer(prompt)
    calls += [0] * 10
    whole = limes.PromptExplainer(score, max_calls=60, batch_size=8)(prompt)
    np.testing.assert_array_equal(continued.contributions.values, whole.contributions.values)


def test_seconds_are_known_after_a_call():
    explainer = limes.PromptExplainer(answers)
    assert explainer.cost(prompt_of()).seconds is None
    explainer(prompt_of())
    assert explainer.cost(prompt_of()).seconds > 0


def test_parts_that_act_together_are_named():
    prompt = limes.Prompt(limes.sources(["One is a.", "Two is b.", "Three is c.", "Four is b."]), "?")

    def score(prompts: list[str]) -> list[float]:
        return [
            2.0 * ("One" in text and "Three" in text) + 3.0 * ("Two" in text or "Four" in text)
            for text in prompts
        ]

    explanation = limes.PromptExplainer(score)(prompt)
    text = str(explanation)
    assert "Beside each other these add" in text
    assert '"One is a." and "Three is c." more (+2' in " ".join(text.split())
    assert '"Two is b." and "Four is b." less (-3' in " ".join(text.split())
    assert "Beside each other" in explanation.to_html()
    assert "Beside each other" in explanation.to_html(kind="report")
    again = limes.Explanation.from_json(explanation.to_json())
    assert "less (-3" in str(again)
    assert "less (-3" not in str(again[:, ["One is a.", "Two is b."]])


def _two_levels(sizes: list[int]) -> tuple[limes.Prompt, list[str]]:
    parts = [[f"Part {i}{'abc'[j]} is here." for j in range(size)] for i, size in enumerate(sizes)]
    return limes.Prompt(limes.sources([" ".join(its) for its in parts], by="sentence"), "?"), [
        text for its in parts for text in its
    ]


@pytest.mark.parametrize("sizes", [[2, 2, 1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]])
def test_intervals_cover_at_two_levels(sizes):
    """Few sets of documents are fitted by models that are wrong: that of their sentences has to help."""
    prompt, texts = _two_levels(sizes)
    weights = np.random.default_rng(1).normal(size=len(texts))
    truth = weights.copy()
    truth[[0, 3]] += 1.0

    def score(prompts: list[str]) -> list[float]:
        shown = [np.array([text in prompt for text in texts]) for prompt in prompts]
        return [float(weights @ z + 2.0 * (z[0] and z[3])) for z in shown]

    accounts = [
        limes.PromptExplainer(score, max_calls=48, rng=seed)(prompt).contributions for seed in range(12)
    ]
    values = np.array([account.values[0] for account in accounts])
    errors = np.array([account.standard_errors[0] for account in accounts])
    assert (np.abs(values - truth) <= 1.96 * errors + 1e-9).mean() >= 0.95
    assert ((values - truth) ** 2).sum(axis=1).mean() < 0.03 * (truth**2).sum()


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1], [1, 2, 1]])
def test_all_subsets_are_asked_where_the_budget_allows(sizes):
    prompt, texts = _two_levels(sizes)
    model = Counted(lambda prompts: [float(texts[1] in text) for text in prompts])
    explanation = limes.PromptExplainer(model, max_calls=18)(prompt)  # 2^4, and two checks
    assert explanation.method == "exact"
    assert model.prompts == 18
    assert explanation.contributions.values[0] == pytest.approx([0.0, 1.0, 0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: limes.Prompt.template("{a}", {"a": ""}), "do not explain it"),
        (lambda: limes.Prompt.template("{a}", {}), "fields is empty"),
        (lambda: limes.PromptExplainer(answers, max_calls=3), "max_calls"),
        (lambda: limes.PromptExplainer([len, len]), "the network first"),
        (
            lambda: limes.PromptExplainer(answers, similarity=lambda a, b: 0.0)(prompt_of(), ["a", "b"]),
            "one text",
        ),
    ],
)
def test_more_errors_are_advice(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_texts_without_a_measure_are_refused():
    with pytest.raises(ModelError, match="similarity="):
        limes.PromptExplainer(lambda prompts: ["a"] * len(prompts))(prompt_of())


def test_one_name_of_a_field_is_enough():
    assert limes.Prompt.template("{a} {b}", {"a": "x", "b": "y"}, explain="b").names == ("b",)
