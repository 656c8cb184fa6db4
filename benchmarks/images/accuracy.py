"""Error of all coefficients against the truth by the number of calls, for limes and ``lime``.

The truth is the mean of 16 runs of 2^12 calls without a control variate; it is kept in ``.cache``, as it
takes from minutes to an hour a photograph.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.images.networks import LITE, SMALL, Network, lime_coefficients
from benchmarks.progress import say

CACHE = Path(__file__).parent / ".cache"
RUNS, CALLS = 16, 4096
SEEDS = 3
LIME_CALLS = 1000
LIMES_CALLS = (300, 400, 600, 1000)
# Classes that are explained together, as by default; the likeliest is looked at
TOP = 5
# A truth of the larger network takes a quarter of an hour of a core
PHOTOGRAPHS = (
    *("astronaut", "bird", "cat", "chelsea_cat", "china_palace", "coffee"),
    *("flower", "grace_hopper", "parrot", "raccoon", "rocket"),
)
CASES = [
    *((LITE, name) for name in ("cat", "coffee", "bird")),
    *((SMALL, name) for name in PHOTOGRAPHS),
]


def measure(seeds: int = SEEDS, only: str = "") -> list[dict]:
    """Every case whose name has ``only`` in it."""
    return [
        _case(network, photograph, seeds)
        for network, photograph in CASES
        if only.lower() in f"{network.name} {photograph}".lower()
    ]


def truth(network: Network, session: Any, photograph: str) -> tuple[Any, Any]:
    """Coefficients (d,) of the likeliest class, and their standard errors."""
    file = CACHE / f"{Path(network.file).stem}-{photograph}.npz"
    if not file.exists():
        image, runs = network.image(photograph), []
        for run in range(RUNS):
            say(f"{network.name}, {photograph}: truth, {run + 1} of {RUNS}")
            explainer = network.explainer(
                session, control="none", max_calls=CALLS, rng=1000 + run, method="sampled"
            )
            runs.append(explainer(image, progress=False).coefficients.values[0].ravel())
        CACHE.mkdir(exist_ok=True)
        errors = np.std(runs, axis=0, ddof=1) / np.sqrt(RUNS)
        np.savez(file, coef=np.mean(runs, axis=0), errors=errors)
    with np.load(file) as truths:
        return truths["coef"], truths["errors"]


def _case(network: Network, photograph: str, seeds: int) -> dict:
    session, image = network.session(), network.image(photograph)
    coef, errors = truth(network, session, photograph)
    label = int(np.argmax(network.probabilities(session)(image[None])[0]))
    result: dict[str, list] = {f"lime {LIME_CALLS}": []}
    result |= {f"limes {calls}": [] for calls in LIMES_CALLS}
    covered = []
    for seed in range(seeds):
        say(f"{network.name}, {photograph}: seed {seed + 1} of {seeds}")
        result[f"lime {LIME_CALLS}"].append(
            lime_coefficients(network, session, image, label, LIME_CALLS, seed)
        )
        for calls in LIMES_CALLS:
            explainer = network.explainer(session, max_calls=calls, rng=seed, top=TOP)
            explanation = explainer(image, progress=False)
            result[f"limes {calls}"].append(explanation.coefficients.values[0][:, 0])
        gap = np.abs(explanation.coefficients.values[0][:, 0] - coef)
        covered.append(gap <= 1.96 * np.hypot(explanation.coefficients.standard_errors[0][:, 0], errors))
    return {
        "network": network.name,
        "photograph": photograph,
        "label": network.labels[label],
        "superpixels": coef.size,
        "seeds": seeds,
        "noise": float((errors**2).sum()),
        "errors": {who: _squares(runs, coef) for who, runs in result.items()},
        "top_differs": {who: _differs(runs) for who, runs in result.items()},
        "covered": float(np.mean(covered)),
    }


def _squares(runs: list, coef: Any) -> float:
    """Squared error of all coefficients together, mean over seeds."""
    return float(((np.array(runs) - coef) ** 2).sum(axis=1).mean())


def _differs(runs: list) -> float:
    """How many pairs of runs have other sets of five largest coefficients."""
    tops = [frozenset(np.argsort(-np.abs(run))[:5].tolist()) for run in runs]
    pairs = [a != b for i, a in enumerate(tops) for b in tops[:i]]
    return float(np.mean(pairs)) if pairs else 0.0
