"""Koriche et al. 2025, Tables 1, 2 and 4 and Figures 2 to 7: two JSON files a data set and instance.

    python papers/koriche-2025/run.py                         # all sets at hand, 20 instances
    python papers/koriche-2025/run.py --instances 2 --sets pollution airfoil_self_noise --parts tables
    python papers/koriche-2025/run.py --limit 10              # seconds a search may take, 60 in the paper

The part "tables" holds all explainers at k = 7, σ = 1 under both laws of ``laws.py``; "figures" the in-sample
errors under the literal law for k = 1 .. 10 and σ = 0.1 .. 1. What is there is not run again; Ctrl-C loses
the instance under way.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from laws import LAWS, precision
from sets import available, prepared
from tqdm.auto import tqdm

import explainers

RESULTS = Path(__file__).parent / "results"
SAMPLES, FRESH = 1000, 20_000
K, SPREAD = 7, 1.0
SPARSITIES = range(1, 11)
SPREADS = [round(0.1 * step, 1) for step in range(1, 11)]
# Literals up to which precision is reported (Table 2)
LOW = 24


def main() -> None:
    """Run what is missing."""
    options = _options()
    warnings.simplefilter("ignore")  # networks that stop early, as in the paper
    options.results.mkdir(exist_ok=True, parents=True)
    for file in tqdm([f for f in available() if not options.sets or f in options.sets]):
        paths = {
            (i, part): options.results / f"{file}-{i}-{part}.json"
            for i, part in product(range(options.instances), options.parts)
        }
        missing = {key: path for key, path in paths.items() if not path.exists()}
        if missing:
            _run(file, missing, options.limit)


def _run(file: str, missing: dict[tuple[int, str], Path], limit: float) -> None:
    task = prepared(file)
    baselines = {"lime": explainers.Lime(task), "maple": explainers.Maple(task)}
    for (i, part), path in tqdm(missing.items(), leave=False, desc=file):
        record = PARTS[part](task, task.instance(i), i, baselines, limit)
        path.write_text(json.dumps({"set": file, "instance": i, **record}))


def tables(task, x, seed: int, baselines: dict, limit: float) -> dict:
    """All explainers at one row under both laws, k = 7 and σ = 1."""
    others = {"lime": baselines["lime"].answer(x, K), "maple": baselines["maple"].answer(x)}
    about = {name: getattr(task, name) for name in ("categorical", "numeric", "rows", "error")}
    return {
        "literals": x.size,
        **about,
        "laws": {law: _under(law, task, x, seed, others, limit) for law in LAWS},
    }


def figures(task, x, seed: int, baselines: dict, limit: float) -> dict:
    """Errors in the sample by k (σ = 1) and by σ (k = 7) under the literal law."""
    lime = {k: baselines["lime"].answer(x, k) for k in SPARSITIES}
    return {
        "k": [_errors(task, x, seed, k, SPREAD, lime[k], limit) for k in SPARSITIES],
        "spread": [_errors(task, x, seed, K, spread, lime[K], limit) for spread in SPREADS],
    }


PARTS = {"tables": tables, "figures": figures}


def _under(name: str, task, x, seed: int, others: dict, limit: float) -> dict:
    law, rng, target = LAWS[name](x.size, SPREAD), np.random.default_rng(seed), _target(task, x)
    signs, values = drawn(law, task, x, SAMPLES, rng)
    fresh = drawn(law, task, x, FRESH, rng)
    problem = explainers.sample_problem(x, target, signs, values)
    best, proof = explainers.optimum(problem, K, limit)
    answers = {
        "cvx": explainers.relaxation(problem, K),
        "optimum": best,
        "iht": explainers.thresholding(problem, K),
        **others,
    }
    if name == "literal":
        more = drawn(law, task, x, 10 * SAMPLES, rng)
        answers["projection"] = explainers.projected(x, target, SPREAD, signs, values, K)
        answers["projection_10"] = explainers.projected(x, target, SPREAD, *more, K)
    methods = {}
    for method, answer in answers.items():
        if answer is None:
            continue
        methods[method] = {
            "rmse": answer.rmse(signs, values),
            "fresh_rmse": answer.rmse(*fresh),
            "nonzero": answer.nonzero,
            "seconds": answer.seconds,
        }
        if x.size <= LOW and method not in ("maple", "cvx"):
            methods[method]["precision"] = precision(law, task.predict, x, answer.u, target)
    return {**proof, "methods": methods}


def _errors(task, x, seed: int, k: int, spread: float, lime, limit: float) -> dict[str, float]:
    """In-sample errors under the literal law, as the figures have them; NaN where k weights cannot add up."""
    law, rng = LAWS["literal"](x.size, spread), np.random.default_rng(seed)
    target = _target(task, x)
    if abs(target) > k:
        return {"optimum": np.nan, "iht": np.nan, "lime": np.nan, "proved": np.nan}
    signs, values = drawn(law, task, x, SAMPLES, rng)
    problem = explainers.sample_problem(x, target, signs, values)
    best, proof = explainers.optimum(problem, k, limit)
    answers = {"optimum": best, "iht": explainers.thresholding(problem, k), "lime": lime}
    return {
        **{method: answer.rmse(signs, values) for method, answer in answers.items()},
        "proved": proof["proved"],
    }


def _target(task, x) -> float:
    return float(task.predict(x[None])[0])


def drawn(law, task, x, rows, rng):
    """Signs (m, d) and the network's answers (m,) of rows around x."""
    flips = law.flips(rng, rows)
    return 1.0 - 2.0 * flips, task.predict(np.where(flips, -x, x))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--sets", nargs="*", default=[])
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
