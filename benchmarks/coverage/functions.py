"""Functions that are hard to sample: on rows of a table, and on kept words or superpixels.

Each has its coefficients from ``truth.py``, which shares nothing with the sampler but the law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from scipy.stats import norm

from limes.designs import ExchangeableDesign

CALLS = (256, 1024, 4096)
# Columns of the explained row, repeated
_ROW = (-1.0, 0.2, 1.1, -0.3, 0.5, -0.6)
_BACKGROUND = 2000


@dataclass(frozen=True, eq=False)
class Case:
    """A function of rows (n, d) that depends on its ``active`` features alone.

    ``mean`` is the function without its noise; ``bandwidth`` is in units of √d for tables.
    """

    name: str
    d: int
    active: int
    function: Callable[[np.ndarray], np.ndarray]
    calls: tuple[int, ...] = CALLS
    bandwidth: float | None = None
    mean: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def expected(self) -> Callable[[np.ndarray], np.ndarray]:
        return self.function if self.mean is None else self.mean


@dataclass(frozen=True, eq=False)
class Table(Case):
    """A table of normal columns, but for those of ``levels`` many categories."""

    levels: dict[int, int] = field(default_factory=dict)

    def background(self) -> np.ndarray:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(_BACKGROUND, self.d))
        for j, count in self.levels.items():
            X[:, j] = rng.integers(0, count, _BACKGROUND)
        return X

    def row(self) -> np.ndarray:
        row = np.resize(_ROW, self.d)
        row[list(self.levels)] = 0.0
        return row

    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"categorical": list(self.levels)} if self.levels else {}
        if self.bandwidth is not None:
            options["bandwidth"] = self.bandwidth * np.sqrt(self.d)
        return options


@dataclass(frozen=True, eq=False)
class Switches(Case):
    """Words that are deleted, or superpixels that are filled; ``symmetric``: only how many counts."""

    make: Callable[..., ExchangeableDesign] = ExchangeableDesign.superpixel_switches
    symmetric: bool = False

    def design(self) -> ExchangeableDesign:
        return self.make(self.d) if self.bandwidth is None else self.make(self.d, self.bandwidth)


_words = ExchangeableDesign.word_deletions


def _signs(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, 1.0, -1.0)


def _digit(x: np.ndarray, digit: int) -> np.ndarray:
    """±1 by one binary digit of a normal number's level."""
    return 1.0 - 2.0 * (np.floor(norm.cdf(x) * 2**digit) % 2)


def _smooth(x: np.ndarray) -> np.ndarray:
    return np.tanh(x[:, 0] + x[:, 0] * x[:, 1]) + np.sin(x[:, 1])


def _noise(x: np.ndarray) -> np.ndarray:
    """The same for the same row, and without any order."""
    return (np.sin(x @ (1e5 * np.sqrt(np.arange(2.0, 2.0 + x.shape[1])))) * 1e4) % 1.0 - 0.5


def _event(x: np.ndarray, level: float) -> np.ndarray:
    return ((x[:, 0] > level) & (x[:, 1] > level)).astype(float)


_SOFTMAX = np.random.default_rng(5).normal(size=(4, 10))
_LEVELS = np.random.default_rng(6).normal(size=(60, 40))


def _categories(x: np.ndarray) -> np.ndarray:
    return _LEVELS[x[:, 0].astype(int), x[:, 1].astype(int)] + (x[:, 2] > 0) * (x[:, 0] > 30)


def _spread(x: np.ndarray) -> np.ndarray:
    return expit(8 * (x[:, 0] + x[:, 1] * x[:, 2] - 1))


TABLES = (
    Table("XOR of thresholds", 6, 2, lambda x: ((x[:, 0] > 0.3) ^ (x[:, 1] > -0.2)).astype(float)),
    Table("parity of 5", 10, 5, lambda x: _signs(x[:, :5]).prod(axis=1)),
    Table("parity of 2 at medians", 50, 2, lambda x: _signs(x[:, :2]).prod(axis=1)),
    Table("parity of 3 at medians", 50, 3, lambda x: _signs(x[:, :3]).prod(axis=1), bandwidth=np.inf),
    Table(
        "digits of high order", 8, 3, lambda x: _digit(x[:, 0], 5) * _digit(x[:, 1], 4) * _digit(x[:, 2], 3)
    ),
    Table(
        "64 aligned periods", 6, 2, lambda x: np.cos(128 * np.pi * norm.cdf(x[:, :2])).prod(axis=1) + x[:, 0]
    ),
    Table("event of 1e-2", 5, 2, lambda x: _event(x, 1.28)),
    Table("event of 1e-3", 5, 2, lambda x: _event(x, 1.86)),
    Table("plateau of 6 columns", 8, 6, lambda x: (x[:, :6] > 0.3).all(axis=1).astype(float)),
    Table("noise", 6, 2, lambda x: _smooth(x) + _noise(x), mean=_smooth),
    Table("softmax of 10", 6, 4, lambda x: softmax(2 * x[:, :4] @ _SOFTMAX, axis=1)),
    Table("categories of 60 and 40 levels", 5, 3, _categories, levels={0: 60, 1: 40}),
    Table("smooth, 2 columns", 2, 2, _smooth),
    Table("smooth, 50 columns", 50, 2, _smooth),
    Table("smooth, bandwidth 0.2 √d", 6, 2, _smooth, bandwidth=0.2),
    Table("smooth, bandwidth 0.1 √d", 6, 2, _smooth, bandwidth=0.1),
    Table("pole 1 / (abs x + 0.003)", 5, 1, lambda x: 1 / (np.abs(x[:, 0]) + 0.003)),
    Table("exp(1.2 sum of 5)", 6, 5, lambda x: np.exp(1.2 * x[:, :5].sum(axis=1))),
    Table("XOR, 64 calls", 6, 2, lambda x: ((x[:, 0] > 0.3) ^ (x[:, 1] > -0.2)).astype(float), calls=(64,)),
    Table("parity of 5, 64 calls", 10, 5, lambda x: _signs(x[:, :5]).prod(axis=1), calls=(64,)),
    # not in the review that found the others
    Table("line and event of 1e-3", 5, 3, lambda x: x[:, 0] - x[:, 2] + 5 * _event(x, 1.86)),
    Table("far tail", 6, 3, lambda x: np.maximum(0, x[:, :3].sum(axis=1) - 3.5)),
    Table("product of 4", 6, 4, lambda x: x[:, :4].prod(axis=1)),
    Table("ridge 1 / (abs x y + 0.01)", 6, 2, lambda x: 1 / (np.abs(x[:, 0] * x[:, 1]) + 0.01)),
    Table("stairs", 6, 3, lambda x: np.floor(3 * x[:, 0]) * np.floor(3 * x[:, 1]) / 9 + (x[:, 2] > 1)),
    Table("steep logistic", 10, 3, _spread),
    Table("parity of 3 at medians, 20 columns", 20, 3, lambda x: _signs(x[:, :3]).prod(axis=1)),
)

SWITCHES = (
    Switches("images: parity of 3", 40, 3, lambda z: (2 * z[:, :3] - 1).prod(axis=1)),
    Switches("images: XOR", 40, 2, lambda z: np.abs(z[:, 0] - z[:, 1])),
    Switches("images: majority of 5", 40, 5, lambda z: _signs(z[:, :5].sum(axis=1) - 2.5)),
    Switches("images: all of 8", 40, 8, lambda z: z[:, :8].prod(axis=1)),
    Switches("texts: all of 3", 40, 3, lambda z: z[:, :3].prod(axis=1), make=_words),
    Switches("texts: parity of 3", 40, 3, lambda z: (2 * z[:, :3] - 1).prod(axis=1), make=_words),
    Switches(
        "texts: threshold",
        300,
        0,
        lambda z: (z.mean(axis=1) > 0.6).astype(float),
        calls=(1024, 4096),
        make=_words,
        symmetric=True,
    ),
    Switches(
        "texts: pair, bandwidth 0.05",
        40,
        6,
        lambda z: z[:, 0] * z[:, 1] + z[:, 5],
        bandwidth=0.05,
        make=_words,
    ),
)

CASES: dict[str, Case] = {case.name: case for case in (*TABLES, *SWITCHES)}
