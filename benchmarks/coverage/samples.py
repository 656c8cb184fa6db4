"""Samples of one case with many seeds, and how often their intervals hold the truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import limes
from benchmarks.coverage import truth
from benchmarks.coverage.functions import Case, Switches, Table
from limes._explainers.bound_input import BoundInput
from limes._explainers.masked import CONTROLS
from limes._explainers.options import SamplingOptions
from limes._explainers.results import sampling_warnings
from limes._fitting import fitted_at, moments_at
from limes._threads import progress_of
from limes._warnings import NOT_TRUSTED
from limes.models._calling.outputs import resolve

# Errors of coefficients, their standard errors, and whether the explanation distrusts them
Runs = tuple[np.ndarray, np.ndarray, np.ndarray]


def runs(case: Case, *, control: str, calls: int, seeds: int) -> Runs:
    """Errors and standard errors (seeds, coefficients), and which seeds' errors are distrusted (seeds,)."""
    if isinstance(case, Switches):
        expected = truth.of_switches(case)
        each = [_of_switches(case, control, calls, seed) for seed in range(seeds)]
    else:
        assert isinstance(case, Table)
        expected = truth.of_table(case)
        each = list(_of_table(case, control, calls, seeds))
    coef, errors, warnings = zip(*each, strict=True)
    distrusted = [any(NOT_TRUSTED in warning for warning in result) for result in warnings]
    shape = (seeds, expected.size)
    return (np.array(coef) - expected).reshape(shape), np.array(errors).reshape(shape), np.array(distrusted)


def _of_table(
    case: Table, control: str, calls: int, seeds: int
) -> Iterator[tuple[Any, Any, tuple[str, ...]]]:
    """Explain one row with the rows that each seed draws: rows of one explainer share these."""
    background, row, options = case.background(), case.row(), case.options()
    for seed in range(seeds):
        explainer = limes.TabularExplainer(
            case.function,
            background,
            control=control,
            # beside the rows of the sample: checks, the prediction, and what a call asks once more
            max_calls=(calls + 11) * 16 // 15,
            contributions=False,
            rng=seed,
            **options,
        )
        explanation = explainer(row, progress=False)
        yield (
            explanation.coefficients.values[0],
            explanation.coefficients.standard_errors[0],
            explanation.row_warnings[0],
        )


def _of_switches(case: Switches, control: str, calls: int, seed: int) -> tuple[Any, Any, tuple[str, ...]]:
    design = case.design()
    model = BoundInput(model=case.function, output=resolve(case.function), ask=case.function)
    options = SamplingOptions(
        "sampled", max_calls=calls, control=control, rng=seed, contributions=False, controls=CONTROLS
    )
    expectation = model.expectation(design, options)
    prediction = case.function(design.at_instance[None])
    moments = moments_at(design, expectation, prediction[0], progress_of(shown=False))
    fitted = fitted_at(design, moments, prediction, penalty=None)
    names = [f"{j}" for j in range(case.d)]
    warnings = sampling_warnings(fitted, names, ["f"], sampling=options.sampling)
    return fitted.surrogate.coef[0], fitted.surrogate.standard_errors[0], warnings.get(0, ())


def summary(result: Runs) -> dict:
    """Return what a table shows: coverage where errors are finite and trusted, and how often they are not."""
    errors, standard, distrusted = result
    finite = np.isfinite(standard)
    inside = np.abs(errors) <= 1.96 * standard + 1e-12
    trusted = finite & ~distrusted[:, None]
    return {
        "coverage": _mean(inside[trusted]),
        "noise": _noise(inside, trusted),
        "trusted": int(trusted.any(axis=1).sum()),
        "coverage, all": _mean(inside[finite]),
        "error / standard error": _ratio(errors, standard, trusted),
        "warned": float(distrusted.mean()),
        "infinite": float(1 - finite.mean()),
    }


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if values.size else None


def _noise(inside: np.ndarray, trusted: np.ndarray) -> float | None:
    """Standard error of the coverage: coefficients of one seed are not independent."""
    each = [row[use].mean() for row, use in zip(inside, trusted, strict=True) if use.any()]
    if not each:
        return None
    # seeds that all cover may still be a chance: as many as of one coefficient each
    chance = np.sqrt(0.05 * 0.95 / sum(use.sum() for use in trusted))
    return float(max(chance, np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.5))


def _ratio(errors: np.ndarray, standard: np.ndarray, use: np.ndarray) -> float | None:
    if not use.any():
        return None
    square = np.mean(standard[use] ** 2)
    return float(np.sqrt(np.mean(errors[use] ** 2) / square)) if square > 0 else None
