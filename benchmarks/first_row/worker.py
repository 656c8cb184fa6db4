"""One library on one table: ``python -m benchmarks.first_row.worker FILE LIBRARY``.

Seconds are those of the clock from the loading of the model, which imports what it needs, to the explanation
of one row.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Ask = Callable[[np.ndarray], np.ndarray]


def of_limes(X: np.ndarray, ask: Ask) -> dict[str, Any]:
    import limes

    explanation = limes.TabularExplainer(ask, X)(X[0])
    error = float(
        explanation.coefficients.standard_errors.max() / np.abs(explanation.coefficients.values).max()
    )
    return {
        "values": explanation.coefficients.values[0].tolist(),
        "error": error,
        "control": explanation.coefficients.controls[0],
    }


def of_lime(X: np.ndarray, ask: Ask) -> dict[str, Any]:
    from lime.lime_tabular import LimeTabularExplainer

    explainer = LimeTabularExplainer(X, random_state=0)
    explainer.explain_instance(X[0], _both(ask))
    return {}


def coefficients_of_lime(X: np.ndarray, ask: Ask) -> dict[str, Any]:
    """All of `lime`'s coefficients, where by default it shows ten."""
    from lime.lime_tabular import LimeTabularExplainer

    explainer = LimeTabularExplainer(X, random_state=0, feature_selection="none")
    one = explainer.explain_instance(X[0], _both(ask), num_features=X.shape[1])
    return {"values": [value for _, value in sorted(one.local_exp[1])]}


def _both(ask: Ask) -> Ask:
    """The probabilities of both classes, by that of the second."""

    def answer(x: np.ndarray) -> np.ndarray:
        second = ask(x)
        return np.column_stack([1.0 - second, second])

    return answer


def main(file: str, library: str) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    start, cpu = time.perf_counter(), time.process_time()
    X, model = pickle.loads(Path(file).read_bytes())  # noqa: S301 - written by the run
    calls = 0

    def ask(x: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += len(x)
        return model(x)

    run = {"limes": of_limes, "lime": of_lime, "all of lime": coefficients_of_lime}[library]
    result = run(X, ask)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    # of this program alone: what getrusage tells begins with the size of the process that started it
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(float(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:"))
    return {**result, "seconds": seconds, "cpu": cpu, "calls": calls, "mb": peak}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
