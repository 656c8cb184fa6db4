"""The bandwidth path β(ν).

ν decides how near perturbed rows are. A coefficient may change its sign with it, or vanish at the one ν that
was used. The path shows each coefficient on a grid of ν, a geometric one around the explainer's.

References
----------
Garreau & von Luxburg 2022, section 3.2.3 (which asks for large bandwidths; users ask for local ones) and
figure 7; 2020, section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import Bools, Floats
from limes._diagnostics.context import DiagnosticContext
from limes._diagnostics.finding import Finding, Measure, RowOutput, enumerate_names
from limes._explanation.view import SURE
from limes._explanation.wording import number

if TYPE_CHECKING:
    pass


# The grid reaches from ν/10 to 10ν; beyond it the weights of bins hardly change
REACH, POINTS = 10.0, 25
# A coefficient counts at a bandwidth if it is at least this share of the largest one there
_COUNTS = 0.1
# A sign change within the first factor of the explainer's ν is a warning, as another default would have
# reversed the sign; within the second it is a note; farther away it is ignored: it concerns the row's box
_NEAR, _FAR = 3.0, 5.0
# A coefficient that does not count at ν, and is this share of the largest one at another bandwidth, vanishes
_PRESENT = 0.2


@dataclass(frozen=True, kw_only=True, eq=False)
class BandwidthPath:
    row: RowOutput
    bandwidths: Floats  # (G,)
    values: Floats  # (G, d)
    errors: Floats  # (G, d)
    current: int  # position of the explainer's ν

    @property
    def bandwidth(self) -> float:
        return float(self.bandwidths[self.current])

    @property
    def significant(self) -> Bools:
        """(G, d) whether a coefficient counts at its bandwidth: it is large enough, and surely not 0."""
        size = np.abs(self.values)
        largest = np.nanmax(np.where(np.isfinite(size), size, -1.0), axis=1, keepdims=True)
        return np.asarray(
            (size >= _COUNTS * largest) & (size > SURE * self.errors) & (largest > self.row.rounding)
        )

    @property
    def _near(self) -> Bools:
        """(G, 1) whether a bandwidth is near enough to matter for the explanation."""
        if np.isinf(self.bandwidth):
            return np.ones((self.bandwidths.size, 1), dtype=np.bool_)
        ratio = np.abs(np.log(self.bandwidths / self.bandwidth))
        return np.asarray(ratio <= np.log(_FAR) + 1e-9)[:, None]

    @property
    def _sizes(self) -> Floats:
        """(G, d) sizes of coefficients, 0 where they are unknown or far away."""
        return np.where(np.isfinite(self.values) & self._near, np.abs(self.values), 0.0)

    def crossings(self, j: int) -> list[float]:
        """Bandwidths where coefficient j changes its sign, linear in log ν between two points of the grid."""
        nonzero = np.flatnonzero(np.isfinite(self.values[:, j]) & (self.values[:, j] != 0))
        crossings = []
        for a, b in pairwise(nonzero.tolist()):
            low, high = self.values[a, j], self.values[b, j]
            if low * high < 0:
                share = low / (low - high)
                logs = np.log(self.bandwidths[[a, b]])
                crossings.append(float(np.exp(logs[0] + share * (logs[1] - logs[0]))))
        return crossings

    def flips(self) -> list[int]:
        """Features that count at the explainer's ν, and with the opposite sign at another; largest first."""
        sign = np.where(self.significant & self._near, np.sign(self.values), 0.0)
        opposite = np.flatnonzero((sign * sign[self.current] < 0).any(axis=0))
        sizes = np.abs(self.values[self.current, opposite])
        return [int(j) for j in opposite[np.argsort(-sizes, kind="stable")]]

    def nearest_flip(self, j: int) -> float:
        """The crossing between ν and the nearest bandwidth with the opposite sign."""
        sign = np.where(self.significant[:, j], np.sign(self.values[:, j]), 0.0)
        opposite = np.flatnonzero(sign * sign[self.current] < 0)
        target = opposite[np.argmin(np.abs(opposite - self.current))]
        low, high = sorted((self.bandwidth, float(self.bandwidths[target])))
        between = [c for c in self.crossings(j) if low <= c <= high]
        return min(between, key=lambda c: abs(np.log(c / self.bandwidth)))

    def vanished(self) -> list[int]:
        """Features whose coefficient does not count at ν, but at another bandwidth."""
        size = self._sizes
        largest = size.max(axis=1)
        small = size[self.current] + SURE * self.errors[self.current] < _COUNTS * largest[self.current]
        present = size - SURE * self.errors > np.maximum(_PRESENT * largest, self.row.rounding)[:, None]
        return np.flatnonzero(small & present.any(axis=0)).tolist()

    def measures(self) -> Iterator[Measure]:
        low, high = self.bandwidths[self._near[:, 0]][[0, -1]]
        remark = f"coefficients that change sign between ν = {low:.2g} and {high:.2g}"
        yield Measure("sign changes", float(len(self.flips())), 0.0, remark)

    def findings(self) -> Iterator[Finding]:
        yield from map(self._flip, self.flips())
        vanished = self.vanished()
        if vanished:
            yield self._vanished([self.row.names[j] for j in vanished], self._sizes[:, vanished].max(axis=1))

    def _flip(self, j: int) -> Finding:
        flip = self.nearest_flip(j)
        ratio = max(flip / self.bandwidth, self.bandwidth / flip)
        direction = "wider" if flip > self.bandwidth else "narrower"
        sign = "positive" if self.values[self.current, j] > 0 else "negative"
        return Finding(
            kind="bandwidth",
            severity="warning" if ratio <= _NEAR else "note",
            features=(self.row.names[j],),
            number=flip,
            unit="bandwidth where the sign changes",
            sentence=(
                f"The coefficient of “{self.row.conditions[j]}” is {sign} at ν = {self.bandwidth:.3g}, but "
                f"changes its sign at ν ≈ {flip:.3g}, {ratio:.2g} times {direction}."
            ),
            advice=(
                "Do not report its sign without ν: look at the path, choose ν with limes.suggest_design."
            ),
        )

    def _vanished(self, names: Sequence[str], sizes: Floats) -> Finding:
        """``sizes`` (G,) are the largest of these features'."""
        return Finding(
            kind="bandwidth",
            severity="note",
            features=tuple(names),
            number=float(sizes.max()),
            unit="largest coefficient elsewhere on the path",
            sentence=(
                f"{enumerate_names(names)}: small at the bandwidth {self.bandwidth:.3g}, but up to "
                f"{number(sizes.max(), 3)} in size at {self.bandwidths[sizes.argmax()]:.3g}."
            ),
            advice=(
                "A small coefficient here does not mean that the feature is unused: "
                "diagnosis.plot.bandwidth() shows it at other bandwidths."
            ),
        )


def grid(bandwidth: float) -> Floats:
    """Bandwidths around the explainer's in equal ratios; if ν is infinite, around 1, with ν last."""
    if np.isinf(bandwidth):
        return np.append(np.geomspace(1.0 / REACH, REACH, POINTS - 1), np.inf)
    return bandwidth * np.geomspace(1.0 / REACH, REACH, POINTS)


def placed_grid(bandwidth: float) -> tuple[Floats, int]:
    """The grid, which holds the explainer's bandwidth to the last bit, and its position there."""
    bandwidths = grid(bandwidth)
    if np.isinf(bandwidth):
        return bandwidths, POINTS - 1
    current = int(np.argmin(np.abs(np.log(bandwidths) - np.log(bandwidth))))
    bandwidths[current] = bandwidth
    return bandwidths, current


def paths(context: DiagnosticContext) -> list[BandwidthPath]:
    bandwidths, current = placed_grid(context.bandwidth)
    estimates = context.source.path(context, bandwidths)
    return [
        BandwidthPath(row=row, bandwidths=bandwidths, values=e.value, errors=e.error, current=current)
        for row, e in zip(context.row_outputs, estimates, strict=True)
    ]
