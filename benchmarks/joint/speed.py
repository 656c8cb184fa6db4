"""``python -m benchmarks.joint.speed``: Shapley values of trees against a background, beside two libraries.

limes, shap and Woodelf are asked for interventional values against all rows of the background, which weigh
the same. CPU seconds of one thread, in one process, where single rows take turns. What limes computes once is
the first row's time, less a later one's; Woodelf keeps nothing, and a call of one row takes it seconds. shap
is asked where that takes no minutes, and so is Woodelf: not of the forest. The table is
printed; with ``--save`` it goes into results/joint_speed.json and pages/joint.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks import readme
from benchmarks.progress import say
from benchmarks.speed.cases import BOOSTED, SHALLOW, build
from benchmarks.speed.run import machine

CASES = (BOOSTED[0], SHALLOW[0])
SIZES = (100, 1_000, 10_000, 100_000)
# Explained rows of a batch, single rows, and single rows of shap by the size of its background
BATCH, ONE_BY_ONE, OF_SHAP = 1_000, 60, {100: 20, 1_000: 5}
# Rows of a batch of Woodelf about a forest, whose call takes minutes: it is not asked
OF_WOODELF: dict[tuple[str, int], int] = {}
# Goals for a row by itself, in milliseconds: that of the compiled part
GOALS = {(BOOSTED[0], 100): 0.5, (BOOSTED[0], 100_000): 1.0, (SHALLOW[0], 100): 8.0}
_VERSIONS = ("shap", "woodelf-explainer", "xgboost-cpu", "scikit-learn")


def measure(cases: str = "", save: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
    """A record for each model and size of the background; those so far are saved."""
    versions = {name: version(name) for name in _VERSIONS}
    result: dict[str, Any] = {"machine": machine(), "versions": versions, "batch": BATCH, "cases": []}
    for name in CASES:
        if cases.lower() in name.lower():
            model = build(name).model
            for size in SIZES:
                say(f"{name}, {size:,} background rows")
                result["cases"].append({"case": name, "background": size, **_measured(model, size, name)})
                if save is not None:
                    save(result)
    return result


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of all threads, and the result."""
    start = time.process_time()
    result = work()
    return 1e3 * (time.process_time() - start), result


def _measured(model: Any, size: int, name: str) -> dict[str, Any]:
    import limes
    from limes import _kernels
    from limes._shapley.interventional import against
    from limes._threads import use_threads

    use_threads(1)
    # numbers that float32 holds, as the libraries compare in it
    table = np.random.default_rng(9).random((BATCH + size, 20)).astype(np.float32).astype(float)
    rows, background = table[:BATCH], table[BATCH:]
    game = against(limes.models.read(model), background)
    explainer = limes.TabularExplainer(model, background, law="joint", bandwidth=np.inf)
    first, _ = cpu(lambda: game(rows[:1], None))
    kept = game._kept_of_runs()  # noqa: SLF001

    def compiled(row: np.ndarray) -> None:
        for each in kept:
            _kernels.add_against(each, row, np.zeros((1, 1)), np.zeros((1, 3, row.size, 1)))

    explainer.contributions(rows[:1])
    ask = _shap(model, background) if size in OF_SHAP else None
    one: dict[str, list[float]] = {"kernel": [], "call": [], "shap": []}
    for i in range(ONE_BY_ONE):
        row = rows[i : i + 1]
        works = {"kernel": partial(compiled, row), "call": partial(explainer.contributions, row)}
        if ask is not None and i < OF_SHAP[size]:
            works["shap"] = partial(ask, row)
        for what, work in works.items():
            one[what].append(cpu(work)[0])
    median = {what: float(np.median(times)) if times else None for what, times in one.items()}
    before, explanation = cpu(lambda: explainer.contributions(rows))
    some = rows[: BATCH if name != SHALLOW[0] else OF_WOODELF.get((name, size), 0)]
    seconds, values = cpu(lambda: _woodelf(model, background, some)) if len(some) else (None, None)
    after, _ = cpu(lambda: explainer.contributions(rows))
    ours = explanation.contributions.values
    largest = np.abs(ours).max()
    apart = {}
    if values is not None:
        apart["woodelf"] = float(np.abs(ours[: len(some)] - values).max() / largest)
    if ask is not None:
        apart["shap"] = float(np.abs(ours[:5] - ask(rows[:5])).max() / largest)
    return {
        "build": 1e-3 * (first - median["kernel"]),
        "megabytes": sum(each.bytes for each in kept) / 1e6,
        "one row": median,
        "batch": {
            "limes": 0.5 * (before + after) / BATCH,
            "woodelf": None if seconds is None else seconds / len(some),
        },
        "apart": apart,
        "goal": GOALS.get((name, size)),
    }


def _shap(model: Any, background: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    import shap

    masker = shap.maskers.Independent(background, max_samples=len(background))
    explainer = shap.TreeExplainer(model, masker, feature_perturbation="interventional")
    return lambda rows: explainer.shap_values(rows, check_additivity=False)


def _woodelf(model: Any, background: np.ndarray, rows: np.ndarray) -> np.ndarray:
    import pandas as pd
    from woodelf import WoodelfExplainer

    explainer = WoodelfExplainer(model, pd.DataFrame(background))
    return np.asarray(explainer.shap_values(pd.DataFrame(rows), verbose=False))


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    lines = [
        f"Machine: {result['machine']}; one thread, CPU time. {versions}. "
        f"Batches of {result['batch']:,} rows.",
        "",
        "| model | background rows | once, s | kept, MB | one row, compiled part, ms | goal | one row, call "
        "| shap | batch, ms a row | Woodelf | apart from shap, Woodelf |",
        "|---" * 11 + "|",
    ]
    for case in result["cases"]:
        one, batch, apart, goal = (case[name] for name in ("one row", "batch", "apart", "goal"))
        reached = "" if goal is None else f"{goal:g}, {'reached' if one['kernel'] <= goal else 'missed'}"
        shap = "–" if one["shap"] is None else f"{one['shap']:.3g}"
        near = ", ".join(f"{apart[who]:.0e}" if who in apart else "–" for who in ("shap", "woodelf"))
        woodelf = "–" if batch["woodelf"] is None else f"{batch['woodelf']:.3g}"
        lines.append(
            f"| {case['case'].partition(',')[0]} | {case['background']:,} | {case['build']:.2f} "
            f"| {case['megabytes']:.0f} | {one['kernel']:.3g} | {reached} | {one['call']:.3g} | {shap} "
            f"| {batch['limes']:.3g} | {woodelf} | {near} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.joint.speed", description=__doc__)
    parser.add_argument("--cases", default="", help="only models with this in their name")
    parser.add_argument("--save", action="store_true", help="also into results/ and pages/")
    arguments = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        # libraries read it when they are imported
        again = [sys.executable, "-m", "benchmarks.joint.speed", *sys.argv[1:]]
        raise SystemExit(subprocess.run(again, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode)
    warnings.simplefilter("ignore")
    print(text(measure(arguments.cases, _saved if arguments.save else None)))


def _saved(result: dict[str, Any]) -> None:
    readme.save("joint_speed", result)
    readme.replace("joint_speed", text(result), by="benchmarks.joint.speed")


if __name__ == "__main__":
    main()
