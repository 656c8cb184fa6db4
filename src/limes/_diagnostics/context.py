"""Contexts of diagnostics: an explainer's designs at any bandwidth, its model, and samples of it.

A context has n rows and one output of each. Tables (`TableContext`) and texts or images (`SubsetContext`)
differ in how a neighbourhood is drawn. A source computes the numbers: coefficients at other bandwidths, the
mean of the model in each cell, and changes when one column leaves its cell, read off the model
(`ExactSource`) or from a sample, with errors (`SampledSource`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects, is_constant, power_of_two
from limes._diagnostics.finding import RowOutput
from limes._expectations.moments import (
    REFUSED,
    CombinedExpectation,
    ProductExpectation,
    admitted,
    explain_rows,
)
from limes._expectations.softmax import SoftmaxExpectation
from limes._fidelity.variance import CellEffects, cell_masses
from limes._fitting import Expectation
from limes._threads import LRUCache
from limes.designs._column import IndicatorColumn, column_at
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._joint import JointFamily
from limes.designs._product import Features, FeatureTable, ProductDesign, ProductFamily, Rows
from limes.designs._weights import BinWeights
from limes.surrogates import least_squares

# Bandwidths, as multiples of the explainer's, at which a sample for all bandwidths is drawn; the first is 1
SPREAD = (1.0, 0.25, 0.5, 4.0)
# So narrow that only rows in the instance's own cells have weight
_BOX_BANDWIDTH = 1e-2
# A coefficient needs an effective number of rows with and without its feature of at least this
_FEWEST = 24.0
# Bandwidths whose laws of columns are kept
_FAMILIES = 8
# Rows inside the box, and rows that leave it by one column, for each column
BOX_ROWS, _ROWS_PER_COLUMN = 128, 16


@dataclass(frozen=True, eq=False)
class Estimate:
    """Numbers and their standard errors, arrays of the same shape."""

    value: Floats
    error: Floats

    @classmethod
    def exact(cls, value: Floats) -> Estimate:
        return cls(value, np.zeros_like(value))

    @classmethod
    def stacked(cls, estimates: Sequence[Estimate]) -> Estimate:
        return cls(np.stack([e.value for e in estimates]), np.stack([e.error for e in estimates]))


# Of too few rows
_UNKNOWN = Estimate(np.array(np.nan), np.array(np.inf))


@dataclass(frozen=True, eq=False)
class MixtureSample:
    r"""Rows around a row, for every bandwidth at once.

    Rows are drawn from a mixture of tilted laws w_m ∝ π_m · law, π_m = exp(-D / (2 ν_m²)), D the squared
    distance of a row from the instance. Relative to the law itself w_m has the density π_m / C_m,
    C_m = E[π_m], so that the weight of a row for any other bandwidth ν is

        exp(-D / (2ν²)) / C_ν  divided by  Σ_m share_m exp(-D / (2ν_m²)) / C_m.

    (Veach & Guibas 1995 call this the balance heuristic.) The model is called once.
    """

    x: Floats  # (m, d)
    h: Floats  # features, (m, d)
    f: Floats  # predictions, (m,)
    squared: Floats  # D, (m,)
    log_mixture: Floats  # log density of the mixture from which the rows were drawn, (m,)
    # 0 if these are all possible rows, ``log_mixture`` then being minus the log of their probability
    noise: float = 1.0

    def weights(self, bandwidth: float, squared: Floats | None = None) -> Floats:
        """Weights (m,) of the rows at a bandwidth, with sum 1; ``squared`` replaces the distances."""
        log_ratio = kernel(self.squared if squared is None else squared, bandwidth) - self.log_mixture
        weights = np.exp(log_ratio - log_ratio.max())  # C_ν is the same for all rows and cancels
        return np.asarray(weights / weights.sum())

    def mean(self, weights: Floats, condition: Bools | None = None) -> Estimate:
        """E_w[f | condition], with condition (m,)."""
        conditional = weights if condition is None else weights * condition
        total = conditional.sum()
        if total == 0 or self._are_few(conditional):
            return _UNKNOWN
        share = conditional / total
        mean = share @ self.f
        return Estimate(mean, self.noise * np.sqrt((share**2) @ (self.f - mean) ** 2))

    def variance(self, weights: Floats) -> Estimate:
        """Var_w f, 0 if it is rounding, NaN if too few rows count."""
        if self._are_few(weights):
            return _UNKNOWN
        spread = (self.f - weights @ self.f) ** 2
        variance = weights @ spread
        if is_constant(variance, np.abs(self.f).max()):
            return Estimate.exact(np.array(0.0))
        return Estimate(variance, self.noise * np.sqrt((weights**2) @ (spread - variance) ** 2))

    def fit(self, weights: Floats, h: Floats | None = None) -> Estimate:
        """Weighted least squares coefficients of f on h, (d,), with robust standard errors.

        NaN, with an infinite error, where too few rows count with or without the feature.
        """
        features = self.h if h is None else h
        center = weights @ features
        used = ~self._blind(weights, features)
        # a pseudoinverse drops columns far smaller than others, rare or in other units: they are rescaled
        away = features[:, used] - center[used]
        unit = power_of_two(np.abs(away).max(axis=0, initial=0.0))
        unit = unit * power_of_two(np.sqrt(weights @ (away / unit) ** 2))
        regressors = np.column_stack([np.ones(len(self.f)), away / unit])
        weighted = regressors * weights[:, None]
        influence = np.linalg.pinv(weighted.T @ regressors, hermitian=True) @ weighted.T
        f = self.f - weights @ self.f
        solution = influence @ f
        leverage = np.clip((regressors * influence.T).sum(axis=1), 0.0, 0.9)
        rest = (f - regressors @ solution) / np.sqrt(1.0 - leverage)
        value, error = np.full(features.shape[1], np.nan), np.full(features.shape[1], np.inf)
        value[used] = solution[1:] / unit
        error[used] = self.noise * np.sqrt(influence[1:] ** 2 @ rest**2) / unit
        return Estimate(value, error)

    def _blind(self, weights: Floats, features: Floats) -> Bools:
        """(d,) whether a feature varies in too few of the rows that count."""
        slopes = ((features != 0) & (features != 1)).any(axis=0)
        few = ~(np.ptp(features, axis=0) > 0)
        for z in (0.0, 1.0):
            few |= self._are_few(weights[:, None] * (slopes | (features == z)))
        return np.asarray(few)

    def _are_few(self, weights: Floats) -> Bools:
        """Whether the effective number of rows, (Σ w)² / Σ w² of weights (m, ...), is too small."""
        total, squares = weights.sum(axis=0), (weights**2).sum(axis=0)
        size = np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0)
        return np.asarray(size < _FEWEST * self.noise)


def kernel(squared: Floats, bandwidth: float) -> Floats:
    """Log π = -D / (2ν²), (m,); 0 for an infinite bandwidth."""
    with np.errstate(over="ignore"):
        return np.asarray(-0.5 * squared / np.float64(bandwidth) ** 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class DiagnosticContext(ABC):
    """Rows (n, d) of one explainer."""

    row_outputs: tuple[RowOutput, ...]
    rows: Floats
    positions: Ints  # of each row's output among the model's, (n,)
    predict: Callable[[Floats], Floats]  # (m, d) -> (m,) or (m, k)
    source: SampledSource
    bandwidth: float
    ridge: float
    budget: int | None  # model calls for each neighbourhood; None for the default of the source
    seed: int

    @abstractmethod
    def designs(self, bandwidth: float) -> Sequence[Any]: ...

    def features(self, bandwidth: float) -> Sequence[Features]:
        """Moments of the features of each row."""
        return self.designs(bandwidth)

    @abstractmethod
    def draw(self, design: Any, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Rows x and features h, (count, d) both."""

    @abstractmethod
    def squared_distances(self, i: int, x: Floats) -> Floats:
        """D of rows x from row i, (m,): π = exp(-D / (2ν²))."""

    def at_row(self, design: Any) -> Floats:
        """Features (d,) of the row that a design is around: all conditions hold."""
        return np.ones(design.inclusion.shape)

    def all_states(self, i: int) -> MixtureSample | None:  # noqa: ARG002
        """All possible rows around row i; None if they are too many, as where laws are continuous."""
        return None

    def locality(self, i: int) -> float:
        """Mean share of the row's conditions that hold in a weighted row, NaN without any."""
        return float(self.row_designs[i].inclusion.mean())

    @property
    def penalty(self) -> float | Floats:
        """The ridge penalty of ``lime``'s own fit, a number or one a feature."""
        return 1.0

    @cached_property
    def row_designs(self) -> Sequence[Any]:
        return self.designs(self.bandwidth)

    @cached_property
    def limits(self) -> Sequence[Estimate]:
        """Coefficients (d,) of each row without a ridge penalty."""
        if self.ridge > 0:
            paths = self.source.path(self, np.array([self.bandwidth]))
            return [Estimate(path.value[0], path.error[0]) for path in paths]
        return [Estimate(row.values, row.errors) for row in self.row_outputs]

    @property
    def calls(self) -> int:
        return self.source.calls if self.budget is None else self.budget

    def predictions(self, i: int, x: Floats) -> Floats:
        """Predictions (m,) at rows x, for the output of row i."""
        return np.asarray(self.predict(x).reshape(len(x), -1)[:, self.positions[i]])

    def variance(self, i: int) -> Estimate:
        return self.samples[i].variance(self.samples[i].weights(self.bandwidth))

    def rng(self, i: int, purpose: int) -> np.random.Generator:
        """A stream that depends on seed, row and purpose only."""
        values = np.nan_to_num(self.rows[i]) + 0.0  # -0.0 becomes 0.0
        return np.random.default_rng([self.seed, purpose, *values.view(np.uint64).tolist()])

    @cached_property
    def samples(self) -> tuple[MixtureSample, ...]:
        return self._samples(self.source.spread)

    @cached_property
    def wide_samples(self) -> tuple[MixtureSample, ...]:
        """A sample around each row that can be used for other bandwidths as well."""
        return self.samples if self.source.spread == SPREAD else self._samples(SPREAD)

    def _samples(self, spread: Sequence[float]) -> tuple[MixtureSample, ...]:
        return tuple(self.all_states(i) or self._sample(i, spread) for i in range(len(self.rows)))

    def _sample(self, i: int, spread: Sequence[float]) -> MixtureSample:
        bandwidths = [self.bandwidth * factor for factor in spread]
        designs = [self.designs(bandwidth)[i] for bandwidth in bandwidths]
        rng = self.rng(i, 0)
        parts = [self.draw(design, -(-self.calls // len(designs)), rng) for design in designs]
        x, h = (np.concatenate(part) for part in zip(*parts, strict=True))
        squared = self.squared_distances(i, x)
        log_densities = [
            kernel(squared, bandwidth) - design.log_weight
            for bandwidth, design in zip(bandwidths, designs, strict=True)
        ]
        log_mixture = np.logaddexp.reduce(log_densities) - np.log(len(log_densities))
        return MixtureSample(x, h, self.predictions(i, x), squared, log_mixture)


def each_row(diagnostic: Callable[[Any, int, RowOutput], Any]) -> Callable[[Any], list[Any]]:
    """The results of a diagnostic at every row of a context."""
    return lambda context: [diagnostic(context, i, row) for i, row in enumerate(context.row_outputs)]


@dataclass(frozen=True, kw_only=True, eq=False)
class TableContext(DiagnosticContext):
    """Rows (n, d) of a table, around which a product design draws."""

    family: ProductFamily  # at the explainer's bandwidth
    background: Floats  # (N, d), encoded
    numeric: Bools  # (d,) whether a column holds numbers
    texts: Sequence[Objects]  # the cells of each column in words, (p,)
    units: Floats  # (d,) standard deviations of numbers, 1 for categories
    # Coefficients (d, k) of a row (d,) under the law that did not explain it, joint or product, and their
    # standard errors; None where laws cannot be compared
    other_law: Callable[[Floats], Estimate] | None

    def by_law(self, i: int) -> tuple[Estimate, Estimate]:
        """Coefficients (d,) of row i under the product law, and under the joint law."""
        assert self.other_law is not None  # noqa: S101 - the caller checked
        both, k = self.other_law(self.rows[i]), self.positions[i]
        return self.limits[i], Estimate(both.value[:, k], both.error[:, k])

    def perturbed(self, i: int, most: int) -> Floats:
        """Rows of the product law around row i, (m, d)."""
        # the first rows of every sample are drawn from w itself
        return self.samples[i].x[: min(most, self.calls // len(self.source.spread))]

    def at_row(self, design: Any) -> Floats:
        return np.asarray(getattr(design, "at_instance", super().at_row(design)))

    def designs(self, bandwidth: float) -> Sequence[Any]:
        return self._at_rows(self.family_at(bandwidth))

    def _at_rows(self, family: ProductFamily) -> list[ProductDesign]:
        if not family.by_cell:
            return [family.at(row) for row in self.rows]
        return [family.of_cells(cells) for cells in self.cells]

    def features(self, bandwidth: float) -> Sequence[Features]:
        family = self.family_at(bandwidth)
        if not family.by_cell:
            return self.designs(bandwidth)
        numbers = family.features(self.cells)
        arrays = (numbers.inclusion, numbers.variance, numbers.at_instance, numbers.log_weight)
        return [FeatureTable(*each) for each in zip(*arrays, strict=True)]

    def family_at(self, bandwidth: float) -> ProductFamily:
        if bandwidth == self.bandwidth:
            return self.family
        return self._families.get(
            bandwidth,
            lambda: replace(self.family, weights=replace(self.family.weights, bandwidth=bandwidth)),
        )

    @cached_property
    def _families(self) -> LRUCache[float, ProductFamily]:
        return LRUCache(_FAMILIES)

    @cached_property
    def box(self) -> list[ProductDesign]:
        """The law inside the cells of each row, whatever the weights are."""
        return self._at_rows(replace(self.family, weights=BinWeights(_BOX_BANDWIDTH), slopes=None))

    @cached_property
    def cells(self) -> Ints:
        return self.family.cells(self.rows)

    @cached_property
    def binned(self) -> Bools:
        """(d,) whether a column's feature is its cell, one of several."""
        fixed = [whole for whole in (self.family.slopes, self.family.held) if whole is not None]
        several = np.array([law.cells.count > 1 for law in self.family.marginals])
        return np.asarray(np.logical_and.reduce([several, *(~columns for columns in fixed)]))

    def design_in_cell(self, i: int, j: int, cell: int) -> ProductDesign:
        """The design at row i, if its column j lay in another cell and all else were unchanged."""
        if self.family.by_cell:
            cells = self.cells[i].copy()
            cells[j] = cell
            return self.family.of_cells(cells)
        scale = 1.0 if self.family.scales is None else float(self.family.scales[j])
        column: Any = column_at(
            self.family.marginals[j],
            self.rows[[i], j],
            np.array([cell]),
            scale=scale,
            weights=self.family.weights,
            slope=False,
        )[0]
        coordinates = self.row_designs[i].coordinates
        return ProductDesign((*coordinates[:j], column, *coordinates[j + 1 :]))

    def draw(self, design: ProductDesign, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        return design.draw(rng.random((count, design.size)))

    def box_rows(self, i: int) -> tuple[Floats, Floats]:
        """Rows x inside the cells of row i, (m, d), and their predictions, (m,)."""
        x, _ = self.draw(self.box[i], BOX_ROWS, self.rng(i, 1))
        return x, self.predictions(i, x)

    def squared_distances(self, i: int, x: Floats) -> Floats:
        return self.family.squared_distances(self.rows[i], x)

    def locality(self, i: int) -> float:
        return float(self.row_designs[i].inclusion[self.binned].mean()) if self.binned.any() else np.nan

    @property
    def penalty(self) -> Floats:
        # lime fits slopes on standardised columns: its penalty is per standard deviation
        slopes = np.zeros(self.units.size, bool) if self.family.slopes is None else self.family.slopes
        return np.where(slopes, self.units, 1.0) ** 2


@dataclass(frozen=True, kw_only=True, eq=False)
class JointContext(TableContext):
    """Rows (n, d) of a table, explained by the joint law: every sample is the background itself."""

    @cached_property
    def _joint(self) -> JointFamily:
        rows = self.background
        even = np.linspace(0, len(rows) - 1, min(self.calls, len(rows))).astype(np.int64)
        return JointFamily(self.family, rows[even])

    def designs(self, bandwidth: float) -> Sequence[Any]:
        family = replace(self._joint, product=self.family_at(bandwidth))
        return [family.around(cells).design() for cells in self.cells]

    def features(self, bandwidth: float) -> Sequence[Features]:
        return self.designs(bandwidth)

    def by_law(self, i: int) -> tuple[Estimate, Estimate]:
        limit, other = super().by_law(i)
        return other, limit

    def perturbed(self, i: int, most: int) -> Floats:
        return self.draw(self.family.at(self.rows[i]), most, self.rng(i, 4))[0]

    @cached_property
    def _predictions(self) -> Floats:
        rows = self._joint.rows
        return np.asarray(self.predict(rows).reshape(len(rows), -1))

    def _sample(self, i: int, spread: Sequence[float]) -> MixtureSample:  # noqa: ARG002 - serves all bandwidths
        z = self._joint.around(self.cells[i]).z
        changed = self.rows.shape[1] - z.sum(axis=1)
        f = self._predictions[:, self.positions[i]]
        return MixtureSample(self._joint.rows, z, f, changed, np.zeros(len(z)))


@dataclass(frozen=True, kw_only=True, eq=False)
class SubsetContext(DiagnosticContext):
    """One text or image with d features that can be removed: rows are (1, d), all ones."""

    make_design: Callable[[float], ExchangeableDesign]  # of a bandwidth

    def designs(self, bandwidth: float) -> list[ExchangeableDesign]:
        return [self.make_design(bandwidth)]

    def draw(self, design: ExchangeableDesign, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        # spread more evenly than independent subsets
        return design.sample(count, np.random.SeedSequence(int(rng.integers(2**63))))

    def squared_distances(self, i: int, x: Floats) -> Floats:  # noqa: ARG002 - there is one row
        return np.asarray((1.0 - np.sqrt(x.mean(axis=1))) ** 2)  # cosine distances from (1, ..., 1)

    def all_states(self, i: int) -> MixtureSample | None:
        states = self.row_designs[i].states(self.calls)
        if states is None:
            return None
        z, probability, _ = states
        possible = probability > 0
        z, squared = z[possible], self.squared_distances(i, z[possible])
        # the law of the subsets before tilting, as the density of the mixture that they were drawn from
        log_law = np.log(probability[possible]) - kernel(squared, self.bandwidth)
        return MixtureSample(z, z, self.predictions(i, z), squared, -log_law, noise=0.0)


# A column and one of its cells
Place = tuple[int, int]


class SampledSource:
    """Numbers from a sample of the model, with standard errors."""

    spread: tuple[float, ...] = (
        SPREAD  # bandwidths, as multiples of the explainer's, that samples are drawn at
    )
    calls: int = 4096

    def path(self, context: DiagnosticContext, bandwidths: Floats) -> list[Estimate]:
        """Coefficients (G, d) of each row at the bandwidths."""
        return [self.path_of(context, i, bandwidths) for i in range(len(context.rows))]

    def path_of(self, context: DiagnosticContext, i: int, bandwidths: Floats) -> Estimate:
        sample = context.wide_samples[i]
        return Estimate.stacked([sample.fit(sample.weights(bandwidth)) for bandwidth in bandwidths])

    def profile(self, context: TableContext, i: int, places: Sequence[Place]) -> Estimate:
        """E_w[f | x_j in cell b] around row i for each place (j, b), (m,)."""
        sample = context.wide_samples[i]
        cells, weights = context.family.cells(sample.x), sample.weights(context.bandwidth)
        return Estimate.stacked([sample.mean(weights, cells[:, j] == cell) for j, cell in places])

    def coef_in_cells(self, context: TableContext, i: int, places: Sequence[Place]) -> Estimate:
        """Coefficients (m, d) of row i, if its column j lay in cell b."""
        sample = context.wide_samples[i]
        cells = context.family.cells(sample.x)
        estimates = []
        for j, cell in places:
            h = sample.h.copy()
            h[:, j] = cells[:, j] == cell
            # weights of bins count from the other cell; distances hardly change across an edge
            shift = sample.h[:, j] - h[:, j] if context.family.counts_cells else 0.0
            estimates.append(sample.fit(sample.weights(context.bandwidth, sample.squared + shift), h))
        return Estimate.stacked(estimates)

    def single_column_effects(self, context: TableContext, i: int) -> Estimate:
        """E[f | box] - E[f | column j alone is outside its cell], (d,): β_j as ν → 0."""
        x, inside = context.box_rows(i)
        effects = Estimate.exact(np.zeros(context.rows.shape[1]))
        rng, columns = context.rng(i, 2), np.flatnonzero(context.binned)
        if columns.size == 0:
            return effects
        away = np.concatenate([_rows_outside(context, i, int(j), x[:_ROWS_PER_COLUMN], rng) for j in columns])
        predictions = context.predictions(i, away).reshape(columns.size, _ROWS_PER_COLUMN)
        effects.value[columns] = inside.mean() - predictions.mean(axis=1)
        variances = inside.var() / len(inside) + predictions.var(axis=1) / (_ROWS_PER_COLUMN - 1)
        effects.error[columns] = np.sqrt(variances)
        return effects


class ExactSource(SampledSource):
    """Exact numbers from the read model; numbers that its expectation refuses are those of a sample."""

    spread = (1.0,)
    calls = 512  # few, as only variances are needed

    def __init__(self, expectation: Any, effects: Callable[[], CellEffects | None] = lambda: None) -> None:
        self._expectation, self._effects = expectation, effects

    def path(self, context: DiagnosticContext, bandwidths: Floats) -> list[Estimate]:
        # the error bound of a quadrature depends on the row and the bandwidth
        parts, refused = admitted(
            np.arange(len(context.rows)), lambda some: self._path(context, bandwidths, some)
        )
        paths = {i: self.path_of(context, i, bandwidths) for i in refused}
        for rows, estimates in parts:
            paths |= zip(rows.tolist(), estimates, strict=True)
        return [paths[i] for i in range(len(context.rows))]

    def _path(self, context: DiagnosticContext, bandwidths: Floats, rows: Ints) -> list[Estimate]:
        coef = [self._coef(context, bandwidth, rows) for bandwidth in bandwidths]
        return [Estimate.exact(np.stack([each[i] for each in coef])) for i in range(len(rows))]

    def profile(self, context: TableContext, i: int, places: Sequence[Place]) -> Estimate:
        means = self._means_of_cells(context, i)
        if means is not None:
            columns, cells = np.array(places).T
            return Estimate.exact(means[columns, cells])
        # E[f | z = 1] = E f + P(z = 0) β_j, in the design where that cell is the instance's
        designs = [context.design_in_cell(i, j, cell) for j, cell in places]
        try:
            mean, coef = self._limits(designs, context.rows[i])
        except REFUSED:
            return super().profile(context, i, places)
        slopes = coef[np.arange(len(places)), [j for j, _ in places], context.positions[i]]
        outside = [
            float(indicator(design, j).exclusion[0]) for design, (j, _) in zip(designs, places, strict=True)
        ]
        return Estimate.exact(mean[:, context.positions[i]] + np.array(outside) * slopes)

    def _means_of_cells(self, context: TableContext, i: int) -> Floats | None:
        """E_w[f | cell] of each column around row i, (d, B); None without a way for all cells at once."""
        effects = self._effects() if context.family.slopes is None else None
        if effects is None:
            return None
        cells, design = context.cells[[i]], context.row_designs[i]
        masses, counts = cell_masses(context.family, cells, lambda _: design)
        values = effects.effects(cells, lambda _: design, masses, counts)[0, ..., context.positions[i]]
        if np.isnan(values).any():
            return None
        mean, _ = self._limits([design], context.rows[i])
        return np.asarray(mean[0, context.positions[i]] + values)

    def coef_in_cells(self, context: TableContext, i: int, places: Sequence[Place]) -> Estimate:
        designs = [context.design_in_cell(i, j, cell) for j, cell in places]
        try:
            _, coef = self._limits(designs, context.rows[i])
        except REFUSED:
            return super().coef_in_cells(context, i, places)
        return Estimate.exact(coef[..., context.positions[i]])

    def single_column_effects(self, context: TableContext, i: int) -> Estimate:
        try:
            _, coef = self._limits([context.box[i]], context.rows[i])
        except REFUSED:
            return super().single_column_effects(context, i)
        return Estimate.exact(coef[0, :, context.positions[i]])

    def _coef(self, context: DiagnosticContext, bandwidth: float, rows: Ints) -> list[Floats]:
        expectation = self._expectation
        if (
            isinstance(context, TableContext)
            and isinstance(expectation, ProductExpectation)
            and (
                expectation.shares_tables(context.family)
                if context.family.by_cell
                else expectation.functions is not None
            )
        ):
            # rows are explained together
            family, at = context.family_at(bandwidth), rows
            x = np.full((len(at), len(family.marginals)), np.nan) if family.by_cell else context.rows[at]
            _, coef = self._explained(Rows(family, x, context.cells[at]))
        else:
            designs = context.designs(bandwidth)
            _, coef = self._limits([designs[i] for i in rows.tolist()], context.rows[rows])
        return [coef[i, :, k] for i, k in enumerate(context.positions[rows])]

    def _limits(self, designs: Sequence[Any], rows: Floats) -> tuple[Floats, Floats]:
        """E_w f (m, k) and β (m, d, k) of m designs."""
        expectation = self._expectation
        first, m = designs[0], len(designs)
        if _in_blocks(expectation, first):
            cells = np.stack([design.cells for design in designs])
            return self._explained(Rows.in_cells(first.family, cells))
        inner_moments = [
            (design.in_units(), expectation.moments(design.in_units(), row))
            for design, row in zip(designs, np.broadcast_to(rows, (m, rows.shape[-1])), strict=True)
        ]
        mean = np.stack([moments.mean for _, moments in inner_moments])
        fits = [least_squares(inner, moments) for inner, moments in inner_moments]
        coef = np.stack([fit.per(design.units).coef for fit, design in zip(fits, designs, strict=True)])
        return mean.reshape(m, -1), coef.reshape(*coef.shape[:2], -1)

    def _explained(self, rows: Rows) -> tuple[Floats, Floats]:
        """E_w f (n, k) and β (n, d, k) of n rows of a family."""
        features, moments = explain_rows(self._expectation, rows)
        fit = least_squares(features, moments)
        coef = fit.coef if features.units is None else fit.per(features.units).coef
        return moments.mean.reshape(len(rows), -1), coef.reshape(*rows.cells.shape, -1)


def source_of(
    expectation: Expectation, effects: Callable[[], CellEffects | None] = lambda: None
) -> SampledSource:
    """The source of numbers; ``effects`` returns a form's exact effects of cells, if there are."""
    exact = expectation.method == "exact" and not _makes_large_tables(expectation)
    return ExactSource(expectation, effects) if exact else SampledSource()


def _makes_large_tables(expectation: Any) -> bool:
    """Whether each bandwidth needs large tables: a diagnosis tries many bandwidths."""
    if isinstance(expectation, CombinedExpectation):
        return any(map(_makes_large_tables, expectation.parts))
    return isinstance(expectation, SoftmaxExpectation)


def _rows_outside(context: TableContext, i: int, j: int, x: Floats, rng: np.random.Generator) -> Floats:
    (elsewhere,) = indicator(context.box[i], j).elsewhere
    cells = rng.choice(elsewhere.size, size=len(x), p=elsewhere)
    moved = x.copy()
    moved[:, j] = context.family.marginals[j].quantile(cells, rng.random(len(x)))
    return moved


def indicator(design: ProductDesign, j: int) -> IndicatorColumn:
    """Column j of a design, which is cut into cells."""
    column = design.coordinates[j]
    assert isinstance(column, IndicatorColumn)  # noqa: S101 - callers select such columns
    return column


def _in_blocks(expectation: Any, design: Any) -> bool:
    return (
        isinstance(expectation, ProductExpectation)
        and isinstance(design, ProductDesign)
        and design.family is not None
        and design.cells is not None
        and expectation.shares_tables(design.family)
    )
