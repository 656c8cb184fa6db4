"""Prompts in files: errors name what is wrong with them, and a small network answers them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import limes
from internals import app, program, read_prompt
from limes.exceptions import InputError

PIECES = ["Read:\n", {"sources": ["One. Two.", "Three."], "by": "sentence"}, "Which?"]
STORED = {"prompt": PIECES, "answer": "One"}


def written(folder: Path, stored: Any) -> Path:
    path = folder / "prompt.json"
    path.write_text(stored if isinstance(stored, str) else json.dumps(stored), "utf-8")
    return path


def test_a_file_has_a_prompt(tmp_path):
    prompt, answer, model = read_prompt(written(tmp_path, STORED))
    assert prompt.names == ("One.", "Two.", "Three.")
    assert str(prompt) == "Read:\nOne. Two.\nThree.\nWhich?"
    assert (answer, model) == ("One", None)


def test_a_file_has_messages(tmp_path):
    sources = ["Read:", {"sources": {"a": "One."}}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": sources}]
    prompt, answer, model = read_prompt(written(tmp_path, {"messages": messages, "model": "folder"}))
    assert prompt.names == ("a",)
    assert (answer, model) == (None, tmp_path / "folder")
    messages[1]["content"] = "One. Two."
    stored = {"messages": messages, "explain": ["user"], "by": "sentence"}
    assert read_prompt(written(tmp_path, stored))[0].names == ("One.", "Two.")


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ("{", "no JSON"),
        ([], "needs a prompt or messages"),
        ({"prompt": [], "messages": []}, "one of them"),
        ({"prompt": "a"}, "prompt must be a list"),
        ({"prompt": ["a"]}, "no part to explain"),
        ({"prompt": [{"source": ["a"]}]}, "'source'"),
        ({"prompt": [{"by": "sentence"}]}, "has sources"),
        ({"prompt": [{"sources": "a"}]}, r"\[text\]"),
        ({"prompt": ["a"], "by": "sentence"}, "go with messages"),
        ({"messages": [3]}, "message 0"),
        ({**STORED, "model": 3}, "path"),
        ({"prompts": []}, "needs a prompt"),
        ({"prompt": [{"sources": ["a"]}], "max_calls": 3}, "'max_calls'"),
    ],
)
def test_errors_name_what_is_wrong_with_a_file(tmp_path, stored, words):
    with pytest.raises(InputError, match=words):
        read_prompt(written(tmp_path, stored))


def test_a_model_is_needed(tmp_path):
    path = written(tmp_path, STORED)
    result = CliRunner().invoke(app, ["explain-prompt", str(path)])
    assert isinstance(result.exception, InputError)
    assert "--model" in str(result.exception)
    result = CliRunner().invoke(app, ["explain-prompt", str(path), "--model", str(tmp_path / "nothing")])
    assert "no such folder" in str(result.exception)


def test_a_saved_network_answers(tmp_path):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    bytewise = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[])
    )
    bytewise.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bytewise)
    network = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=256, n_embd=8, n_layer=1, n_head=1, n_positions=200, bos_token_id=255, eos_token_id=255
        )
    )
    folder = tmp_path / "network"
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path, page, stored = written(tmp_path, STORED), tmp_path / "page.html", tmp_path / "stored.json"
    command = ["explain-prompt", str(path), "--model", str(folder)]
    priced = CliRunner().invoke(app, [*command, "--cost"])
    assert "tokens" in priced.output
    result = CliRunner().invoke(app, [*command, "--html", str(page), "--json", str(stored)])
    assert result.exception is None
    assert "log p(One)" in result.output
    expected = limes.PromptExplainer((network, tokenizer))(read_prompt(path)[0], "One")
    again = limes.Explanation.read_json(stored)
    assert again.contributions.values == pytest.approx(expected.contributions.values, abs=1e-9)
    assert "Two." in page.read_text("utf-8")


def test_two_levels_show_the_prompt_once(capsys):
    """The whole prompt stood above each level's table."""
    prompt = limes.Prompt(
        "Read:", limes.sources(["Rome is old. It is big.", "Oslo is cold. It is far."], by="sentence"), "So?"
    )
    model = lambda prompts: [1.0 * ("Rome" in each) + ("cold" in each) for each in prompts]  # noqa: E731
    explanation = limes.PromptExplainer(model, max_calls=32)(prompt)
    assert len(explanation.levels) == 2
    program._show(explanation, None, None)
    printed = capsys.readouterr().out
    assert printed.count("Read:") == printed.count("So?") == 1
    # with the finer level, whose parts are its colours
    assert printed.index("Read:") > printed.index('"Rome')
    assert printed.count("contributions lead from there") == 2
    with pytest.raises(InputError, match="diagnose is about LIME's surrogate, and parts of a prompt"):
        limes.diagnose(explanation)
