r"""Cancellation: a coefficient near 0 may hide a feature that the model follows closely.

Let m(b) = E_w[f | x_j in cell b], its *profile*. The coefficient compares one cell with the average of the
others, β_j = m(b*) - Σ_{b≠b*} q_b m(b) / (1 - q_b*). Of the variance between cells,

    between = Σ_b q_b (m(b) - m̄)²,     it explains     explained = β_j² α_j (1 - α_j) <= between;

the rest is hidden: on uniform data with five bins all of it, as a linear model has β = 0 in the middle bin.

References
----------
Garreau & von Luxburg 2022, section 4.1, "Cancellation phenomenon", figures 9 and 10.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats
from limes._diagnostics.context import Estimate, TableContext
from limes._diagnostics.finding import (
    CAPTURED,
    MATTERS,
    NEARLY_ALL,
    OF_LINEAR,
    SEVERITIES,
    SURE,
    Finding,
    Measure,
    RowOutput,
    Severity,
)
from limes._diagnostics.source import indicator

# The most frequent cells of each column are considered
MOST_CELLS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """Mean of the model in each cell of one column: arrays (p,), cells in their order.

    Attributes
    ----------
    current
        Position of the instance's cell.
    cells, texts
        The cells' positions among all of the column's, and in words.
    mean, error
        m(b) and its standard errors.
    probability
        q_b under the weighted law.
    of_linear
        Share of ``between`` that the coefficient explains of an effect that is linear in the column; 1 for
        categories.
    """

    name: str
    current: int
    cells: tuple[int, ...]
    texts: tuple[str, ...]
    mean: Floats
    error: Floats
    probability: Floats
    of_linear: float = 1.0

    @property
    def coef(self) -> float:
        """β_j from the profile: the instance's cell against the average of the others."""
        q = self.probability.copy()
        q[self.current] = 0.0
        return float(self.mean[self.current] - q @ self.mean / q.sum()) if q.sum() > 0 else 0.0

    @property
    def between(self) -> float:
        """Variance between cells, corrected for noise, at least 0."""
        q = self.probability
        spread = float(q @ (self.mean - q @ self.mean) ** 2)
        return max(spread - float(q @ self.error**2), 0.0)

    @property
    def between_error(self) -> float:
        """Standard error of ``between``, to first order."""
        q = self.probability
        return float(2 * np.sqrt((q * (self.mean - q @ self.mean)) ** 2 @ self.error**2))

    @property
    def explained(self) -> float:
        """Variance between cells that β_j explains."""
        alpha = self.probability[self.current]
        return min(self.coef**2 * float(alpha * (1 - alpha)), self.between)

    @property
    def hidden(self) -> float:
        """Variance between cells that β_j does not explain."""
        return self.between - self.explained


@dataclass(frozen=True, kw_only=True, eq=False)
class Cancellation:
    """The profiles of one row, and Var_w f."""

    row: RowOutput
    profiles: tuple[Profile, ...]
    variance: Estimate

    @property
    def additive(self) -> float:
        """Share of f's variance between the cells of single columns: what whole effects capture."""
        between = sum(profile.between for profile in self.profiles)
        return min(between / float(self.variance.value), 1.0) if self.variance.value > 0 else 1.0

    @property
    def hides_nearly_all(self) -> bool:
        """Whether nearly all of f's variance is between cells, and in no coefficient."""
        return sum(map(self.share, self.profiles)) >= NEARLY_ALL

    def severity(self, profile: Profile) -> Severity | None:
        """Return the severity of the variance that is hidden; None if a linear effect would hide as much."""
        if not self.hides_nearly_all and profile.explained > OF_LINEAR * profile.of_linear * profile.between:
            return None
        sure = profile.between - SURE * profile.between_error
        return next(
            (
                level
                for level in SEVERITIES
                if sure >= MATTERS[level] * self.variance.value > 0
                and profile.explained <= CAPTURED[level] * profile.between
            ),
            None,
        )

    def share(self, profile: Profile) -> float:
        """Return the share of f's variance that the coefficient hides."""
        return profile.hidden / float(self.variance.value) if self.variance.value > 0 else 0.0

    def share_error(self, profile: Profile) -> float:
        variance, error = float(self.variance.value), float(self.variance.error)
        if not variance > 0:
            return 0.0
        return float(np.hypot(profile.between_error, self.share(profile) * error)) / variance

    def ordered(self) -> list[Profile]:
        """Return the profiles by hidden variance, largest first."""
        return sorted(self.profiles, key=lambda p: -p.hidden)

    def measures(self) -> Iterator[Measure]:
        if self.profiles:
            worst = self.ordered()[0]
            yield Measure(
                name="hidden variance",
                value=self.share(worst),
                error=self.share_error(worst),
                remark=f"of the model's variance is between cells of {worst.name}, not in its coefficient",
            )

    def findings(self) -> Iterator[Finding]:
        for severity in SEVERITIES:
            for profile in self.ordered():
                if self.severity(profile) == severity:
                    yield self._finding(profile, severity)

    def _finding(self, profile: Profile, severity: Severity) -> Finding:
        share, swing = self.share(profile), float(np.ptp(profile.mean[profile.probability > 0]))
        low = profile.texts[int(np.argmin(profile.mean))]
        high = profile.texts[int(np.argmax(profile.mean))]
        explained = profile.explained / profile.between
        return Finding(
            kind="cancellation",
            severity=severity,
            features=(profile.name,),
            number=share,
            error=self.share_error(profile),
            unit="share of the model's variance that the coefficient hides",
            sentence=(
                f"The coefficient of “{profile.texts[profile.current]}”, {profile.coef:+.3g}, captures "
                f"{explained:.0%} of what the model does with {profile.name}: from “{low}” to “{high}” its "
                f"average moves by {swing:.3g}; {share:.0%} of its variance is hidden."
            ),
            advice=(
                f"Read the profile of {profile.name} in place of its coefficient; two bins that meet at the "
                "row's value, or slopes (bins=None), would show it."
            ),
        )


def cancellations(context: TableContext) -> list[Cancellation]:
    """Return the profiles of each row."""
    return [
        Cancellation(row=row, profiles=_profiles(context, i), variance=_variance(context, i))
        for i, row in enumerate(context.row_outputs)
    ]


def _variance(context: TableContext, i: int) -> Estimate:
    sample = context.samples[i]
    return sample.variance(sample.weights(context.bandwidth))


def _profiles(context: TableContext, i: int) -> tuple[Profile, ...]:
    columns = np.flatnonzero(context.binned).tolist()
    considered = {j: _most_frequent(_probability(context, i, j), int(context.cells[i, j])) for j in columns}
    places = [(j, cell) for j, cells in considered.items() for cell in cells]
    if not places:
        return ()
    means = context.source.profile(context, i, places)
    column = np.array([j for j, _ in places])
    profiles = (
        _profile(context, i, j, cells, Estimate(means.value[column == j], means.error[column == j]))
        for j, cells in considered.items()
    )
    return tuple(profile for profile in profiles if profile is not None)


def _profile(context: TableContext, i: int, j: int, cells: list[int], mean: Estimate) -> Profile | None:
    """Return a profile; None if the sample has too few rows in the instance's cell, or in all others."""
    instance_cell = int(context.cells[i, j])
    finite = np.isfinite(mean.value)
    chosen = [cell for cell, is_finite in zip(cells, finite, strict=True) if is_finite]
    if instance_cell not in chosen or len(chosen) < 2:
        return None
    q = _probability(context, i, j)[chosen]
    current, probability = chosen.index(instance_cell), q / q.sum()
    return Profile(
        name=context.row_outputs[i].names[j],
        current=current,
        cells=tuple(chosen),
        texts=tuple(context.texts[j][cell] for cell in chosen),
        mean=mean.value[finite],
        error=mean.error[finite],
        probability=probability,
        of_linear=_of_linear(context, j, chosen, current, probability),
    )


def _of_linear(context: TableContext, j: int, cells: list[int], current: int, probability: Floats) -> float:
    """Return the share of a linear effect's variance between cells that the contrast of one explains."""
    means = context.family.marginals[j].means[cells]
    if not context.numeric[j] or not np.isfinite(means).all():
        return 1.0
    line = Profile(
        name="",
        current=current,
        cells=(),
        texts=(),
        mean=means,
        error=np.zeros(len(cells)),
        probability=probability,
    )
    return line.explained / line.between if line.between > 0 else 1.0


def _probability(context: TableContext, i: int, j: int) -> Floats:
    """Return q_b under the weighted law, (p,)."""
    return indicator(context.row_designs[i], j).probability


def _most_frequent(probability: Floats, instance_cell: int) -> list[int]:
    """Return the possible cells, the most frequent ones if there are many, in their order."""
    order = np.argsort(-probability, kind="stable")[:MOST_CELLS]
    return sorted({instance_cell, *(int(b) for b in order if probability[b] > 0)})
