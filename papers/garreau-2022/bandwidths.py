"""Figures 7 and 20: coefficients as functions of the bandwidth, of a kernel machine on white wine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

import limes
from papers.common.boxes import FAINT, MEDIAN, THEORY
from papers.common.expected import Sampled
from papers.common.lime_law import weighted_ridge

from .settings import wine, wine_kernel, wine_lime

ROW, SAMPLES, PENALTY = 48, 1000, 1.0
BANDWIDTHS = np.round(np.geomspace(0.15, 10, 25), 4)


@dataclass(frozen=True, eq=False)
class Paths:
    """Limits (b, d), the ridge's expectation (b, d) and runs (runs, b, d), at b bandwidths."""

    limit: np.ndarray
    shrunk: np.ndarray
    runs: np.ndarray

    def draw(self, ax, j: int, title: str) -> None:
        low, middle, high = np.quantile(self.runs[:, :, j], [0.05, 0.5, 0.95], axis=0)
        ax.fill_between(BANDWIDTHS, low, high, color=FAINT, alpha=0.5, label="90 % of runs")
        ax.plot(BANDWIDTHS, middle, color=MEDIAN, linewidth=1.2, label="median run")
        ax.plot(BANDWIDTHS, self.shrunk[:, j], "--", color="#1a8a4a", linewidth=1.2, label="with the ridge")
        ax.plot(BANDWIDTHS, self.limit[:, j], color=THEORY, linewidth=1.2, label="limit (limes)")
        ax.axvline(0.75 * np.sqrt(self.limit.shape[1]), color="0.5", linewidth=0.7, linestyle=":")
        ax.axhline(0, color="0.5", linewidth=0.7)
        ax.set_title(title, fontsize=9)
        ax.set_xscale("log")
        ax.set_xticks([0.2, 1, 5], ["0.2", "1", "5"])
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)

    def numbers(self, features: slice) -> dict:
        last = self.runs[:, -1, features]
        return {
            "limit": self.limit[:, features],
            "with the ridge": self.shrunk[:, features],
            "runs at the widest": Sampled.of(last),
        }


@cache
def paths(runs: int, row: int = ROW) -> Paths:
    """The same rows at every bandwidth, weighted anew."""
    Z, _, _ = wine()
    lime, model = wine_lime(), wine_kernel()
    form, instance = limes.models.read(model), Z[row]
    limit, shrunk = [], []
    for bandwidth in BANDWIDTHS:
        design = lime.design(instance, bandwidth)
        mass = SAMPLES * np.exp(design.log_weight) * design.variance
        limit.append(limes.limit(design, form).coef)
        shrunk.append(limit[-1] * mass / (mass + PENALTY))
    unweighted = lime.design(instance, np.inf)
    result = []
    for rng in np.random.default_rng(7).spawn(runs):
        x, z = unweighted.draw(rng.random((SAMPLES, Z.shape[1])))
        y, far = model.predict(x), (1 - z).sum(axis=1)
        fits = [weighted_ridge(z, y, np.exp(-far / (2 * nu**2)), penalty=PENALTY) for nu in BANDWIDTHS]
        result.append([coef for _, coef in fits])
    return Paths(np.array(limit), np.array(shrunk), np.array(result))
