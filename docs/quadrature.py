"""Draw the picture of ``docs/quadrature.md``: ``python docs/quadrature.py``."""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from limes.theory import expected_link

mpl.use("agg")
PICTURE = Path(__file__).parent / "images" / "quadrature.png"
BLUE, RED, GREY = "#2a7ab9", "#c0392b", "#888888"

RNG = np.random.default_rng(0)
EFFECTS, SHARES = RNG.normal(size=30), RNG.uniform(0.2, 0.8, size=30)
LOWER, UPPER = np.minimum(EFFECTS, 0.0).sum() - 1.0, np.maximum(EFFECTS, 0.0).sum() - 1.0


def generating(z: np.ndarray) -> np.ndarray:
    """E e^{zS} of S = -1 + Σ_j a_j x_j, thirty columns of two values."""
    return np.exp(-z) * np.prod(1.0 - SHARES + SHARES * np.exp(np.multiply.outer(z, EFFECTS)), axis=1)


def draw() -> None:
    """Nodes on the integrand, and errors against evaluations and time."""
    figure, axes = plt.subplots(1, 3, figsize=(12.0, 3.6), constrained_layout=True)
    _nodes(axes[0])
    quadrature, sampled = _quadrature(), _sampled()
    for ax, by, label in ((axes[1], 0, "evaluations: nodes, or rows drawn"), (axes[2], 1, "milliseconds")):
        ax.loglog(quadrature[:, by], quadrature[:, 2], "o-", ms=3.5, color=BLUE, label="quadrature")
        ax.loglog(quadrature[:, by], quadrature[:, 3], "--", lw=1, color=BLUE, label="its stated bound")
        ax.loglog(sampled[:, by], sampled[:, 2], "o-", ms=3.5, color=RED, label="sampling")
        ax.set_xlabel(label)
        ax.set_ylabel("error of the averaged probability")
    axes[1].legend(frameon=False, loc="center right")
    for ax in axes:
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=110)


def _nodes(ax: plt.Axes) -> None:
    t = np.linspace(1e-3, 2.2, 1500)
    ax.plot(t, _integrand(t), color=GREY, lw=1)
    chosen: list[np.ndarray] = []

    def recorded(z: np.ndarray) -> np.ndarray:
        chosen.append(z)
        return generating(z)

    expected_link(recorded, LOWER, UPPER, error=1e-9)
    nodes = chosen[0][chosen[0].real == 0.0].imag
    ax.vlines(nodes, 0.0, _integrand(nodes), color=BLUE, lw=1)
    ax.plot(nodes, _integrand(nodes), "o", ms=4, color=BLUE)
    ax.set_xlim(0.0, 2.2)
    ax.set_xlabel("t")
    ax.set_ylabel("Im φ(t) / sinh πt")
    ax.set_title(f"{len(chosen[0])} evaluations for 1e-9", fontsize=10)


def _integrand(t: np.ndarray) -> np.ndarray:
    return generating(1j * t).imag / np.sinh(np.pi * t)


def _quadrature() -> np.ndarray:
    truth = expected_link(generating, LOWER - 20.0, UPPER + 20.0, error=1e-13).value
    lines = []
    for error in 10.0 ** -np.arange(1, 14):
        result = expected_link(generating, LOWER, UPPER, error=error)
        milliseconds = _timed(lambda e=error: expected_link(generating, LOWER, UPPER, error=e))
        lines.append((result.nodes, milliseconds, max(abs(result.value - truth), 1e-16), error))
    return np.array(lines)


def _sampled() -> np.ndarray:
    truth = expected_link(generating, LOWER, UPPER, error=1e-13).value

    def mean(draws: int, seed: int) -> float:
        x = np.random.default_rng(seed).random((draws, 30)) < SHARES
        return float((1.0 / (1.0 + np.exp(1.0 - x @ EFFECTS))).mean())

    lines = []
    for draws in (4 ** np.arange(3, 10)).tolist():
        gaps = [mean(draws, seed) - truth for seed in range(10)]
        lines.append((draws, _timed(lambda d=draws: mean(d, 0)), np.sqrt(np.mean(np.square(gaps)))))
    return np.array(lines)


def _timed(work: object, rounds: int = 7) -> float:
    work()
    times = []
    for _ in range(rounds):
        start = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - start)
    return 1e-6 * min(times)


if __name__ == "__main__":
    draw()
