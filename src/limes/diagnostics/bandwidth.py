r"""The bandwidth path β(ν): whether the sign of a coefficient hangs on a number that nobody chose.

ν decides how near perturbed rows are. A coefficient may change its sign with it, or vanish at the one ν that
was used. The path shows each coefficient on a grid of ν, a geometric one around the explainer's.

References
----------
Garreau & von Luxburg 2022, section 3.2.3 and figure 7; 2020, section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.diagnostics.facts import Facts
from limes.diagnostics.finding import SURE, Finding, Measure, listed
from limes.diagnostics.scene import Scene

# The grid reaches from ν/10 to 10ν; beyond, bins' weights hardly change any more
REACH, POINTS = 10.0, 25
# A coefficient counts, at a bandwidth, from this share of the largest one there
_COUNTS = 0.1
# A sign change this near to the explainer's ν is a warning, as another default would have told the opposite;
# farther away it is a note, and beyond that another question: what happens in the row's own box
_NEAR, _FAR = 3.0, 5.0
# Of the largest coefficient: smaller at ν, but larger at another bandwidth
_VANISHED, _PRESENT = 0.02, 0.2


@dataclass(frozen=True, kw_only=True, eq=False)
class Path:
    """Coefficients (G, d) at bandwidths (G,), with standard errors; ``own`` is the explainer's place."""

    facts: Facts
    bandwidths: Floats
    values: Floats
    errors: Floats
    own: int

    @property
    def bandwidth(self) -> float:
        """The explainer's ν."""
        return float(self.bandwidths[self.own])

    @property
    def significant(self) -> Bools:
        """(G, d) coefficients that count where they are: large enough, and surely not 0."""
        size = np.abs(self.values)
        largest = np.nanmax(np.where(np.isfinite(size), size, -1.0), axis=1, keepdims=True)
        return np.asarray(
            (size >= _COUNTS * largest) & (size > SURE * self.errors) & (largest > self.facts.rounding)
        )

    @property
    def _looked_at(self) -> Bools:
        """(G, 1) bandwidths that are near enough to matter for what was explained."""
        if np.isinf(self.bandwidth):
            return np.ones((self.bandwidths.size, 1), dtype=np.bool_)
        ratio = np.abs(np.log(self.bandwidths / self.bandwidth))
        return np.asarray(ratio <= np.log(_FAR) + 1e-9)[:, None]

    def crossings(self, j: int) -> list[float]:
        """Bandwidths where coefficient j changes its sign, between points where it counts.

        Where log ν makes the path a straight line between the two grid points next to the change.
        """
        known = np.flatnonzero(np.isfinite(self.values[:, j]) & (self.values[:, j] != 0))
        found = []
        for a, b in pairwise(known.tolist()):
            low, high = self.values[a, j], self.values[b, j]
            if low * high < 0:
                share = low / (low - high)
                logs = np.log(self.bandwidths[[a, b]])
                found.append(float(np.exp(logs[0] + share * (logs[1] - logs[0]))))
        return found

    def flips(self) -> list[int]:
        """Features that count at the explainer's ν, and with the opposite sign at another."""
        sign = np.where(self.significant & self._looked_at, np.sign(self.values), 0.0)
        opposite = (sign * sign[self.own] < 0).any(axis=0)
        return _by_size(self.values[self.own], np.flatnonzero(opposite))

    def nearest_flip(self, j: int) -> float:
        """The crossing that lies between ν and the nearest bandwidth with the opposite sign."""
        sign = np.where(self.significant[:, j], np.sign(self.values[:, j]), 0.0)
        other = np.flatnonzero(sign * sign[self.own] < 0)
        target = other[np.argmin(np.abs(other - self.own))]
        low, high = sorted((self.bandwidth, float(self.bandwidths[target])))
        between = [c for c in self.crossings(j) if low <= c <= high]
        return min(between, key=lambda c: abs(np.log(c / self.bandwidth)))

    def vanished(self) -> list[int]:
        """Features whose coefficient is next to nothing at ν, and is not at another bandwidth."""
        size = np.where(np.isfinite(self.values) & self._looked_at, np.abs(self.values), 0.0)
        largest = size.max(axis=1)
        here = size[self.own] + SURE * self.errors[self.own] < _VANISHED * largest[self.own]
        sure = size - SURE * self.errors > np.maximum(_PRESENT * largest, self.facts.rounding)[:, None]
        return np.flatnonzero(here & sure.any(axis=0)).tolist()

    def measures(self) -> Iterator[Measure]:
        """How many signs are not the same everywhere."""
        low, high = self.bandwidths[self._looked_at[:, 0]][[0, -1]]
        yield Measure(
            name="sign changes",
            value=float(len(self.flips())),
            error=0.0,
            remark=f"coefficients whose sign is another somewhere between ν = {low:.2g} and {high:.2g}",
        )

    def findings(self) -> Iterator[Finding]:
        """Sign changes, and coefficients that vanish at the explainer's ν only."""
        for j in self.flips():
            yield self._flip(j)
        lost = self.vanished()
        if lost:
            yield self._lost(lost)

    def _flip(self, j: int) -> Finding:
        at, name = self.nearest_flip(j), self.facts.conditions[j]
        ratio = max(at / self.bandwidth, self.bandwidth / at)
        direction = "wider" if at > self.bandwidth else "narrower"
        sign = "positive" if self.values[self.own, j] > 0 else "negative"
        return Finding(
            kind="bandwidth",
            severity="warning" if ratio <= _NEAR else "note",
            features=(self.facts.names[j],),
            number=at,
            error=0.0,
            unit="bandwidth where the sign changes",
            sentence=(
                f"The coefficient of “{name}” is {sign} at ν = {self.bandwidth:.3g}, but changes its sign at "
                f"ν ≈ {at:.3g}, {ratio:.2g} times {direction}."
            ),
            advice=(
                "Do not report its sign without ν: look at the path, choose ν with limes.suggest_bandwidth."
            ),
        )

    def _lost(self, lost: Sequence[int]) -> Finding:
        sizes = np.where(np.isfinite(self.values) & self._looked_at, np.abs(self.values), 0.0)[:, list(lost)]
        at = int(sizes.max(axis=1).argmax())
        return Finding(
            kind="bandwidth",
            severity="note",
            features=tuple(self.facts.names[j] for j in lost),
            number=float(sizes.max()),
            error=0.0,
            unit="largest coefficient elsewhere on the path",
            sentence=(
                f"{listed([self.facts.names[j] for j in lost])}: next to nothing at "
                f"ν = {self.bandwidth:.3g}, but up to {sizes.max():.3g} in size at "
                f"ν = {self.bandwidths[at]:.3g}."
            ),
            advice="A small coefficient here does not mean that the feature is unused: look at the path.",
        )


def grid(bandwidth: float) -> Floats:
    """Bandwidths around the explainer's, in equal ratios; around 1 if it is infinite, which comes last."""
    if np.isinf(bandwidth):
        return np.append(np.geomspace(1.0 / REACH, REACH, POINTS - 1), np.inf)
    return bandwidth * np.geomspace(1.0 / REACH, REACH, POINTS)


def paths(scene: Scene) -> list[Path]:
    """The path of each row."""
    bandwidths = grid(scene.bandwidth)
    own = (
        int(np.argmin(np.abs(np.log(bandwidths) - np.log(scene.bandwidth)))) if _finite(scene) else POINTS - 1
    )
    if _finite(scene):
        bandwidths[own] = scene.bandwidth
    found = scene.source.path(scene, bandwidths)
    return [
        Path(facts=facts, bandwidths=bandwidths, values=e.value, errors=e.error, own=own)
        for facts, e in zip(scene.facts, found, strict=True)
    ]


def _finite(scene: Scene) -> bool:
    return bool(np.isfinite(scene.bandwidth))


def _by_size(values: Floats, chosen: Ints) -> list[int]:
    return [int(j) for j in chosen[np.argsort(-np.abs(values[chosen]), kind="stable")]]
