"""Contributions from 32, 64 and 128 calls against all 1,024 subsets, beside a LASSO and leave-one-out."""

from __future__ import annotations

import json
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.linear_model import Lasso

import limes
from benchmarks.progress import say
from benchmarks.prompts.ask import ANSWERS
from benchmarks.prompts.questions import QUESTIONS, Question
from benchmarks.prompts.speed import MEASURED
from benchmarks.speed.run import machine

CALLS, SEEDS = (32, 64, 128), 20
# As ContextCite publishes it: of log odds on standardised columns, sources kept with probability 1/2
_PENALTY = 0.01


def measure(*, seeds: int = SEEDS, cases: str = "") -> dict[str, Any]:
    """Return a record for each question and number of calls."""
    stored, results = json.loads(ANSWERS.read_text("utf-8")), []
    for question in QUESTIONS:
        if cases in question.name:
            say(question.name)
            results.append(_measured(question, stored[question.name], seeds))
    speed = json.loads(MEASURED.read_text("utf-8"))
    return {"machine": machine(), "seeds": seeds, "questions": results, "speed": speed}


def _measured(question: Question, stored: dict[str, Any], seeds: int) -> dict[str, Any]:
    logs = np.array(stored["logs"])
    truth = shapley(logs, len(question.sources))

    def ask(prompts: list[Any]) -> list[float]:
        return [logs[_position(question, messages)] for messages in prompts]

    by_calls = []
    for calls in CALLS:
        explanations = [
            limes.PromptExplainer(ask, max_calls=calls, rng=s)(question.prompt) for s in range(seeds)
        ]
        values = np.array([its.contributions.values[0] for its in explanations])
        errors = np.array([its.contributions.standard_errors[0] for its in explanations])
        lasso = np.array([_lasso(logs, len(question.sources), calls, s) for s in range(seeds)])
        by_calls.append(
            {
                "calls": calls,
                "asked": max(its.model_calls for its in explanations),
                "error": _error(values, truth),
                "error of lasso": _error(lasso, truth),
                "covered": float((np.abs(values - truth) <= 1.96 * errors).mean()),
                "covered, five largest": float(
                    (np.abs(values - truth) <= 1.96 * errors)[:, np.argsort(-np.abs(truth))[:5]].mean()
                ),
                "leads": _leads(values, question),
                "leads of lasso": _leads(lasso, question),
            }
        )
    alone = np.array([logs[-1] - logs[-1 - (1 << (len(truth) - 1 - j))] for j in range(len(truth))])
    return {
        "question": question.name,
        "answer": stored["answer"],
        "log p": [float(logs[-1]), float(logs[0])],
        "truth": [round(float(value), 4) for value in truth],
        "leads of the truth": _leads(truth[None], question),
        "error of leaving one out": _error(alone[None], truth),
        "leads of leaving one out": _leads(alone[None], question),
        "by calls": by_calls,
    }


def shapley(values: Any, d: int) -> Any:
    """Shapley values of a game by its 2^d values; the bit of the first player is the highest."""
    places, contributions = np.arange(2**d), np.zeros(d)
    sizes = np.array([bin(place).count("1") for place in places])
    for j in range(d):
        bit = 1 << (d - 1 - j)
        without = places[places & bit == 0]
        weights = np.array([factorial(s) * factorial(d - s - 1) / factorial(d) for s in sizes[without]])
        contributions[j] = weights @ (values[without | bit] - values[without])
    return contributions


def _position(question: Question, messages: list[dict[str, str]]) -> int:
    lines = set(messages[1]["content"].split("\n"))
    return sum((text in lines) << i for i, text in enumerate(reversed(question.sources)))


def _error(estimates: Any, truth: Any) -> float:
    """The mean squared error, over the squares of the truth."""
    return float(((estimates - truth) ** 2).sum(axis=1).mean() / (truth**2).sum())


def _leads(estimates: Any, question: Question) -> float | None:
    """How often the largest contributions are those that a reader would name."""
    k = len(question.leads)
    if not k:
        return None
    tops = np.argsort(-np.abs(estimates), axis=1)[:, :k]
    return float(np.mean([set(top.tolist()) == set(question.leads) for top in tops]))


def _lasso(logs: Any, d: int, calls: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    shown = rng.integers(0, 2, (calls, d))
    odds = logit(np.clip(np.exp(logs[shown @ (1 << np.arange(d)[::-1])]), 1e-300, 1.0 - 1e-12))
    center, spread = shown.mean(axis=0), np.maximum(shown.std(axis=0), 1e-9)
    fit = Lasso(alpha=_PENALTY).fit((shown - center) / spread, odds)
    return fit.coef_ / spread


def check_shapley() -> None:
    """Compare with all orders, of a game of four."""
    values, orders = np.random.default_rng(0).normal(size=16), [*permutations(range(4))]
    expected = np.zeros(4)
    for order in orders:
        place = 0
        for j in order:
            after = place | 1 << (3 - j)
            expected[j] += (values[after] - values[place]) / len(orders)
            place = after
    np.testing.assert_allclose(shapley(values, 4), expected)
