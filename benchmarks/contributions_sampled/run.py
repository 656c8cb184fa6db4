"""Squared errors of contributions of black boxes, at equal rows asked, beside shap's samplers.

A background of 100 rows, as shap's users take, under the joint law and an infinite bandwidth: the game of
limes is that of shap's samplers, whose values are sums over all sets of columns. Rows asked are counted at
the function, and are all that an explanation needs, its coefficients' and its checks' included.
shap's explainers are given as many evaluations of sets as that many rows allow, each of about 100 rows.
"""

from __future__ import annotations

import itertools
import logging
import warnings
from typing import Any

import numpy as np

import limes
from benchmarks.contributions_sampled import accounts, trees
from benchmarks.contributions_sampled import cases as functions
from benchmarks.contributions_sampled.cases import Case, Counter
from benchmarks.contributions_sampled.truth import of_background
from benchmarks.progress import say
from benchmarks.speed.run import machine

BACKGROUND, ROWS, SEEDS = 100, 3, 3
# Budgets: multiples of the rows that PermutationExplainer asks for one order of the columns and its reverse
TIMES = (1, 4)


def measure(*, seeds: int = SEEDS, cases: str = "") -> dict[str, Any]:
    """Return a record for each case and budget."""
    records = []
    for case in functions.cases():
        if cases.lower() in case.name.lower():
            say(case.name)
            records += _compared(case, seeds)
    measured = trees.measure() if cases.lower() in "trees" else []
    return {
        "machine": machine(),
        "background": BACKGROUND,
        "rows": ROWS,
        "seeds": seeds,
        "cases": records,
        "trees": measured,
        "accounts": accounts.measure(seeds=seeds, cases=cases),
    }


def _compared(case: Case, seeds: int) -> list[dict[str, Any]]:
    d = case.X.shape[1]
    chosen = np.random.default_rng(1).permutation(len(case.X))
    background, rows = case.X[chosen[:BACKGROUND]], case.X[chosen[BACKGROUND : BACKGROUND + ROWS]]
    truth = np.stack([of_background(case.answer, background, row)[1] for row in rows])
    records = []
    for times in TIMES:
        budget = times * (2 * d + 1) * BACKGROUND
        squares: dict[str, list[float]] = {"limes": [], "kernel": [], "permutation": []}
        calls: dict[str, list[float]] = {name: [] for name in squares}
        inside: list[float] = []
        for seed, (row, phi) in itertools.product(range(seeds), zip(rows, truth, strict=True)):
            for name, way in (("limes", _limes), ("kernel", _kernel), ("permutation", _permutation)):
                counted = Counter(case.answer)
                values, errors = way(counted, background, row, budget, seed)
                squares[name].append(float(((values - phi) ** 2).mean()))
                calls[name].append(counted.rows)
                if errors is not None:
                    inside.append(float((np.abs(values - phi) <= 1.96 * errors + 1e-9).mean()))
        records.append(
            {
                "case": case.name,
                "columns": d,
                "budget": budget,
                "size": float((truth**2).mean()),
                "squares": {name: float(np.mean(its)) for name, its in squares.items()},
                "asked": {name: float(np.mean(its)) for name, its in calls.items()},
                "covered": float(np.mean(inside)),
            }
        )
        ours = records[-1]["squares"]
        say(
            f"  {budget}: kernel / limes {ours['kernel'] / ours['limes']:.1f}, permutation / limes "
            f"{ours['permutation'] / ours['limes']:.1f}, covered {records[-1]['covered']:.3f}"
        )
    return records


def _limes(ask: Counter, background: np.ndarray, row: np.ndarray, budget: int, seed: int) -> tuple[Any, Any]:
    def explained(most: int) -> Any:
        return limes.TabularExplainer(
            ask,
            background,
            law="joint",
            bandwidth=np.inf,
            max_calls=most,
            tolerance=1e-12,
            rng=seed,
            contributions=False,
        )(row[None], progress=False)

    ask.rows = 0
    explanation = explained(budget)
    # what was asked for the coefficients, and is not left for the contributions
    explanation = explained(budget - ask.rows)
    ask.rows //= 2
    account = explanation.contributions
    return account.values[0], account.standard_errors[0]


def _kernel(
    ask: Counter, background: np.ndarray, row: np.ndarray, budget: int, seed: int
) -> tuple[Any, None]:
    import shap

    np.random.seed(seed)  # noqa: NPY002 - the explainer's only seed
    # at least d + 2 sets
    sets = max(budget // len(background), row.size + 2)
    with _quiet():
        explainer = shap.KernelExplainer(ask, background)
        return explainer.shap_values(row[None], nsamples=sets, silent=True, l1_reg=False)[0], None


def _permutation(
    ask: Counter, background: np.ndarray, row: np.ndarray, budget: int, seed: int
) -> tuple[Any, None]:
    import shap

    with _quiet():
        explainer = shap.PermutationExplainer(
            ask, shap.maskers.Independent(background, len(background)), seed=seed
        )
        evaluations = max(budget // len(background), 2 * row.size + 1)
        return explainer(row[None], max_evals=evaluations, silent=True).values[0], None


def _quiet() -> Any:
    logging.getLogger("shap").setLevel(logging.ERROR)
    context = warnings.catch_warnings()
    warnings.simplefilter("ignore")
    return context
