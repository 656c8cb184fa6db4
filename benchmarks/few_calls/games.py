"""Functions of which parts of an input are shown, with Shapley values by enumeration or many orders."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

SIZES, SEEDS = (12, 32, 100), (0, 1)
KINDS = ("attention", "and", "or", "dense")
# Sizes up to which all sets are questions about, and orders elsewhere, each with its reverse
_ENUMERATED, _ORDERS = 12, {32: 4000, 100: 1500}


class Attention:
    """The log-probability of three answers of an attention model whose weights are written down.

    Sentences have a key and a value, random vectors; some repeat an earlier key, with its value or another.
    The key of each question looks for the keys that are alike, later ones a little more, or for none. What it
    finds is compared with all values: a softmax.
    """

    def __init__(self, d: int, seed: int, *, width: int = 20, words: int = 30, heat: float = 8.0) -> None:
        rng = np.random.default_rng(seed)
        keys, values = (_directions(rng.normal(size=(n, width))) for n in (d, words))
        key, value = np.arange(d), rng.integers(words, size=d)
        for j in range(1, d):
            if rng.random() < 0.3:
                i = rng.integers(j)
                key[j], value[j] = key[i], value[i] if rng.random() < 0.75 else rng.integers(words)
        questions = rng.choice(np.unique(key), 3, replace=False)
        self._match = heat * keys[questions] @ keys[key].T
        self._late, self._nothing = rng.random(), 0.5 * heat
        self._values_of_parts, self._values = values[value], values
        self._answer = self._log_probabilities(np.ones((1, d)))[0].argmax(axis=1)

    def __call__(self, z: Any) -> Any:
        parts = (self._log_probabilities(z[i : i + 4096]) for i in range(0, len(z), 4096))
        answers = np.arange(len(self._answer))
        return np.concatenate([part[:, answers, self._answer].sum(axis=1) for part in parts])

    def _log_probabilities(self, z: Any) -> Any:
        place = np.cumsum(z, axis=1) / z.shape[1]
        score = self._match + self._late * place[:, None] + np.where(z[:, None] > 0, 0.0, -1e9)
        nothing = np.full((len(z), len(self._match), 1), self._nothing)
        weight = np.exp(np.concatenate([score, nothing], axis=2))
        retrieved = (weight / weight.sum(axis=2, keepdims=True))[:, :, :-1] @ self._values_of_parts
        logits = 7.0 * retrieved @ self._values.T
        return logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))


class LogProbability:
    """log σ(margin): of a few ANDs or ORs of two or three parts, or of dense slopes and pairs."""

    def __init__(self, d: int, seed: int, kind: str) -> None:
        rng = np.random.default_rng(seed + 1000)
        self._kind, self._bias = kind, -3.0
        self._slopes = 0.15 * rng.normal(size=d)
        self._sets = [rng.choice(d, rng.integers(2, 4), replace=False) for _ in range(3)]
        self._sizes = rng.uniform(2.0, 5.0, 3)
        if kind == "dense":
            self._bias, self._slopes = 0.0, 1.2 * rng.normal(size=d)
            self._pairs = np.triu(rng.normal(size=(d, d)), 1) * 1.05 / np.sqrt(d)

    def __call__(self, z: Any) -> Any:
        margin = self._bias + z @ self._slopes
        if self._kind == "dense":
            margin += ((z @ self._pairs) * z).sum(axis=1)
        else:
            shown = [
                z[:, its].all(axis=1) if self._kind == "and" else z[:, its].any(axis=1) for its in self._sets
            ]
            margin += np.stack(shown, axis=1) @ self._sizes
        return -np.logaddexp(0.0, -margin)


@dataclass(frozen=True)
class Game:
    name: str
    d: int
    ask: Any

    def contributions(self) -> tuple[Any, Any]:
        """Shapley values (d,) and their errors."""
        if self.d <= _ENUMERATED:
            return _enumerated(self.ask, self.d), np.zeros(self.d)
        return by_orders(self.ask, self.d, _ORDERS[self.d])


def games() -> list[Game]:
    return [
        Game(
            f"{kind}, d = {d}, {seed}",
            d,
            Attention(d, seed) if kind == "attention" else LogProbability(d, seed, kind),
        )
        for kind in KINDS
        for d in SIZES
        for seed in SEEDS
    ]


def by_orders(ask: Any, d: int, orders: int) -> tuple[Any, Any]:
    """Means over random orders with their reverses, and standard errors."""
    rng, steps, each = np.random.default_rng(0), np.tri(d + 1, d, -1), []
    for _ in range(orders // 2):
        order, both = rng.permutation(d), np.zeros(d)
        for its in (order, order[::-1]):
            z = np.zeros((d + 1, d))
            z[:, its] = steps
            both[its] += np.diff(ask(z)) / 2.0
        each.append(both)
    return np.mean(each, axis=0), np.std(each, axis=0, ddof=1) / np.sqrt(len(each))


def _enumerated(ask: Any, d: int) -> Any:
    z = (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(float)
    answers, shown = ask(z), z.sum(axis=1).astype(int)
    weight = np.array([1.0 / (d * comb(d - 1, k)) for k in range(d)])
    values = np.zeros(d)
    for j in range(d):
        without = np.flatnonzero(z[:, j] == 0)
        values[j] = weight[shown[without]] @ (answers[without | 1 << j] - answers[without])
    return values


def _directions(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
