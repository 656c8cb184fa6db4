"""Tabular LIME as its two papers state it: statistics, the limit, and the sampling, run again and again.

Rows are drawn bin by bin from truncated normals, all bins of a column alike; the weight of a row is
exp(-#changed bins / (2ν²)), or exp(-‖x - ξ‖² / (2ν²)) where it is smooth; the surrogate is a ridge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

import limes
from limes.designs import ProductDesign
from papers.common.expected import Sampled
from papers.common.lime_law import repeated

Answer = Callable[[np.ndarray], np.ndarray]
# |z| of the mean of runs: a correct program fails one of 150,000 such comparisons
_LIMIT = 4.5


def agreement(runs: np.ndarray, expected: np.ndarray) -> str:
    """How far the mean of runs (r, d) lies from what it must be (d,), in normal deviates.

    Raises
    ------
    AssertionError
        If it is farther than chance lets it be.
    """
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    t = np.abs(runs.mean(axis=0) - expected) / error
    largest = float(stats.norm.isf(stats.t.sf(t, len(runs) - 1)).max())
    assert largest < _LIMIT, f"the mean of the runs lies {largest:.1f} standard errors from theory"
    return f"|z| ≤ {largest:.1f} for the mean of {len(runs)} runs, {runs.shape[1]} coefficients."


@dataclass(frozen=True, eq=False)
class Compared:
    """Repeated runs, coefficients (runs, d) and intercepts (runs,), and the limit that theory gives.

    ``shrunk`` (d,) is the limit less what the runs' penalty takes: what their mean must be.
    """

    runs: np.ndarray
    intercepts: np.ndarray
    limit: limes.Surrogate
    shrunk: np.ndarray

    @property
    def agreement(self) -> str:
        """For the runs with theory, for the page."""
        return agreement(self.runs, self.shrunk)

    def numbers(self, suffix: str = "") -> dict[str, np.ndarray | Sampled]:
        """For expected.json."""
        return {f"theory{suffix}": self.limit.coef, f"runs{suffix}": Sampled.of(self.runs)}


@dataclass(frozen=True, eq=False)
class TabularLime:
    """Edges (p + 1,), means (p,) and standard deviations (p,) of every column's bins."""

    edges: Sequence[np.ndarray]
    means: Sequence[np.ndarray]
    stds: Sequence[np.ndarray]
    weights: str = "bins"

    @classmethod
    def learnt(cls, X: np.ndarray, bins: int = 4) -> TabularLime:
        """From a training set (2022 paper, Algorithm 1)."""
        edges = [np.quantile(x, np.linspace(0, 1, bins + 1)) for x in X.T]
        assert all((np.diff(e) > 0).all() for e in edges), "two quantiles of a column are the same"
        owners = [np.searchsorted(e[1:-1], x) for e, x in zip(edges, X.T, strict=True)]
        parts = [[x[o == b] for b in range(bins)] for o, x in zip(owners, X.T, strict=True)]
        means = [np.array([part.mean() for part in column]) for column in parts]
        return cls(edges, means, [np.array([part.std() for part in column]) for column in parts])

    @classmethod
    def gaussian(cls, mean: Sequence[float], std: float, bins: int = 4) -> TabularLime:
        """The 2020 paper's: quantiles of a normal law, its mean and deviation in every bin."""
        cuts = stats.norm.ppf(np.linspace(0, 1, bins + 1))
        edges = [m + std * cuts for m in mean]
        return cls(edges, [np.full(bins, m) for m in mean], [np.full(bins, std) for _ in mean], "euclidean")

    def design(self, instance: np.ndarray, bandwidth: float | None = None) -> ProductDesign:
        """At an instance; the bandwidth is LIME's own, 0.75 √d, if not given."""
        width = self._bandwidth(bandwidth)
        return ProductDesign.from_bins(
            self.edges, self.means, self.stds, instance, width, weights=self.weights
        )

    def limit(self, form, instance: np.ndarray, bandwidth: float | None = None) -> limes.Surrogate:
        """Return what runs converge to without a penalty."""
        return limes.limit(self.design(instance, bandwidth), form)

    def compared(
        self,
        form,
        answer: Answer,
        instance: np.ndarray,
        *,
        bandwidth: float | None = None,
        runs: int = 100,
        samples: int = 5000,
        penalty: float = 1.0,
        seed: int = 0,
    ) -> Compared:
        """Runs that ask the model itself, and the limit of the form that was read off it."""
        design, limit = self.design(instance, bandwidth), self.limit(form, instance, bandwidth)
        unweighted, width = self.design(instance, np.inf), self._bandwidth(bandwidth)

        def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            x, z = unweighted.draw(rng.random((n, len(self.edges))))
            far = (1 - z) if self.weights == "bins" else (x - instance) ** 2
            return z, answer(x), np.exp(-far.sum(axis=1) / (2 * width**2))

        intercepts, coefs = repeated(draw, runs=runs, samples=samples, penalty=penalty, seed=seed)
        mass = samples * np.exp(design.log_weight) * design.variance
        return Compared(coefs, intercepts, limit, limit.coef * mass / (mass + penalty))

    def _bandwidth(self, bandwidth: float | None) -> float:
        return 0.75 * np.sqrt(len(self.edges)) if bandwidth is None else float(bandwidth)
