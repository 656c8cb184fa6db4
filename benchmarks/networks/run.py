"""Time and memory of a network of BERT-base's size: limes, and the network's own pipeline on the same texts.

Random weights, a text of 120 tokens; needs torch and transformers. Each way has a fresh process: limes on a
pair (network, tokenizer), limes on a pipeline, and the pipeline alone in batches of 32, which is asked the
very texts that limes asked. The first answer is not timed: it loads the device's libraries. Seconds are those
of all threads on the processor, of the clock on a GPU; memory is that of the process, libraries and weights
included, or what torch took of the GPU.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import readme
from benchmarks.progress import say
from benchmarks.speed.run import machine

# [CLS] and [SEP] stand around them
_WORDS = 118
# Device, precision of the weights, and calls
CASES = (("cpu", "float32", 128), ("cuda", "float32", 4096), ("cuda", "float16", 4096))
ROUNDS = 3
WAYS = ("pair", "pipeline", "alone")


def measure(rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """A row for each case that this machine can run, and what was stored of the other cases."""
    if find_spec("transformers") is None:
        say("networks: as they were, for want of torch and transformers\n")
        return list(readme.load("networks"))
    import torch

    devices = {"cpu"} | ({"cuda"} if torch.cuda.is_available() else set())
    kept = [row for row in readme.load("networks") if row["device"] not in devices]
    rows = [_case(*case, rounds) for case in CASES if case[0] in devices]
    say("done\n")
    return sorted(rows + kept, key=lambda row: row["device"])


def _case(device: str, precision: str, calls: int, rounds: int) -> dict[str, Any]:
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(rounds):
            for way in WAYS:
                say(f"networks: {device}, {precision}, round {i + 1}, {way}")
                words = [
                    sys.executable,
                    "-m",
                    "benchmarks.networks.run",
                    way,
                    device,
                    precision,
                    str(calls),
                    folder,
                ]
                out = subprocess.run(words, check=True, capture_output=True, text=True).stdout
                runs[way].append(json.loads(out.splitlines()[-1]))
    figures = {
        way: {name: median(run[name] for run in of) for name in ("seconds", "megabytes")}
        for way, of in runs.items()
    }
    return {
        "device": device,
        "machine": machine() if device == "cpu" else _card(),
        "precision": precision,
        "calls": calls,
        "rounds": rounds,
        "figures": figures,
    }


def _card() -> str:
    import torch

    return str(torch.cuda.get_device_name())


# -- in a separate process ---------------------------------------------------------------------------------


def _timed(way: str, device: str, precision: str, calls: int, folder: Path) -> dict[str, float]:
    """Run one way; the pair notes the texts that limes asks, for the pipeline alone."""
    import torch
    from transformers import pipeline

    from limes import TextExplainer

    network, tokenizer = _network(folder, device, precision)
    pipe = pipeline("text-classification", model=network, tokenizer=tokenizer)
    pipe("w1")
    texts, noted = folder / "texts.json", []
    if way == "pair":
        encode = type(tokenizer).__call__

        def noting(self: Any, text: Any, *others: Any, **options: Any) -> Any:
            noted.extend([] if isinstance(text, str) else text)  # a text alone is measured
            return encode(self, text, *others, **options)

        type(tokenizer).__call__ = noting
    clock = time.process_time if device == "cpu" else time.perf_counter
    start = clock()
    if way == "alone":
        pipe(json.loads(texts.read_text()), batch_size=32, top_k=None)
    else:
        model = (network, tokenizer) if way == "pair" else pipe
        explainer = TextExplainer(model, max_calls=calls, tolerance=1e-9, contributions=False)
        explainer(" ".join(f"w{i}" for i in range(_WORDS)), progress=False)
    seconds = clock() - start
    if noted:
        texts.write_text(json.dumps(noted))
    if device == "cuda":
        return {"seconds": seconds, "megabytes": torch.cuda.max_memory_allocated() / 2**20}
    return {"seconds": seconds, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _network(folder: Path, device: str, precision: str) -> tuple[Any, Any]:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    torch.manual_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(3000))]
    (folder / "vocabulary.txt").write_text("\n".join(vocabulary))
    tokenizer = BertTokenizerFast(vocab_file=str(folder / "vocabulary.txt"))
    network = BertForSequenceClassification(BertConfig(vocab_size=len(vocabulary))).eval()
    return network.to(device, getattr(torch, precision)), tokenizer


if __name__ == "__main__":
    print(json.dumps(_timed(*sys.argv[1:4], int(sys.argv[4]), Path(sys.argv[5]))))
