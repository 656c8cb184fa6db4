r"""The bandwidth path β(ν): whether the sign of a coefficient depends on an arbitrary default.

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
from limes.diagnostics.context import DiagnosticContext
from limes.diagnostics.finding import SURE, Finding, Measure, enumerate_names
from limes.diagnostics.row_output import RowOutput

# The grid reaches from ν/10 to 10ν; beyond, bins' weights hardly change any more
REACH, POINTS = 10.0, 25
# A coefficient counts, at a bandwidth, from this share of the largest one there
_COUNTS = 0.1
# A sign change this near to the explainer's ν is a warning, as another default would have meant the
# opposite; farther away it is a note, and beyond that it is ignored: it is about the row's box
_NEAR, _FAR = 3.0, 5.0
# Of the largest coefficient: smaller at ν, but larger at another bandwidth
_VANISHED, _PRESENT = 0.02, 0.2


@dataclass(frozen=True, kw_only=True, eq=False)
class Path:
    """Coefficients (G, d) at bandwidths (G,), standard errors, and the position of the explainer's ν."""

    row: RowOutput
    bandwidths: Floats
    values: Floats
    errors: Floats
    current: int

    @property
    def bandwidth(self) -> float:
        """The explainer's ν."""
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

    def crossings(self, j: int) -> list[float]:
        """Return the bandwidths where coefficient j changes its sign.

        The path is interpolated linearly in log ν between the two grid points next to the change.
        """
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
        """Return the features that count at the explainer's ν, and with the opposite sign at another."""
        sign = np.where(self.significant & self._near, np.sign(self.values), 0.0)
        opposite = (sign * sign[self.current] < 0).any(axis=0)
        return _sorted_by_size(self.values[self.current], np.flatnonzero(opposite))

    def nearest_flip(self, j: int) -> float:
        """Return the crossing between ν and the nearest bandwidth with the opposite sign."""
        sign = np.where(self.significant[:, j], np.sign(self.values[:, j]), 0.0)
        opposite = np.flatnonzero(sign * sign[self.current] < 0)
        target = opposite[np.argmin(np.abs(opposite - self.current))]
        low, high = sorted((self.bandwidth, float(self.bandwidths[target])))
        between = [c for c in self.crossings(j) if low <= c <= high]
        return min(between, key=lambda c: abs(np.log(c / self.bandwidth)))

    def vanished(self) -> list[int]:
        """Return the features whose coefficient is next to nothing at ν, but not at another bandwidth."""
        size = np.where(np.isfinite(self.values) & self._near, np.abs(self.values), 0.0)
        largest = size.max(axis=1)
        small = size[self.current] + SURE * self.errors[self.current] < _VANISHED * largest[self.current]
        present = size - SURE * self.errors > np.maximum(_PRESENT * largest, self.row.rounding)[:, None]
        return np.flatnonzero(small & present.any(axis=0)).tolist()

    def measures(self) -> Iterator[Measure]:
        """Yield the number of sign changes."""
        low, high = self.bandwidths[self._near[:, 0]][[0, -1]]
        yield Measure(
            name="sign changes",
            value=float(len(self.flips())),
            error=0.0,
            remark=f"coefficients whose sign differs somewhere between ν = {low:.2g} and {high:.2g}",
        )

    def findings(self) -> Iterator[Finding]:
        """Yield sign changes, and coefficients that vanish at the explainer's ν only."""
        for j in self.flips():
            yield self._flip(j)
        vanished = self.vanished()
        if vanished:
            yield self._vanished(vanished)

    def _flip(self, j: int) -> Finding:
        flip, name = self.nearest_flip(j), self.row.conditions[j]
        ratio = max(flip / self.bandwidth, self.bandwidth / flip)
        direction = "wider" if flip > self.bandwidth else "narrower"
        sign = "positive" if self.values[self.current, j] > 0 else "negative"
        return Finding(
            kind="bandwidth",
            severity="warning" if ratio <= _NEAR else "note",
            features=(self.row.names[j],),
            number=flip,
            error=0.0,
            unit="bandwidth where the sign changes",
            sentence=(
                f"The coefficient of “{name}” is {sign} at ν = {self.bandwidth:.3g}, but changes its sign at "
                f"ν ≈ {flip:.3g}, {ratio:.2g} times {direction}."
            ),
            advice=(
                "Do not report its sign without ν: look at the path, choose ν with limes.suggest_bandwidth."
            ),
        )

    def _vanished(self, features: Sequence[int]) -> Finding:
        sizes = np.where(np.isfinite(self.values) & self._near, np.abs(self.values), 0.0)[:, list(features)]
        largest = int(sizes.max(axis=1).argmax())
        return Finding(
            kind="bandwidth",
            severity="note",
            features=tuple(self.row.names[j] for j in features),
            number=float(sizes.max()),
            error=0.0,
            unit="largest coefficient elsewhere on the path",
            sentence=(
                f"{enumerate_names([self.row.names[j] for j in features])}: next to nothing at "
                f"ν = {self.bandwidth:.3g}, but up to {sizes.max():.3g} in size at "
                f"ν = {self.bandwidths[largest]:.3g}."
            ),
            advice="A small coefficient here does not mean that the feature is unused: look at the path.",
        )


def grid(bandwidth: float) -> Floats:
    """Return bandwidths around the explainer's in equal ratios; around 1, and it last, if it is infinite."""
    if np.isinf(bandwidth):
        return np.append(np.geomspace(1.0 / REACH, REACH, POINTS - 1), np.inf)
    return bandwidth * np.geomspace(1.0 / REACH, REACH, POINTS)


def paths(context: DiagnosticContext) -> list[Path]:
    """Return the path of each row."""
    bandwidths, current = grid(context.bandwidth), POINTS - 1
    if np.isfinite(context.bandwidth):
        current = int(np.argmin(np.abs(np.log(bandwidths) - np.log(context.bandwidth))))
        bandwidths[current] = context.bandwidth
    estimates = context.source.path(context, bandwidths)
    return [
        Path(row=row, bandwidths=bandwidths, values=e.value, errors=e.error, current=current)
        for row, e in zip(context.row_outputs, estimates, strict=True)
    ]


def _sorted_by_size(values: Floats, features: Ints) -> list[int]:
    return [int(j) for j in features[np.argsort(-np.abs(values[features]), kind="stable")]]
