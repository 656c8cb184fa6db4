r"""Dependence: how an explanation changes where columns depend on each other as in the background.

Columns that are perturbed independently make rows that do not occur, and a model's answers to these may
differ from those to rows that do; a model may even be built to hide its rule that way (Slack et al. 2020).
The coefficients β of the product law are therefore compared with those β' of the joint law, which uses the
background's rows alone. The difference of the two laws is

    max_j |β_j / max_k |β_k| - β'_j / max_k |β'_k||,

which ignores that averages over rows that do not occur are flatter. It is 1 if a leading feature of one law
has coefficient 0 under the other, 2 if its coefficient changes its sign.

The share of perturbed rows outside the background's support is reported too: their k-th nearest background
row is farther away than that of 95 % of background rows. A background whose columns were shuffled shows how
large this share would be if columns were independent.

References
----------
Slack et al. 2020, "Fooling LIME and SHAP".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats
from limes._diagnostics.context import Estimate, TableContext
from limes._diagnostics.finding import APART, SEVERITIES, SURE, Finding, Measure, RowOutput, Severity

_NEIGHBOUR = 5
_BACKGROUND, _DRAWN = 1000, 256
_INSIDE = 0.95


@dataclass(frozen=True, kw_only=True)
class Outside:
    """Shares of ``rows`` drawn rows outside the supports of the background and of the shuffled one."""

    rows: int
    real: float
    shuffled: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Dependence:
    """Coefficients (d,) of one row under both laws, and the perturbed rows that do not occur.

    ``correlated`` are the two columns with the largest rank correlation, and the correlation; None without
    any.
    """

    row: RowOutput
    product: Estimate
    joint: Estimate
    outside: Outside
    correlated: tuple[str, str, float] | None = None

    @property
    def _shares(self) -> tuple[Floats, Floats]:
        """Coefficients of both laws in units of the largest one, (d,) each."""
        return _in_units(self.product.value)[0], _in_units(self.joint.value)[0]

    @property
    def feature(self) -> int:
        """Position of the feature that changes most."""
        product, joint = self._shares
        return int(np.abs(product - joint).argmax())

    @property
    def apart(self) -> float:
        """Largest difference of the coefficients of both laws, in these units."""
        product, joint = self._shares
        return float(np.abs(product - joint).max(initial=0.0))

    @property
    def error(self) -> float:
        """Standard error of ``apart``, without that of the largest coefficients."""
        errors = [law.error[self.feature] / _in_units(law.value)[1] for law in (self.product, self.joint)]
        return float(np.hypot(*errors))

    def measures(self) -> Iterator[Measure]:
        yield Measure(
            name="laws apart",
            value=self.apart,
            error=self.error,
            remark="between the coefficients of independent columns and of rows that occur (law='joint'), "
            "each in units of the largest",
        )
        yield Measure(
            name="outside the data",
            value=self.outside.real,
            error=float(np.sqrt(self.outside.real * (1 - self.outside.real) / self.outside.rows)),
            remark="of perturbed rows lie where no background row is "
            f"({self.outside.shuffled:.0%} if columns were independent)",
        )

    def findings(self) -> Iterator[Finding]:
        sure = self.apart - SURE * self.error
        severity: Severity | None = next((s for s in SEVERITIES if sure >= APART[s]), None)
        if severity is None:
            return
        j, (product, joint) = self.feature, self._shares
        yield Finding(
            kind="dependence",
            severity=severity,
            features=(self.row.names[j],),
            number=self.apart,
            error=self.error,
            unit="difference of a coefficient between the laws, each in units of its largest coefficient",
            sentence=(
                f"If columns vary independently {self.row.names[j]} has the coefficient "
                f"{self.product.value[j]:+.3g}, {product[j]:+.0%} of the largest one; on rows that occur "
                f"{self.joint.value[j]:+.3g}, {joint[j]:+.0%}. {self.outside.real:.0%} of the perturbed rows "
                f"lie outside the background{self._strongest()}."
            ),
            advice=(
                "Compare with the explanation of the other law (law='joint' rests on the background's own "
                "rows): trust the product law only as far as you trust the model on rows that do not occur."
            ),
        )

    def _strongest(self) -> str:
        if self.correlated is None:
            return ""
        first, second, correlation = self.correlated
        return f" ({first} and {second} have the rank correlation {correlation:+.2f})"


def _in_units(coef: Floats) -> tuple[Floats, float]:
    """Return coefficients in units of the largest one, and the unit, which is 1 if all are 0."""
    largest = float(np.abs(coef).max(initial=0.0))
    unit = largest if largest > 0 else 1.0
    return coef / unit, unit


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

    def embed(self, x: Floats) -> Floats:
        """Return coordinates (n, e) of rows x."""
        parts = []
        for j in range(x.shape[1]):
            missing = np.isnan(x[:, j])
            if self.levels[j].size:
                parts.append((x[:, j, None] == self.levels[j]) / np.sqrt(2.0))
            else:
                parts.append(np.where(missing, 0.0, x[:, j] / self.unit[j])[:, None])
            parts.append(missing[:, None].astype(np.float64))
        return np.concatenate(parts, axis=1)


def dependences(context: TableContext) -> list[Dependence | None]:
    """Compare the laws at each row; None if there is no other law, or the background is too small."""
    rng = np.random.default_rng([context.seed, 3])
    real = _subsample(context.background, rng)
    if len(real) < 2 * _NEIGHBOUR or context.other_law is None:
        return [None] * len(context)
    shuffled = np.column_stack([rng.permutation(column) for column in real.T])
    center = np.nan_to_num(np.nanmean(np.where(context.numeric, real, 0.0), axis=0))
    space = Space(context.units, _levels(context.background, context.numeric))
    supports = [Support.from_rows(space.embed(rows - center)) for rows in (real, shuffled)]
    correlated = _most_correlated(real, context.numeric, context.row_outputs[0].names)
    results: list[Dependence | None] = []
    for i, row in enumerate(context.row_outputs):
        drawn = space.embed(context.perturbed(i, _DRAWN) - center)
        outside = Outside(
            rows=len(drawn), real=supports[0].outside(drawn), shuffled=supports[1].outside(drawn)
        )
        product, joint = context.by_law(i)
        results.append(
            Dependence(row=row, product=product, joint=joint, outside=outside, correlated=correlated)
        )
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


def _most_correlated(rows: Floats, numeric: Bools, names: tuple[str, ...]) -> tuple[str, str, float] | None:
    """Return the two numeric columns with the largest rank correlation in size, and the correlation."""
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
