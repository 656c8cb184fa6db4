"""The true coefficients: exactly where the model can be read, else from about a million calls.

The million are 16 independent runs of Sobol' points without a control, whose spread says how far their mean
may be off. They are kept in the machine's temporary folder, under a name made of the model's own answers.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

import limes
from benchmarks.accuracy import limes_sampled
from benchmarks.accuracy.cases import Case

RUNS = 16
CALLS = 2**16
# No seed of what is measured
_FIRST_SEED = 10_000


@dataclass(frozen=True)
class Truth:
    """Coefficients (d,), and the expected sum of their squared errors, 0 where exact."""

    coef: np.ndarray
    squared_error: float


def truth(case: Case, bandwidth: float) -> Truth:
    """The limit of the surrogate's coefficients at the case's row."""
    if case.readable is not None:
        explainer = limes.TabularExplainer(
            case.readable, case.table.X, output=case.output, bandwidth=bandwidth, method="exact"
        )
        return Truth(explainer(case.row).coefficients.values[0], 0.0)
    file = _file(case, bandwidth)
    if not file.exists():
        explain = limes_sampled.prepare(case, bandwidth, control="none")
        runs = np.stack([explain(CALLS, _FIRST_SEED + seed).coef for seed in range(RUNS)])
        file.parent.mkdir(exist_ok=True)
        np.save(file, runs)
    runs = np.load(file)
    return Truth(runs.mean(axis=0), float(runs.var(axis=0, ddof=1).sum() / len(runs)))


def _file(case: Case, bandwidth: float) -> Path:
    answers = np.asarray(case.answer(case.table.X))
    name = blake2b(answers.tobytes() + np.float64(bandwidth).tobytes(), digest_size=12).hexdigest()
    return Path(tempfile.gettempdir(), "limes-truths", f"{name}.npy")
