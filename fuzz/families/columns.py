"""Columns and targets, as expressions in ``r`` (a stream), ``n`` and ``C`` (the columns)."""

from __future__ import annotations

from typing import Any

NUMBERS = (
    "r.normal(size=n)",
    "r.normal(size=n)",
    "np.round(r.normal(size=n), 1)",
    "r.normal(size=n) * (r.random(n) > 0.3)",
    "r.integers(-2, 5, n)",
    "r.lognormal(size=n)",
    "r.uniform(-1, 1, n)",
    "r.standard_t(3, n)",
)
ODD = (
    "1e6 + r.normal(size=n)",
    "1e-4 * r.normal(size=n)",
    "np.full(n, 2.0)",
    "np.where(r.random(n) < 0.7, 1.0, r.normal(size=n))",
)
MISSING = (
    "np.where(r.random(n) < 0.2, np.nan, r.normal(size=n))",
    "np.where(r.random(n) < 0.1, np.nan, np.round(r.normal(size=n), 1))",
    "np.where(r.random(n) < 0.15, np.nan, r.normal(size=n) * (r.random(n) > 0.3))",
)
# Few values, so that a grid of all of them is small
FEW = (
    "np.round(r.normal(size=n), 0)",
    "np.round(r.normal(size=n) * 2) / 2",
    "r.choice([0.1, 0.7, 1.3, 2.9, 5.2, 7.7], n)",
    "r.integers(0, 7, n)",
    "np.round(r.lognormal(size=n), 0)",
)
POSITIVE = ("r.lognormal(size=n)", "1 + r.random(n)", "r.gamma(2.0, size=n)")
FEW_POSITIVE = ("r.choice([0.1, 0.7, 1.3, 2.9, 5.2, 7.7], n)", "r.integers(1, 7, n)")
CODES = (
    "r.integers(0, 2, n)",
    "r.integers(0, 3, n)",
    "r.integers(0, 5, n)",
    "np.where(r.random(n) < 0.15, -1, r.integers(0, 5, n))",
    "np.where(r.random(n) < 0.06, r.integers(9, 40, n), r.integers(0, 4, n))",
    "np.minimum(r.geometric(0.35, n), 12)",
)
PLAIN_CODES = ("r.integers(0, 2, n)", "r.integers(0, 3, n)", "r.integers(0, 5, n)", "r.integers(1, 7, n)")
MISSING_CODES = ("np.where(r.random(n) < 0.15, np.nan, r.integers(0, 4, n))",)

_SUM = "sum((1 + j % 3) * np.sin(1.3 * np.nan_to_num(c) + j) for j, c in enumerate(C))"
_TARGETS = (
    _SUM,
    f"{_SUM} * (1 + (np.nan_to_num(C[0]) > 0.5))",
    f"{_SUM} + r.normal(size=n)",
    f"1000 + 50 * {_SUM}",
)


def pick(rng: Any, choices: Any) -> Any:
    """One of several."""
    return choices[int(rng.integers(len(choices)))]


def number(rng: Any, *, missing: bool = False, odd: bool = True) -> str:
    """A column of numbers."""
    if missing and rng.random() < 0.5:
        return str(pick(rng, MISSING))
    if odd and rng.random() < 0.12:
        return str(pick(rng, ODD))
    return str(pick(rng, NUMBERS))


def target(rng: Any) -> str:
    """A quantity."""
    return str(pick(rng, _TARGETS))


def classes(rng: Any, count: int = 2, *, texts: bool = True) -> str:
    """Class labels 0, ..., count - 1, at times as texts."""
    edges = {2: "[0.2]", 3: "[-0.7, 0.7]"}[count]
    codes = f"np.digitize({_SUM} + r.normal(size=n) / 2, {edges})"
    return f"np.array(['no', 'so', 'yes'])[{codes}]" if texts and rng.random() < 0.3 else codes


def size(rng: Any, low: int = 30, high: int = 250) -> int:
    """Rows of a background."""
    return int(rng.integers(low, high))


def seeded(rng: Any) -> int:
    """A random_state."""
    return int(rng.integers(1000))
