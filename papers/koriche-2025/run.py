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
from laws import LAWS
from sets import available, prepared
from tqdm.auto import tqdm

import explainers
from explainers import Setting

RESULTS = Path(__file__).parent / "results"
SAMPLES, FRESH = 1000, 20_000
K, SPREAD = 7, 1.0
SPARSITIES = range(1, 11)
SPREADS = [round(0.1 * step, 1) for step in range(1, 11)]
# Fresh rows where only the errors in the sample are drawn
FEW = 100


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
        "k": [
            _errors(task, x, Setting("literal", k, SPREAD, SAMPLES, FEW, limit, seed), lime[k])
            for k in SPARSITIES
        ],
        "spread": [
            _errors(task, x, Setting("literal", K, spread, SAMPLES, FEW, limit, seed), lime[K])
            for spread in SPREADS
        ],
    }


PARTS = {"tables": tables, "figures": figures}


def _under(law: str, task, x, seed: int, others: dict, limit: float) -> dict:
    setting = Setting(law, K, SPREAD, SAMPLES, FRESH, limit, seed)
    rules = {method: explainers.record(task, x, method, setting) for method in explainers.SOLVERS}
    baselines = {
        name: answer.record(task, x, setting, with_precision=name == "lime")
        for name, answer in others.items()
    }
    methods = {name: one for name, one in {**rules, **baselines}.items() if one is not None}
    return {"methods": methods}


def _errors(task, x, setting: Setting, lime) -> dict[str, float]:
    """In-sample errors under the literal law, as the figures have them; NaN where k weights cannot add up."""
    best = explainers.record(task, x, "optimum", setting)
    if best is None:
        return {"optimum": np.nan, "iht": np.nan, "lime": np.nan, "proved": np.nan}
    return {
        "optimum": best["rmse"],
        "iht": explainers.record(task, x, "iht", setting)["rmse"],
        "lime": lime.record(task, x, setting, with_precision=False)["rmse"],
        "proved": best["proved"],
    }


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
