"""Contributions alone, of functions of 30 columns from 500 and 1,000 rows asked in all, beside walks.

The twelve functions get further columns that they do not read, under the joint law of 100 rows, where sums
over all sets of columns are exact. Others read nine of 30 columns that are drawn independently; their
expectations are means over 2^13 Sobol' points. Walks (``limes._shapley.permutations``) have as many calls, of
which they leave none to coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import qmc

import limes
from benchmarks.contributions_sampled import cases as functions
from benchmarks.contributions_sampled.cases import Counter
from benchmarks.contributions_sampled.truth import of_background, shapley_values
from benchmarks.progress import say
from limes._sampling.sampled import Sampling
from limes._shapley.permutations import PermutationSampler
from limes._shapley.starts import OccurringStarts, ProductStarts

COLUMNS, BACKGROUND, ROWS, SEEDS, USED = 30, 100, 2, 3, 9
CALLS = (500, 1000)
_POINTS = 1 << 13


class _Case(NamedTuple):
    name: str
    law: str | None
    answer: Callable[[np.ndarray], np.ndarray]
    background: np.ndarray
    rows: np.ndarray
    truth: Callable[[np.ndarray], tuple[float, np.ndarray]]  # base, and contributions of the first columns


def measure(*, seeds: int = SEEDS, cases: str = "") -> list[dict[str, Any]]:
    """Return a record for each function and number of calls."""
    records = []
    for case in _cases():
        if cases.lower() not in case.name.lower():
            continue
        say(case.name)
        truths = [case.truth(row) for row in case.rows]
        for calls in CALLS:
            records.append(_measured(case, truths, calls, seeds))
            its = records[-1]
            say(f"  {calls}: {its['error']:.3f}, walks {its['walks']:.3f}, covered {its['covered']:.3f}")
    return records


def _cases() -> Iterator[_Case]:
    rng = np.random.default_rng(2)
    for case in functions.cases():
        d = case.X.shape[1]
        X = np.column_stack([case.X, rng.normal(size=(len(case.X), COLUMNS - d))])
        chosen = np.random.default_rng(1).permutation(len(X))
        background, rows = X[chosen[:BACKGROUND]], X[chosen[BACKGROUND : BACKGROUND + ROWS]]

        def answer(x: np.ndarray, f: Any = case.answer, d: int = d) -> np.ndarray:
            return f(np.asarray(x)[:, :d])

        def truth(
            row: np.ndarray, f: Any = case.answer, d: int = d, b: np.ndarray = background
        ) -> tuple[float, np.ndarray]:
            return of_background(f, b[:, :d], row[:d])

        yield _Case(case.name, "joint", answer, background, rows, truth)
    background = _mixed_columns(rng)
    for name, function in HELD_OUT.items():
        yield _Case(
            f"held out: {name}",
            None,
            lambda x, f=function: np.asarray(f(np.asarray(x)[:, :USED]), dtype=float),
            background,
            background[[5, 77]],
            lambda row, f=function: _of_product(f, background[:, :USED], row[:USED]),
        )


def _mixed_columns(rng: np.random.Generator) -> np.ndarray:
    """600 rows of correlated columns; one is skew, one has two values, one few."""
    X = rng.normal(size=(600, COLUMNS))
    X = 0.8 * X + 0.6 * X @ rng.normal(size=(COLUMNS, COLUMNS)) / np.sqrt(COLUMNS)
    X[:, 2], X[:, 5] = np.exp(X[:, 2]).round(2), X[:, 5] > 0.4
    X[:, 8] = np.clip(np.round(1.5 * X[:, 8]), -2, 2)
    return X


def _of_product(f: Any, background: np.ndarray, row: np.ndarray) -> tuple[float, np.ndarray]:
    levels = qmc.Sobol(USED, seed=0).random(_POINTS)
    places = np.minimum((levels * len(background)).astype(int), len(background) - 1)
    drawn = np.take_along_axis(np.sort(background, axis=0), places, axis=0)
    game = np.empty((2,) * USED)
    for kept in np.ndindex(*game.shape):
        game[kept] = f(np.where(kept, row, drawn)).mean()
    return float(game[(0,) * USED]), shapley_values(game.reshape(-1))


def _measured(case: _Case, truths: list[Any], calls: int, seeds: int) -> dict[str, Any]:
    names = ("squares", "walks", "covered", "base", "base_covered", "unused", "rows")
    numbers: dict[str, list[float]] = {name: [] for name in names}
    for row, (base, phi) in zip(case.rows, truths, strict=True):
        largest, expected = np.abs(phi).max(), np.zeros(COLUMNS)
        expected[: phi.size] = phi
        for seed in range(seeds):
            ask = Counter(case.answer)
            explainer = limes.TabularExplainer(
                ask, case.background, law=case.law, bandwidth=np.inf, max_calls=calls, rng=seed
            )
            account = explainer.contributions(row[None], progress=False).contributions
            errors = account.standard_errors[0]
            away = account.values[0] - expected
            numbers["rows"].append(ask.rows)
            numbers["squares"].append(float((away**2).mean() / largest**2))
            # the expected numbers are means over points themselves
            numbers["covered"].append(float((np.abs(away) <= 1.96 * errors + 5e-4 * largest).mean()))
            of_base = abs(account.base_values[0] - base)
            numbers["base"].append(float(of_base / largest))
            numbers["base_covered"].append(float(of_base <= 1.96 * account.base_errors[0] + 1e-3 * largest))
            numbers["unused"].append(float(errors[phi.size :].max() / largest))
            walked = _walked(case, explainer, row, int(account.calls[0]), seed)
            numbers["walks"].append(float(((walked - expected) ** 2).mean() / largest**2))
    squares, walks = (float(np.sqrt(np.mean(numbers.pop(name)))) for name in ("squares", "walks"))
    of_base = float(np.sqrt(np.mean(np.square(numbers.pop("base")))))
    rest = {name: float(np.mean(its)) for name, its in numbers.items()}
    rest["rows"] = max(numbers["rows"])
    return {"case": case.name, "calls": calls, "error": squares, "walks": walks, "base": of_base, **rest}


def _walked(case: _Case, explainer: Any, row: np.ndarray, calls: int, seed: int) -> np.ndarray:
    model, f = explainer._model, case.answer  # noqa: SLF001 - the laws that it was made with
    if case.law == "joint":
        law = model.law
        around = law.around(law.cells(row[None])[0])
        starts: Any = OccurringStarts(case.background, f(case.background)[:, None], around)
    else:
        starts = ProductStarts(model.account.at(row))
    sampler = PermutationSampler(f, Sampling(max(calls, 4 * (2 * COLUMNS - 1)), seed=seed))
    return sampler.at(row, f(row[None]), starts).values[0, :, 0]


_WEIGHTS = np.random.default_rng(3).normal(size=(USED, 12))
_OUT, _SHIFTS = np.random.default_rng(4).normal(size=(2, 12))

HELD_OUT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "issue": lambda u: (
        50 + 10 * u[:, 0] + 8 * np.maximum(u[:, 1], 0) * u[:, 2] + 5 * np.sin(u[:, 3]) + 3 * u[:, 4:].sum(1)
    ),
    "network": lambda u: np.tanh(u @ _WEIGHTS + _SHIFTS) @ _OUT,
    "kink": lambda u: np.maximum(u @ np.linspace(-1.0, 1.5, USED), 0.3),
    "interactions only": lambda u: np.sign(u[:, 0]) * np.sign(u[:, 1]) * (1 + u[:, 3]) + u[:, 4] * u[:, 6],
    "rare": lambda u: u[:, 0] + 20.0 * ((u[:, 1] > 1.2) & (u[:, 3] > 1.0)),
    "one column": lambda u: np.exp(u[:, 0]),
    "heavy tails": lambda u: np.exp(0.8 * (u[:, 0] + u[:, 1] - u[:, 3] + 0.5 * u[:, 4])),
    "discontinuous": lambda u: np.floor(2 * u[:, 0] + u[:, 1]) + np.where(u[:, 5] > 0, u[:, 3], -u[:, 4]),
    "extremes": lambda u: np.minimum(u[:, 0], u[:, 1]) + np.maximum(u[:, 3], np.maximum(u[:, 4], u[:, 6])),
}
