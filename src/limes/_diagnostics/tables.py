r"""Diagnostics of tables: cancellation, alignment, bin edges, dependence.

*Cancellation.* A coefficient near 0 may hide a feature that the model follows closely. Let
m(b) = E_w[f | x_j in cell b], the *profile* of column j. The coefficient compares one cell with the average
of the others, β_j = m(b*) - Σ_{b≠b*} q_b m(b) / (1 - q_b*). Of the variance between cells,

    between = Σ_b q_b (m(b) - m̄)²,     it explains     explained = β_j² α_j (1 - α_j) <= between;

the rest is hidden: on uniform data with five bins all of it, as a linear model has β = 0 in the middle bin.

*Alignment.* A coefficient may come from far away, where the model is flat around the instance: weights count
changed columns, not how far a row lies. A bump of the model that shares a cell with the instance in column j
lifts the average over z_j = 1, although next to the instance nothing happens. This is detected by leaving the
instance's box with one column only, and by the spread of the model inside the box:

    β_j(0) = E[f | all z = 1] - E[f | z_j = 0, all others 1]     (the limit ν → 0).

*Edges.* β depends on ξ only through its cells, so that a tiny step over an edge may change all of it. The
distance to an edge is measured in standard deviations of the column. Where a column is recorded on a grid
(ages in years), the row cannot cross the edge by less than a step: its distance is that to the nearest
background value on the other side.

*Dependence.* Columns that are perturbed independently make rows that do not occur, and a model's answers to
these may differ from those to rows that do; a model may even be built to hide its rule that way. The
coefficients β of the product law are therefore compared with those β' of the joint law, which uses the
background's rows alone. The difference of the two laws is

    max_j |β_j / u - β'_j / u'|,    u = max_k |β_k|,    u' = max_k |β'_k|,

which ignores that averages over rows that do not occur are flatter. A unit is at least a fifth of the other:
where all coefficients of one law are next to nothing beside those of the other, that is the difference, and
the noise of the small ones does not count. It is 1 if a leading feature of one law
has coefficient 0 under the other, 2 if its coefficient changes its sign. The share of perturbed rows outside
the background's support is reported too: their k-th nearest background row is farther away than that of 95 %
of background rows. A background whose columns were shuffled shows how large this share would be if columns
were independent.

References
----------
Garreau & von Luxburg 2022, sections 4.1 and 4.2, figures 9, 10, 11, 13 and 15; Slack et al. 2020, "Fooling
LIME and SHAP".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING, Bools, Floats
from limes._diagnostics.context import BOX_ROWS, Estimate, JointContext, TableContext, each_row, indicator
from limes._diagnostics.finding import (
    APART,
    CAPTURED,
    CHANGES,
    EDGE,
    MATTERS,
    NEARLY_ALL,
    OF_LINEAR,
    SAME_SCALE,
    SEVERITIES,
    Finding,
    Measure,
    RowOutput,
    Severity,
    worst,
)
from limes._diagnostics.fit import deviation_around, variance_around
from limes._explanation.view import SURE
from limes._explanation.wording import difference, number
from limes.designs._marginals import BinCells, EdgeDistances

# -- cancellation --------------------------------------------------------------------------------------------

# The most frequent cells of each column are considered
MOST_CELLS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """Mean of the model in each cell of one column: arrays (p,), cells in their order."""

    name: str
    current: int  # position of the instance's cell
    cells: tuple[int, ...]  # positions among all of the column's
    texts: tuple[str, ...]
    mean: Floats  # m(b)
    error: Floats
    probability: Floats  # q_b under the weighted law
    # share of ``between`` that the coefficient explains of an effect that is linear in the column; 1 for
    # categories
    of_linear: float = 1.0

    @cached_property
    def coef(self) -> float:
        """β_j from the profile: the instance's cell against the average of the others."""
        q = self.probability.copy()
        q[self.current] = 0.0
        return float(self.mean[self.current] - q @ self.mean / q.sum()) if q.sum() > 0 else 0.0

    @cached_property
    def between(self) -> float:
        """Variance between cells, corrected for noise, at least 0."""
        q = self.probability
        spread = float(q @ (self.mean - q @ self.mean) ** 2)
        return max(spread - float(q @ self.error**2), 0.0)

    @property
    def between_error(self) -> float:
        q = self.probability  # to first order
        return float(2 * np.sqrt((q * (self.mean - q @ self.mean)) ** 2 @ self.error**2))

    @property
    def explained(self) -> float:
        alpha = self.probability[self.current]
        return min(self.coef**2 * float(alpha * (1 - alpha)), self.between)

    @property
    def hidden(self) -> float:
        return self.between - self.explained


@dataclass(frozen=True, kw_only=True, eq=False)
class Cancellation:
    """The profiles of one row, those that hide most first, and Var_w f."""

    row: RowOutput
    profiles: tuple[Profile, ...]
    variance: Estimate

    @property
    def additive(self) -> float:
        """Share of f's variance between the cells of single columns: what whole effects capture."""
        between = sum(profile.between for profile in self.profiles)
        return min(between / float(self.variance.value), 1.0) if self.variance.value > 0 else 1.0

    @cached_property
    def _hides_nearly_all(self) -> bool:
        return sum(map(self.share, self.profiles)) >= NEARLY_ALL

    def severity(self, profile: Profile) -> Severity | None:
        sure = profile.between - SURE * profile.between_error
        severity = worst(
            lambda level: bool(
                sure >= MATTERS[level] * self.variance.value > 0
                and profile.explained <= CAPTURED[level] * profile.between
            )
        )
        as_linear = profile.explained > OF_LINEAR * profile.of_linear * profile.between
        # a linear effect would hide as much
        return None if severity == "note" and as_linear and not self._hides_nearly_all else severity

    def share(self, profile: Profile) -> float:
        """Share of f's variance that the coefficient hides."""
        return profile.hidden / float(self.variance.value) if self.variance.value > 0 else 0.0

    def share_error(self, profile: Profile) -> float:
        variance, error = float(self.variance.value), float(self.variance.error)
        if not variance > 0:
            return 0.0
        return float(np.hypot(profile.between_error, self.share(profile) * error)) / variance

    def measures(self) -> Iterator[Measure]:
        for most in self.profiles[:1]:
            remark = f"of the model's variance is between cells of {most.name}, not in its coefficient"
            yield Measure("hidden variance", self.share(most), self.share_error(most), remark)

    def findings(self) -> Iterator[Finding]:
        for severity in SEVERITIES:
            for profile, its in self._severities:
                if its == severity:
                    yield self._finding(profile, severity)

    @cached_property
    def _severities(self) -> list[tuple[Profile, Severity | None]]:
        return [(profile, self.severity(profile)) for profile in self.profiles]

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
                f"The coefficient of “{profile.texts[profile.current]}”, {difference(profile.coef, 3)}, "
                f"captures {explained:.0%} of what the model does with {profile.name}: from “{low}” to "
                f"“{high}” its average moves by {number(swing, 3)}; {share:.0%} of its variance is hidden."
            ),
            advice=(
                f"Read the profile of {profile.name} in place of its coefficient; two bins that meet at the "
                "row's value, or slopes (bins=None), would show it."
            ),
        )


def _cancellation(context: TableContext, i: int, row: RowOutput) -> Cancellation:
    laws: dict[int, Floats] = {}  # q_b of each column that is cut into cells
    places: list[tuple[int, int]] = []
    for j in np.flatnonzero(context.binned).tolist():
        laws[j] = q = indicator(context.row_designs[i], j).probability
        frequent = np.argsort(-q, kind="stable")[:MOST_CELLS]
        cells = {int(context.cells[i, j]), *(int(b) for b in frequent if q[b] > 0)}
        places += [(j, b) for b in sorted(cells)]
    profiles = []
    if places:
        means = context.source.profile(context, i, places)
        of_column: dict[int, list[int]] = {}
        for at, (j, _) in enumerate(places):
            of_column.setdefault(j, []).append(at)
        for j, its in of_column.items():
            cells_of_j, mean = [places[at][1] for at in its], Estimate(means.value[its], means.error[its])
            profiles += _profile(context, i, j, cells_of_j, mean, laws[j])
    hidden_first = sorted(profiles, key=lambda profile: -profile.hidden)
    return Cancellation(row=row, profiles=tuple(hidden_first), variance=variance_around(context, i, row))


def _profile(
    context: TableContext, i: int, j: int, cells: list[int], mean: Estimate, q: Floats
) -> list[Profile]:
    """A profile; none if the sample has too few rows in the instance's cell, or in all others."""
    instance_cell, finite = int(context.cells[i, j]), np.isfinite(mean.value)
    chosen = [cell for cell, is_finite in zip(cells, finite, strict=True) if is_finite]
    if instance_cell not in chosen or len(chosen) < 2:
        return []
    profile = Profile(
        name=context.row_outputs[i].names[j],
        current=chosen.index(instance_cell),
        cells=tuple(chosen),
        texts=tuple(context.texts[j][cell] for cell in chosen),
        mean=mean.value[finite],
        error=mean.error[finite],
        probability=q[chosen] / q[chosen].sum(),
    )
    means = context.family.marginals[j].means[chosen]
    if not context.numeric[j] or not np.isfinite(means).all():
        return [profile]
    line = replace(profile, mean=means, error=np.zeros(len(chosen)))
    return [replace(profile, of_linear=line.explained / line.between) if line.between > 0 else profile]


# -- alignment -----------------------------------------------------------------------------------------------

# Coefficients from this share of the largest one are checked
_LARGE = 0.2
# Share of the coefficient below which the effect of this column alone counts as 0
_NOTHING = 0.1
# Standard deviation in the box, as a share of the one under w
_FLAT = 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class Alignment:
    """Limits of the coefficients as ν → 0, and the model's standard deviations in the box and under w."""

    row: RowOutput
    effects: Estimate
    inside: float
    around: Estimate

    @property
    def flatness(self) -> float:
        return self.inside / float(self.around.value) if self.around.value > 0 else 0.0

    @property
    def flatness_error(self) -> float:
        if not self.around.value > 0:
            return 0.0
        of_inside = 1.0 / np.sqrt(2 * BOX_ROWS)  # of a standard deviation of normal rows
        return self.flatness * float(np.hypot(of_inside, self.around.error / self.around.value))

    def artifacts(self) -> list[int]:
        """Features with a large coefficient that nothing near the instance explains."""
        if self.flatness > _FLAT:
            return []
        size = np.abs(self.row.values)
        large = (size >= _LARGE * size.max(initial=0.0)) & (size > SURE * self.row.errors)
        large &= size > self.row.rounding
        nothing = np.abs(self.effects.value) + SURE * self.effects.error <= _NOTHING * size
        return np.flatnonzero(large & nothing).tolist()

    def measures(self) -> Iterator[Measure]:
        remark = "of the model's standard deviation is left where every condition of the row holds"
        yield Measure("spread in the box", self.flatness, self.flatness_error, remark)

    def findings(self) -> Iterator[Finding]:
        for j in self.artifacts():
            effect, coef = float(self.effects.value[j]), float(self.row.values[j])
            effect = effect if abs(effect) > DIFFERENCE_ROUNDING * abs(coef) else -0.0
            yield Finding(
                kind="alignment",
                severity="warning",
                features=(self.row.names[j],),
                number=effect,
                error=float(self.effects.error[j]),
                unit="change of the model when this column alone leaves its cell",
                sentence=(
                    f"“{self.row.conditions[j]}” has the coefficient {difference(coef, 3)}, but the "
                    "model is flat around the row, and leaving this cell alone changes it by "
                    f"{-effect:.2g}: the coefficient comes from elsewhere, where other "
                    "conditions fail too."
                ),
                advice='Use a narrower bandwidth, or weights="euclidean", to see what happens near the row.',
            )


def _alignment(context: TableContext, i: int, row: RowOutput) -> Alignment:
    effects = context.source.single_column_effects(context, i)
    # a slope has no cell to leave: it is never an artifact of this kind
    error = np.where(context.binned, effects.error, np.inf)
    return Alignment(
        row=row,
        effects=Estimate(effects.value, error),
        inside=float(context.box_rows(i)[1].std()),
        around=deviation_around(context, i, row),
    )


# -- bin edges -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Edge:
    """The nearest edge of one row, and the explanation (d,) beyond it."""

    row: RowOutput
    column: int
    distance: float  # in standard deviations of the column
    value: float  # the edge itself
    beyond: str  # the cell on the other side in words
    coef: Estimate

    @property
    def changes(self) -> Floats:
        """Changes (d,) of coefficients beyond the edge, as shares of the largest one, less their noise."""
        # an unknown error of the explanation counts as 0; an unknown error beyond the edge leaves no change
        # to report
        values, errors = self.row.values, np.where(np.isfinite(self.row.errors), self.row.errors, 0.0)
        noise = SURE * np.hypot(errors, np.where(np.isfinite(self.coef.error), self.coef.error, np.inf))
        change = np.maximum(np.abs(np.nan_to_num(self.coef.value) - values) - noise, 0.0)
        largest = max(np.abs(values).max(initial=0.0), np.nanmax(np.abs(self.coef.value), initial=0.0))
        return np.asarray(change / largest if largest > 0 else change)

    @property
    def severity(self) -> Severity | None:
        change = float(self.changes.max(initial=0.0))
        return worst(lambda level: self.distance <= EDGE[level] and change >= CHANGES[level])

    def measures(self) -> Iterator[Measure]:
        remark = f"standard deviations of {self.row.names[self.column]} to “{self.beyond}”"
        yield Measure("nearest edge", self.distance, 0.0, remark)

    def findings(self) -> Iterator[Finding]:
        if self.severity is None:
            return
        name, j = self.row.names[self.column], int(self.changes.argmax())
        where = f"{self.distance:.2g} standard deviations from" if self.distance > 0 else "on"
        yield Finding(
            kind="edge",
            severity=self.severity,
            features=(name,),
            number=self.distance,
            unit="standard deviations to the nearest bin edge",
            sentence=(
                f"{name} lies {where} {self.value:.6g}, beyond which “{self.beyond}” would "
                f"hold: there the coefficient of {self.row.names[j]} would be "
                f"{difference(self.coef.value[j], 3)} in place of {difference(self.row.values[j], 3)}."
            ),
            advice="Report both sides, or use other edges (bins=), smooth weights, or slopes (bins=None).",
        )


def _edges(context: TableContext) -> list[Edge | None]:
    """The nearest edge of each row, None if no column is cut into cells."""
    crossings = EdgeDistances.learn(
        context.family.marginals, context.background, context.binned, context.units
    )
    down, up = (np.nan_to_num(a, nan=np.inf) for a in crossings.distances(context.rows, context.cells))
    nearest = np.minimum(down, up)

    def edge(context: TableContext, i: int, row: RowOutput) -> Edge | None:
        j = int(nearest[i].argmin())
        if not np.isfinite(nearest[i, j]):
            return None
        cell, cells = int(context.cells[i, j]), context.family.marginals[j].cells
        assert isinstance(cells, BinCells)  # noqa: S101 - only bins have edges
        other = cell - 1 if down[i, j] <= up[i, j] else cell + 1
        coef = context.source.coef_in_cells(context, i, [(j, other)])
        return Edge(
            row=row,
            column=j,
            distance=max(float(nearest[i, j]), 0.0),
            value=float(cells.edges[max(cell, other)]),
            beyond=context.texts[j][other],
            coef=Estimate(coef.value[0], coef.error[0]),
        )

    return each_row(edge)(context)


# -- dependence ----------------------------------------------------------------------------------------------

_NEIGHBOUR = 5
_BACKGROUND, _DRAWN = 1000, 256
_INSIDE = 0.95


@dataclass(frozen=True, kw_only=True)
class OutsideValues:
    """Shares of ``rows`` drawn rows outside the supports of the background and of the shuffled one."""

    rows: int
    real: float
    shuffled: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Dependence:
    """Coefficients (d,) of one row under both laws, and the perturbed rows that do not occur."""

    row: RowOutput
    product: Estimate
    joint: Estimate
    outside: OutsideValues
    # the two columns with the largest rank correlation, and the correlation
    correlated: tuple[str, str, float] | None = None
    is_joint: bool = False  # whether the row was explained on rows that occur

    @property
    def _shares(self) -> tuple[Floats, Floats]:
        """Coefficients of both laws in their units, (d,) each."""
        units = self._units
        return self.product.value / units[0], self.joint.value / units[1]

    @property
    def _units(self) -> tuple[float, float]:
        """The largest coefficients of both laws, neither much smaller than the other."""
        product, joint = (float(np.abs(law.value).max(initial=0.0)) for law in (self.product, self.joint))
        least = SAME_SCALE * max(product, joint)
        return max(product, least) or 1.0, max(joint, least) or 1.0

    @property
    def feature(self) -> int:
        """Position of the feature that changes most."""
        return int(np.abs(np.subtract(*self._shares)).argmax())

    @property
    def apart(self) -> float:
        """Largest difference of the coefficients of both laws, in these units."""
        return float(np.abs(np.subtract(*self._shares)).max(initial=0.0))

    @property
    def error(self) -> float:
        """Standard error of ``apart``, without that of the largest coefficients."""
        laws = zip((self.product, self.joint), self._units, strict=True)
        return float(np.hypot(*[law.error[self.feature] / unit for law, unit in laws]))

    def measures(self) -> Iterator[Measure]:
        remark = (
            "between the coefficients of independent columns and of rows that occur (law='joint'), "
            "each in units of the largest"
        )
        yield Measure("laws apart", self.apart, self.error, remark)
        real, together = self.outside.real, ""
        if self.correlated is not None:
            first, second, correlation = self.correlated
            together = f"; {first} and {second} move together most, rank correlation {correlation:+.2f}"
        remark = (
            "of perturbed rows lie where no background row is "
            f"({self.outside.shuffled:.0%} if columns were independent){together}"
        )
        error = float(np.sqrt(real * (1 - real) / self.outside.rows))
        yield Measure("outside the data", real, error, remark, "")

    def findings(self) -> Iterator[Finding]:
        sure = self.apart - SURE * self.error
        severity = worst(lambda level: sure >= APART[level])
        if severity is None:
            return
        j, (product, joint), strongest = self.feature, self._shares, ""
        if self.correlated is not None:
            first, second, correlation = self.correlated
            strongest = f" ({first} and {second} have the rank correlation {correlation:+.2f})"
        yield Finding(
            kind="dependence",
            severity=severity,
            features=(self.row.names[j],),
            number=self.apart,
            error=self.error,
            unit="difference between the two laws, each in units of its largest coefficient",
            sentence=(
                f"The coefficient of {self.row.names[j]} is {difference(self.product.value[j], 3)} if "
                f"columns vary independently, {product[j]:+.0%} of the largest one; on rows that occur it is "
                f"{difference(self.joint.value[j], 3)}, {joint[j]:+.0%}. {self.outside.real:.0%} of the "
                f"perturbed rows lie outside the background{strongest}."
            ),
            advice=_ON_ROWS_THAT_OCCUR if self.is_joint else _ON_INDEPENDENT_COLUMNS,
        )


_ON_INDEPENDENT_COLUMNS = (
    "Compare with the explanation of the other law (law='joint' rests on the background's own rows): trust "
    "independent columns only as far as you trust the model on rows that do not occur."
)
_ON_ROWS_THAT_OCCUR = (
    "Name the law where you report this coefficient: law='joint' credits a column with what the columns that "
    "change with it do."
)


def _dependences(context: TableContext) -> list[Dependence | None]:
    """Compare the laws at each row; None if there is no other law, or the background is too small."""
    rng = np.random.default_rng([context.seed, 3])
    real = _subsample(context.background, rng)
    if len(real) < 2 * _NEIGHBOUR or context.other_law is None:
        return [None] * len(context.rows)
    shuffled = np.column_stack([rng.permutation(column) for column in real.T])
    center = np.nan_to_num(np.nanmean(np.where(context.numeric, real, 0.0), axis=0))
    levels = [  # the categories of each column, none for numbers
        np.empty(0) if numeric else np.unique(column[~np.isnan(column)])
        for numeric, column in zip(context.numeric, context.background.T, strict=True)
    ]
    supports = [_embedded(rows - center, context.units, levels) for rows in (real, shuffled)]
    # the nearest neighbour of a row, itself, is skipped
    radii = [float(np.quantile(_kth(rows, rows, _NEIGHBOUR + 1), _INSIDE)) for rows in supports]
    correlated = _most_correlated(real, context.numeric, context.row_outputs[0].names)

    def dependence(context: TableContext, i: int, row: RowOutput) -> Dependence:
        drawn = _embedded(context.perturbed(i, _DRAWN) - center, context.units, levels)
        # repeated rows have distance 0: rounding must not put them outside
        shares = [
            float((_kth(drawn, rows, _NEIGHBOUR) > radius + 1e-9).mean())
            for rows, radius in zip(supports, radii, strict=True)
        ]
        outside = OutsideValues(rows=len(drawn), real=shares[0], shuffled=shares[1])
        product, joint = context.by_law(i)
        return Dependence(
            row=row,
            product=product,
            joint=joint,
            outside=outside,
            correlated=correlated,
            is_joint=isinstance(context, JointContext),
        )

    return each_row(dependence)(context)


def _kth(points: Floats, rows: Floats, k: int) -> Floats:
    """Distance of each point to its k-th nearest row, (n,)."""
    squared = (points**2).sum(axis=1)[:, None] + (rows**2).sum(axis=1) - 2.0 * points @ rows.T
    nearest = np.partition(squared, k - 1, axis=1)[:, k - 1]
    return np.sqrt(np.maximum(nearest, 0.0))


def _embedded(x: Floats, units: Floats, levels: Sequence[Floats]) -> Floats:
    """Coordinates (n, e) of rows: numbers in units; other categories, and missing values, are 1 away."""
    parts = []
    for column, unit, categories in zip(x.T, units, levels, strict=True):
        missing = np.isnan(column)
        if categories.size:
            parts.append((column[:, None] == categories) / np.sqrt(2.0))
        else:
            parts.append(np.where(missing, 0.0, column / unit)[:, None])
        parts.append(missing[:, None].astype(np.float64))
    return np.concatenate(parts, axis=1)


def _subsample(background: Floats, rng: np.random.Generator) -> Floats:
    if len(background) <= _BACKGROUND:
        return background
    return np.asarray(background[np.sort(rng.choice(len(background), _BACKGROUND, replace=False))])


def _most_correlated(rows: Floats, numeric: Bools, names: tuple[str, ...]) -> tuple[str, str, float] | None:
    """The two numeric columns with the largest rank correlation in size, and the correlation."""
    from scipy.stats import rankdata

    varies = [np.unique(column[~np.isnan(column)]).size > 1 for column in rows.T]
    columns = np.flatnonzero(numeric & varies)
    if columns.size < 2:
        return None
    ranks = rankdata(np.nan_to_num(rows[:, columns]), axis=0)
    matrix = np.corrcoef(ranks, rowvar=False)
    first, second = np.triu_indices(columns.size, 1)
    p = int(np.abs(matrix[first, second]).argmax())
    pair = columns[[first[p], second[p]]].tolist()
    return names[pair[0]], names[pair[1]], float(matrix[first[p], second[p]])


# From a context to a result for each row, None for rows without one
OF_TABLES: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    "cancellation": each_row(_cancellation),
    "alignment": each_row(_alignment),
    "edge": _edges,
    "dependence": _dependences,
}
