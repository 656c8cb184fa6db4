"""CPU time and memory of one explanation of a long prompt, beside as many passes over whole prompts.

``python -m benchmarks.prompts.speed``, with OMP_NUM_THREADS=1, as CPU seconds are of one thread: needs torch
and transformers, and keeps what it measures. The network has random weights; half of the prompt's 2,000
tokens are in front of its 40 sources. Each way has a separate process.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import limes
from benchmarks.speed.run import machine

MEASURED = Path(__file__).parent / "speed.json"
WAYS = ("limes", "plain", "pass")
CALLS, TOKENS, SOURCES = 64, 2000, 40
_FACTS = {"hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 8, "num_attention_heads": 8}


def main() -> None:
    command = [sys.executable, "-m", "benchmarks.prompts.speed"]
    lines = [
        subprocess.run([*command, way], check=True, capture_output=True, text=True).stdout for way in WAYS
    ]
    facts = {"calls": CALLS, "tokens": TOKENS, "sources": SOURCES, "network": _FACTS}
    measured = {"machine": machine(), **facts, "ways": [json.loads(line) for line in lines]}
    MEASURED.write_text(json.dumps(measured, indent=1) + "\n", "utf-8")


def measure(way: str) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"vocab_size": 32_000, "max_position_embeddings": 4096, "bos_token_id": 1, "eos_token_id": 2}
    network = LlamaForCausalLM(LlamaConfig(**_FACTS, **sizes, num_key_value_heads=4)).eval()
    half = TOKENS // 2
    documents = [" ".join(f"{i}w{j}" for j in range(half // SOURCES)) for i in range(SOURCES)]
    prompt = limes.Prompt(" ".join(["the"] * half) + "\n", limes.sources(documents), "What?")
    explainer = limes.PromptExplainer((network, _Words()), max_calls=CALLS)
    # its libraries, which take memory once
    limes.PromptExplainer(lambda prompts: [len(text) % 7 for text in prompts])(prompt, progress=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    if way == "limes":
        explainer(prompt, "so it is", progress=False)
    else:
        rng = np.random.default_rng(0)
        for shown in rng.integers(0, 2, (CALLS if way == "plain" else 2, SOURCES)):
            rows = [_Words()(text)["input_ids"] for text in prompt.compose([shown])]
            if way == "pass":  # one pass with as many tokens as limes has in one
                rows = [_Words()(str(prompt))["input_ids"]] * (4096 // TOKENS)
            with torch.inference_mode():
                network(input_ids=torch.tensor(rows), use_cache=False, logits_to_keep=4)
    seconds = time.process_time() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps({"way": way, "CPU seconds": round(seconds, 2), "megabytes": round(grown / 1024, 1)}))


class _Words:
    """A tokenizer: each word is a token."""

    eos_token_id = 2
    model_max_length = 4096

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [3 + sum(map(ord, word)) * 7919 % 31_000 for word in text.split()]}

    def decode(self, tokens: Any, **_: Any) -> str:
        return " ".join(f"w{token}" for token in tokens)


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()
