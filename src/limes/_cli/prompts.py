"""A prompt in a file, and the language model that answers it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limes._checks import require
from limes._cli import files
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._explainers.prompt import PromptExplainer
    from limes._explainers.prompts import Prompt

_KEYS = ("prompt", "messages", "explain", "by", "answer", "model")
_EXAMPLE = '{"prompt": ["Read:\\n", {"sources": ["...", "..."], "by": "sentence"}, "Who?"], "answer": "Ada"}'


def read_prompt(path: Path) -> tuple[Prompt, Any, Path | None]:
    """The prompt of a JSON file, its answer or answers if it has some, and the model that it names."""
    from limes._explainers.prompts import Prompt

    text = files.read_text(path)
    try:
        stored = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is no JSON: {error}; it may be {_EXAMPLE}") from error
    if not isinstance(stored, dict) or ("prompt" in stored) == ("messages" in stored):
        raise InputError(f"{path} needs a prompt or messages, one of them: such as {_EXAMPLE}")
    if unknown := [key for key in stored if key not in _KEYS]:
        raise InputError(f"{path} has {unknown[0]!r}, which is not among {list(_KEYS)}")
    if "prompt" in stored:
        if "explain" in stored or "by" in stored:
            raise InputError(f"{path}: explain and by go with messages; sources state theirs")
        prompt = Prompt(*map(_piece, _listed(stored["prompt"], "prompt")))
    else:
        messages = [
            {**message, "content": _content(message.get("content"))}
            if isinstance(message, Mapping)
            else message
            for message in _listed(stored["messages"], "messages")
        ]
        prompt = Prompt.chat(messages, stored.get("explain"), by=stored.get("by", "message"))
    named = stored.get("model")
    if named is not None and not isinstance(named, str):
        raise InputError(f"{path}: model must be the path of a folder or a file, got {named!r}")
    return prompt, stored.get("answer"), None if named is None else path.parent / named


def _listed(stored: Any, key: str) -> list[Any]:
    if not isinstance(stored, list):
        raise InputError(f"{key} must be a list, got {type(stored).__name__}")
    return stored


def _content(stored: Any) -> Any:
    """A text, or a prompt of pieces."""
    from limes._explainers.prompts import Prompt

    return Prompt(*map(_piece, stored)) if isinstance(stored, list) else stored


def _piece(stored: Any) -> Any:
    from limes._explainers.prompts import sources

    if not isinstance(stored, Mapping):
        return stored
    if unknown := set(stored) - {"sources", "by", "separator"}:
        raise InputError(f"a piece of a prompt has {min(unknown)!r}: it has sources, by and separator")
    if "sources" not in stored:
        raise InputError("a piece of a prompt is a text, or has sources")
    options = {key: stored[key] for key in ("by", "separator") if key in stored}
    return sources(stored["sources"], **options)


def load_explainer(model: Path, **options: Any) -> PromptExplainer:
    """The explainer of a folder that transformers saved, or of a .gguf file; nothing is downloaded or run."""
    from limes._explainers.prompt import PromptExplainer

    if model.suffix != ".gguf" and not model.is_dir():
        raise InputError(f"{model}: no such folder of a language model, and no .gguf file")
    if model.suffix == ".gguf":
        files.check_exists(model)
    require("torch", "explain-prompt")
    transformers = require("transformers", "explain-prompt")
    folder, of_file = (model.parent, {"gguf_file": model.name}) if model.suffix == ".gguf" else (model, {})
    safe = {"local_files_only": True, "trust_remote_code": False, **of_file}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **safe)
        network = transformers.AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, **safe)
    except (OSError, ValueError, ImportError, KeyError) as error:
        raise InputError(f"{model} could not be loaded as a causal language model: {error}") from error
    return PromptExplainer((network, tokenizer), **options)
