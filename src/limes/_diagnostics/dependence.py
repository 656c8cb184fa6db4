r"""Dependence: columns are perturbed independently, which makes rows that do not occur in the background.

Is a perturbed row outside the background's support? It is if its k-th nearest background row is farther away
than that of 95 % of background rows themselves. Rows drawn for an explanation are compared with two
backgrounds, the real one and one whose columns were shuffled independently:

    excess = P(outside the real one) - P(outside the shuffled one).

The second corrects for everything that is not dependence: corners, narrow bandwidths, many columns. If
columns are independent the two backgrounds are alike, and the excess is noise around 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._diagnostics.context import TableContext
from limes._diagnostics.finding import SEVERITIES, SURE, Finding, Measure, RowOutput, Severity
from limes._diagnostics.thresholds import EXCESS

_NEIGHBOUR = 5
_BACKGROUND, _DRAWN = 1000, 256
_INSIDE = 0.95
# Pairs of columns with the largest rank correlation that are checked separately
_PAIRS = 3


@dataclass(frozen=True, kw_only=True)
class Outside:
    """Shares of ``rows`` drawn rows outside the supports of the background and of the shuffled one.

    ``names`` are the columns that were compared; ``correlation`` is the rank correlation of a pair.
    """

    names: tuple[str, ...]
    rows: int
    real: float
    shuffled: float
    correlation: float = np.nan

    @property
    def excess(self) -> float:
        """Share of rows outside because of dependence."""
        return self.real - self.shuffled

    @property
    def error(self) -> float:
        """Standard error of the excess, as if the two shares were from different rows."""
        return float(np.sqrt(sum(p * (1 - p) for p in (self.real, self.shuffled)) / self.rows))


@dataclass(frozen=True, kw_only=True, eq=False)
class Dependence:
    """All columns together, and the most correlated pairs."""

    row: RowOutput
    together: Outside
    pairs: tuple[Outside, ...]

    @property
    def worst(self) -> Outside:
        """The comparison with the largest excess."""
        return max((self.together, *self.pairs), key=lambda o: o.excess)

    def measures(self) -> Iterator[Measure]:
        """Yield the share of rows outside."""
        yield Measure(
            name="outside the data",
            value=self.together.real,
            error=float(np.sqrt(self.together.real * (1 - self.together.real) / self.together.rows)),
            remark="of perturbed rows lie where no background row is "
            f"({self.together.shuffled:.0%} if columns were independent)",
        )

    def findings(self) -> Iterator[Finding]:
        """Yield a finding if too many rows are outside because of dependence."""
        worst = self.worst
        sure = worst.excess - SURE * worst.error
        severity: Severity | None = next((s for s in SEVERITIES if sure >= EXCESS[s]), None)
        if severity is None:
            return
        where = " and ".join(worst.names) if len(worst.names) == 2 else f"the {len(worst.names)} columns"
        strongest = self._strongest()
        yield Finding(
            kind="dependence",
            severity=severity,
            features=worst.names if len(worst.names) == 2 else (),
            number=worst.excess,
            error=worst.error,
            unit="share of perturbed rows outside the background, beyond that of independent columns",
            sentence=(
                f"{worst.real:.0%} of the perturbed rows lie outside the background in {where}; "
                f"{worst.shuffled:.0%} would if columns were independent{strongest}. The explanation rests "
                "on what the model predicts for rows that do not occur."
            ),
            advice=(
                "Ask whether the model can be trusted there; leave one of the dependent columns out of the "
                "model, or read their coefficients together."
            ),
        )

    def _strongest(self) -> str:
        if not self.pairs:
            return ""
        pair = max(self.pairs, key=lambda p: abs(p.correlation))
        return f" ({pair.names[0]} and {pair.names[1]} have the rank correlation {pair.correlation:+.2f})"


@dataclass(frozen=True, eq=False)
class Support:
    """Rows (m, e) in a space of distances, and the radius: the largest distance to the k-th row inside."""

    rows: Floats
    radius: float

    @classmethod
    def from_rows(cls, rows: Floats) -> Support:
        """Return the support of background rows; the nearest neighbour of a row, itself, is skipped."""
        k = min(_NEIGHBOUR, len(rows) - 1)
        return cls(rows, float(np.quantile(_kth(rows, rows, k + 1), _INSIDE)))

    def outside(self, drawn: Floats) -> float:
        """Return the share of rows (n, e) that are outside."""
        k = min(_NEIGHBOUR, len(self.rows) - 1)
        # repeated rows have distance 0: rounding must not put them outside
        return float((_kth(drawn, self.rows, k) > self.radius + 1e-9).mean())


def _kth(points: Floats, rows: Floats, k: int) -> Floats:
    """Return the distance of each point to its k-th nearest row, (n,)."""
    squared = (points**2).sum(axis=1)[:, None] + (rows**2).sum(axis=1) - 2.0 * points @ rows.T
    nearest = np.partition(squared, k - 1, axis=1)[:, k - 1]
    return np.sqrt(np.maximum(nearest, 0.0))


@dataclass(frozen=True, eq=False)
class Space:
    """Columns as coordinates: numbers in standard deviations; other categories and missing values are 1 away.

    Attributes
    ----------
    unit
        (d,) standard deviations.
    levels
        The categories of each column, empty for numbers.
    """

    unit: Floats
    levels: tuple[Floats, ...]

    def embed(self, x: Floats, columns: Ints) -> Floats:
        """Return coordinates (n, e) of some columns of rows x."""
        parts = []
        for j in columns.tolist():
            missing = np.isnan(x[:, j])
            if self.levels[j].size:
                parts.append((x[:, j, None] == self.levels[j]) / np.sqrt(2.0))
            else:
                parts.append(np.where(missing, 0.0, x[:, j] / self.unit[j])[:, None])
            parts.append(missing[:, None].astype(np.float64))
        return np.concatenate(parts, axis=1)


def dependences(context: TableContext) -> list[Dependence | None]:
    """Return how many rows of each neighbourhood lie outside the background; None if it is too small."""
    rng = np.random.default_rng([context.seed, 3])
    real = _subsample(context.background, rng)
    if len(real) < 2 * _NEIGHBOUR:
        return [None] * len(context)
    shuffled = np.column_stack([rng.permutation(column) for column in real.T])
    center = np.nan_to_num(np.nanmean(np.where(context.numeric, real, 0.0), axis=0))
    space = Space(context.units, _levels(context.background, context.numeric))
    groups = [(np.arange(real.shape[1]), np.nan), *_correlated(real, context.numeric)]
    supports = [
        tuple(Support.from_rows(space.embed(rows - center, columns)) for rows in (real, shuffled))
        for columns, _ in groups
    ]
    names = context.row_outputs[0].names
    results: list[Dependence | None] = []
    for i, row in enumerate(context.row_outputs):
        # the first rows of every sample are drawn from w itself
        drawn = context.samples[i].x[: min(_DRAWN, context.calls // len(context.source.spread))]
        outside = [
            Outside(
                names=tuple(names[j] for j in columns),
                rows=len(drawn),
                real=support.outside(space.embed(drawn - center, columns)),
                shuffled=shuffled_support.outside(space.embed(drawn - center, columns)),
                correlation=correlation,
            )
            for (columns, correlation), (support, shuffled_support) in zip(groups, supports, strict=True)
        ]
        results.append(Dependence(row=row, together=outside[0], pairs=tuple(outside[1:])))
    return results


def _subsample(background: Floats, rng: np.random.Generator) -> Floats:
    if len(background) <= _BACKGROUND:
        return background
    return np.asarray(background[np.sort(rng.choice(len(background), _BACKGROUND, replace=False))])


def _levels(background: Floats, numeric: Bools) -> tuple[Floats, ...]:
    return tuple(
        np.empty(0) if numeric[j] else np.unique(column[~np.isnan(column)])
        for j, column in enumerate(background.T)
    )


def _correlated(rows: Floats, numeric: Bools) -> list[tuple[Ints, float]]:
    """Return the pairs of numeric columns with the largest rank correlation, in size."""
    from scipy.stats import rankdata

    columns = np.flatnonzero(numeric & (np.nanstd(rows, axis=0) > 0))
    if columns.size < 2:
        return []
    ranks = rankdata(np.nan_to_num(rows[:, columns]), axis=0)
    matrix = np.corrcoef(ranks, rowvar=False)
    first, second = np.triu_indices(columns.size, 1)
    order = np.argsort(-np.abs(matrix[first, second]), kind="stable")[:_PAIRS]
    return [(columns[[first[p], second[p]]], float(matrix[first[p], second[p]])) for p in order]
