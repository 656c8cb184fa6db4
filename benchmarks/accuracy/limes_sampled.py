"""limes.TabularExplainer, sampled; by itself, or with one control."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import limes
from benchmarks.accuracy.cases import Case
from benchmarks.accuracy.sample import Sample, outside

NAME = "limes"


def prepare(case: Case, bandwidth: float, *, control: str = "auto") -> Callable[[int, int], Sample]:
    def explain(calls: int, seed: int) -> Sample:
        explainer = limes.TabularExplainer(
            case.subject,
            case.table.X,
            output=case.output,
            bandwidth=bandwidth,
            method="sampled",
            control=control,
            max_calls=calls,
            rng=seed,
        )
        return outside(case.clock, partial(_values, explainer, case))

    return explain


def _values(explainer: limes.TabularExplainer, case: Case) -> tuple[np.ndarray, str]:
    explanation = explainer(case.row, progress=False)
    return explanation.coefficients.values[0], explanation.coefficients.controls[0]
