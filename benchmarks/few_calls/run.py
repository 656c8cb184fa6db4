"""Measure all: the engine of accounts, ContextCite's LASSO, and leaving one part out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import DATA
from benchmarks.few_calls import reviews
from benchmarks.few_calls.games import Game, games
from benchmarks.progress import say
from benchmarks.readme import HOME
from benchmarks.speed.run import machine
from limes._explainers import hierarchy
from limes._explainers.hierarchy import GroupedUnits, account_of

BUDGETS, SEEDS, LARGEST = (32, 64, 128, 256), 3, 5
# Fresh half-size ablations of which predicted and true answers are ranked, and parts that leave
ABLATIONS, LEAVING = 200, 3
# The engine before LASSO, pairs and sets of groups, from the same games; measured once, by `measure_before`
BEFORE = HOME / "few_calls" / "before.json"


def by_limes(game: Game, calls: int, seed: int) -> tuple[Any, Any]:
    units = GroupedUnits.of(np.arange(game.d), np.zeros(game.d, dtype=int))
    its = account_of(
        lambda z: game.ask(z)[:, None],
        units,
        game.ask(np.ones((1, game.d))),
        calls - 1,
        np.random.default_rng(seed),
        is_function=True,
    )
    return its.values[:, 0], its.errors[:, 0]


def by_lasso(game: Game, calls: int, seed: int) -> Any:
    """ContextCite (Cohen-Wang et al. 2024): half-size sets, standardised columns, penalty 0.01."""
    from sklearn.linear_model import Lasso

    z = (np.random.default_rng(seed).random((calls, game.d)) < 0.5).astype(float)
    spread = z.std(axis=0)
    spread[spread == 0.0] = 1.0
    return Lasso(alpha=0.01).fit((z - z.mean(axis=0)) / spread, game.ask(z)).coef_ / spread


def leaving_one_out(game: Game) -> Any:
    return game.ask(np.ones((1, game.d))) - game.ask(1.0 - np.eye(game.d))


def _scores(game: Game, values: Any, exact: Any) -> dict[str, float]:
    from scipy.stats import spearmanr

    z = (np.random.default_rng(12345).random((ABLATIONS, game.d)) < 0.5).astype(float)
    without = np.ones((1, game.d))
    without[0, np.argsort(-values)[:LEAVING]] = 0.0
    return {
        "error": float(((values - exact) ** 2).sum() / (exact**2).sum()),
        "ranks": float(spearmanr(z @ values, game.ask(z)).statistic) if np.ptp(values) else 0.0,
        "drop": float((game.ask(np.ones((1, game.d))) - game.ask(without))[0]),
    }


def _mean(scores: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([score[name] for score in scores])) for name in scores[0]}


def _limes(game: Game, calls: int, exact: Any) -> dict[str, float]:
    scores = []
    for seed in range(SEEDS):
        values, errors = by_limes(game, calls, seed)
        covers = np.abs(values - exact) <= 1.96 * errors
        largest = np.argsort(-np.abs(exact))[:LARGEST]
        covered = {"covered": float(covers.mean()), "largest": float(covers[largest].mean())}
        scores.append(_scores(game, values, exact) | covered)
    return _mean(scores)


def measure() -> dict:
    if not (DATA / "text").exists():
        raise SystemExit(f"the texts are not in {DATA}: set LIMES_DATA")
    lines = []
    with threadpool_limits(1):
        for game in games():
            say(game.name)
            exact, its_error = game.contributions()
            truth = float((its_error**2).sum() / (exact**2).sum())
            for calls in BUDGETS:
                lasso = [_scores(game, by_lasso(game, calls, seed), exact) for seed in range(SEEDS)]
                out = _scores(game, leaving_one_out(game), exact) if calls > game.d else None
                line = {"game": game.name, "d": game.d, "calls": calls, "error of the truth": truth}
                lines.append(
                    line | {"limes": _limes(game, calls, exact), "lasso": _mean(lasso), "one out": out}
                )
        its = reviews.measure()
    say("done\n")
    return {
        "machine": machine(),
        "games": lines,
        "reviews": its,
        "before": json.loads(BEFORE.read_text()),
    }


def measure_before() -> None:
    """The same of the engine that is installed, as constants for later runs."""
    hierarchy.FEWEST = 0  # it refused fewer than 56 calls
    with threadpool_limits(1):
        lines = []
        for game in games():
            exact, _ = game.contributions()
            lines += [
                {"game": game.name, "calls": calls, "limes": _limes(game, calls, exact)} for calls in BUDGETS
            ]
        result = {"games": lines, "reviews": reviews.measure()}
    BEFORE.write_text(json.dumps(result, indent=1) + "\n")
