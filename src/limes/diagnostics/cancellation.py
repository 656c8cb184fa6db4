r"""Cancellation: a coefficient near 0 may hide a feature that the model follows closely.

Let m(b) = E_w[f | x_j in cell b], its *profile*. The coefficient compares one cell with the average of the
others, β_j = m(b*) - Σ_{b≠b*} q_b m(b) / (1 - q_b*). Of the variance between cells,

    between = Σ_b q_b (m(b) - m̄)²,     it tells     told = β_j² α_j (1 - α_j) <= between;

the rest is hidden. On uniform data with five bins a linear model has β = 0 in the middle bin: everything is.

References
----------
Garreau & von Luxburg 2022, section 4.1, "Cancellation phenomenon", figures 9 and 10.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats
from limes.diagnostics.facts import Facts
from limes.diagnostics.finding import SURE, Finding, Measure
from limes.diagnostics.sample import Estimate
from limes.diagnostics.source import indicator
from limes.diagnostics.table_scene import TableScene

# Cells of one column that are looked at: the most frequent ones
MOST_CELLS = 64
# The feature matters if cells tell so much of the model's variance ...
_MATTERS = {"warning": 0.2, "note": 0.1}
# ... and is hidden if the coefficient tells no more of that.
_TOLD = {"warning": 0.05, "note": 0.1}


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """What the model is on average in each cell of one column: arrays (p,), cells in their order.

    Attributes
    ----------
    own
        Place of the instance's cell.
    cells, texts
        Positions of the cells among the column's, and in words.
    mean, error
        m(b) and its standard errors.
    probability
        q_b under the weighted law.
    """

    name: str
    own: int
    cells: tuple[int, ...]
    texts: tuple[str, ...]
    mean: Floats
    error: Floats
    probability: Floats

    @property
    def coef(self) -> float:
        """β_j from the profile: its own cell against the average of the others."""
        q = self.probability.copy()
        q[self.own] = 0.0
        return float(self.mean[self.own] - q @ self.mean / q.sum()) if q.sum() > 0 else 0.0

    @property
    def between(self) -> float:
        """Variance between cells, less what noise adds to it, at least 0."""
        q = self.probability
        spread = float(q @ (self.mean - q @ self.mean) ** 2)
        return max(spread - float(q @ self.error**2), 0.0)

    @property
    def between_error(self) -> float:
        """Standard error of ``between``, to first order."""
        q = self.probability
        return float(2 * np.sqrt((q * (self.mean - q @ self.mean)) ** 2 @ self.error**2))

    @property
    def told(self) -> float:
        """What β_j tells of it."""
        alpha = self.probability[self.own]
        return min(self.coef**2 * float(alpha * (1 - alpha)), self.between)

    @property
    def hidden(self) -> float:
        """What it does not."""
        return self.between - self.told


@dataclass(frozen=True, kw_only=True, eq=False)
class Cancellation:
    """The profiles of one row, and Var_w f."""

    facts: Facts
    profiles: tuple[Profile, ...]
    variance: Estimate

    def share(self, profile: Profile) -> float:
        """Variance that the coefficient hides, of all that f has."""
        return profile.hidden / float(self.variance.value) if self.variance.value > 0 else 0.0

    def share_error(self, profile: Profile) -> float:
        """Its standard error, to first order."""
        variance, error = float(self.variance.value), float(self.variance.error)
        if not variance > 0:
            return 0.0
        return float(np.hypot(profile.between_error, self.share(profile) * error)) / variance

    def ordered(self) -> list[Profile]:
        """Profiles by what they hide, largest first."""
        return sorted(self.profiles, key=lambda p: -p.hidden)

    def measures(self) -> Iterator[Measure]:
        """The largest hidden share."""
        if self.profiles:
            worst = self.ordered()[0]
            yield Measure(
                name="hidden variance",
                value=self.share(worst),
                error=self.share_error(worst),
                remark=f"of the model's variance is between cells of {worst.name}, not in its coefficient",
            )

    def findings(self) -> Iterator[Finding]:
        """Features whose coefficient tells next to nothing of what cells tell."""
        for severity in ("warning", "note"):
            for profile in self.ordered():
                if _severity(profile, self.variance) == severity:
                    yield self._finding(profile, severity)

    def _finding(self, profile: Profile, severity: str) -> Finding:
        share, swing = self.share(profile), float(np.ptp(profile.mean[profile.probability > 0]))
        low = profile.texts[int(np.argmin(profile.mean))]
        high = profile.texts[int(np.argmax(profile.mean))]
        told = profile.told / profile.between
        return Finding(
            kind="cancellation",
            severity="warning" if severity == "warning" else "note",
            features=(profile.name,),
            number=share,
            error=self.share_error(profile),
            unit="share of the model's variance that the coefficient hides",
            sentence=(
                f"The coefficient of “{profile.texts[profile.own]}”, {profile.coef:+.3g}, tells {told:.0%} "
                f"of what the model does with {profile.name}: from “{low}” to “{high}” its average moves by "
                f"{swing:.3g}; {share:.0%} of its variance is hidden."
            ),
            advice=(
                f"Read the profile of {profile.name} in place of its coefficient; other bins, or slopes "
                "(bins=None), would show it."
            ),
        )


def _severity(profile: Profile, variance: Estimate) -> str:
    sure = profile.between - SURE * profile.between_error
    for name in ("warning", "note"):
        if sure >= _MATTERS[name] * variance.value > 0 and profile.told <= _TOLD[name] * profile.between:
            return name
    return "none"


def cancellations(scene: TableScene) -> list[Cancellation]:
    """Profiles of each row."""
    return [
        Cancellation(facts=facts, profiles=_profiles(scene, i), variance=_variance(scene, i))
        for i, facts in enumerate(scene.facts)
    ]


def _variance(scene: TableScene, i: int) -> Estimate:
    sample = scene.samples[i]
    return sample.variance(sample.weights(scene.bandwidth))


def _profiles(scene: TableScene, i: int) -> tuple[Profile, ...]:
    columns = np.flatnonzero(scene.binned).tolist()
    looked_at = {j: _looked_at(_probability(scene, i, j), int(scene.cells[i, j])) for j in columns}
    places = [(j, cell) for j, cells in looked_at.items() for cell in cells]
    if not places:
        return ()
    found = scene.source.profile(scene, i, places)
    owner = np.array([j for j, _ in places])
    each = (_profile(scene, i, j, cells, _taken(found, owner == j)) for j, cells in looked_at.items())
    return tuple(profile for profile in each if profile is not None)


def _profile(scene: TableScene, i: int, j: int, cells: list[int], mean: Estimate) -> Profile | None:
    """None where the sample knows nothing of the row's own cell, or of no other."""
    own = int(scene.cells[i, j])
    known = np.isfinite(mean.value)
    chosen = [cell for cell, k in zip(cells, known, strict=True) if k]
    if own not in chosen or len(chosen) < 2:
        return None
    q = _probability(scene, i, j)[chosen]
    return Profile(
        name=scene.facts[i].names[j],
        own=chosen.index(own),
        cells=tuple(chosen),
        texts=tuple(scene.texts[j][cell] for cell in chosen),
        mean=mean.value[known],
        error=mean.error[known],
        probability=q / q.sum(),
    )


def _probability(scene: TableScene, i: int, j: int) -> Floats:
    """q_b under the weighted law, (p,)."""
    coordinate = indicator(scene.here[i], j)
    found = coordinate.exclusion * coordinate.elsewhere
    found[coordinate.cell] = coordinate.inclusion
    return np.asarray(found)


def _taken(found: Estimate, chosen: Bools) -> Estimate:
    return Estimate(found.value[chosen], found.error[chosen])


def _looked_at(probability: Floats, own: int) -> list[int]:
    """Cells that can happen, the most frequent ones where they are many, in their order."""
    order = np.argsort(-probability, kind="stable")[:MOST_CELLS]
    return sorted({own, *(int(b) for b in order if probability[b] > 0)})
