"""Contexts of diagnostics: an explainer's designs at any bandwidth, its model, and samples of it.

A context consists of n rows and one output of each. Tables (`TableContext`) and texts or images
(`SubsetContext`) differ in how a neighbourhood is drawn; a `SampledSource` (``source.py``) computes numbers
from the read model or from a sample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects, power_of_two
from limes._diagnostics.finding import RowOutput
from limes._variance import is_constant
from limes.designs._column import column_at
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._joint import JointFamily
from limes.designs._marginals import BinCells
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._weights import BinWeights
from limes.models._calling.caller import few_inputs, few_subsets

if TYPE_CHECKING:
    from limes._diagnostics.source import SampledSource

# Bandwidths, as multiples of the explainer's, at which a sample for all bandwidths is drawn; the first is 1
SPREAD = (1.0, 0.25, 0.5, 4.0)
# So narrow that only rows in the instance's own cells have weight
_BOX_BANDWIDTH = 1e-2


# A coefficient needs an effective number of rows with and without its feature of at least this
_FEWEST = 24.0


@dataclass(frozen=True, eq=False)
class Estimate:
    """Numbers and their standard errors, arrays of the same shape."""

    value: Floats
    error: Floats


@dataclass(frozen=True, eq=False)
class MixtureSample:
    r"""Rows x (m, d), features h (m, d) and predictions f (m,) around a row, for every bandwidth at once.

    Rows are drawn from a mixture of tilted laws w_m ∝ π_m · law, π_m = exp(-D / (2 ν_m²)), D the squared
    distance of a row from the instance. Relative to the law itself w_m has the density π_m / C_m,
    C_m = E[π_m], so that the weight of a row for any other bandwidth ν is

        exp(-D / (2ν²)) / C_ν  divided by  Σ_m share_m exp(-D / (2ν_m²)) / C_m.

    (Veach & Guibas 1995 call this the balance heuristic.) The model is called once.

    Attributes
    ----------
    squared
        D, (m,).
    log_mixture
        Log density of the mixture from which the rows were drawn, (m,).
    noise
        1; 0 if these are all possible rows, ``log_mixture`` then being minus the log of their probability.
    """

    x: Floats
    h: Floats
    f: Floats
    squared: Floats
    log_mixture: Floats
    noise: float = 1.0

    def weights(self, bandwidth: float, squared: Floats | None = None) -> Floats:
        """Return weights (m,) of the rows at a bandwidth, with sum 1; ``squared`` replaces the distances.

        C_ν is the same for all rows and cancels.
        """
        distance = self.squared if squared is None else squared
        log_ratio = kernel(distance, bandwidth) - self.log_mixture
        weights = np.exp(log_ratio - log_ratio.max())
        return np.asarray(weights / weights.sum())

    def mean(self, weights: Floats, condition: Bools | None = None) -> Estimate:
        """Return E_w[f | condition], with condition (m,)."""
        conditional = weights if condition is None else weights * condition
        total = conditional.sum()
        if total == 0 or 1 / ((conditional / total) ** 2).sum() < _FEWEST * self.noise:
            return Estimate(np.array(np.nan), np.array(np.inf))
        share = conditional / total
        mean = share @ self.f
        return Estimate(mean, self.noise * np.sqrt((share**2) @ (self.f - mean) ** 2))

    def variance(self, weights: Floats) -> Estimate:
        """Return Var_w f, 0 if it is rounding, NaN if too few rows count."""
        if 1 / (weights**2).sum() < _FEWEST * self.noise:
            return Estimate(np.array(np.nan), np.array(np.inf))
        spread = (self.f - weights @ self.f) ** 2
        variance = weights @ spread
        if is_constant(variance, np.abs(self.f).max()):
            return Estimate(np.array(0.0), np.array(0.0))
        return Estimate(variance, self.noise * np.sqrt((weights**2) @ (spread - variance) ** 2))

    def fit(self, weights: Floats, h: Floats | None = None) -> Estimate:
        """Return weighted least squares coefficients of f on h, (d,), with robust standard errors.

        NaN, with an infinite error, where too few rows count with or without the feature.
        """
        features = self.h if h is None else h
        center = weights @ features
        blind = self._blind(weights, features)
        used = ~blind
        # a pseudoinverse drops columns far smaller than others, rare or in other units: they are rescaled
        away = features[:, used] - center[used]
        unit = power_of_two(np.abs(away).max(axis=0, initial=0.0))
        unit = unit * power_of_two(np.sqrt(weights @ (away / unit) ** 2))
        regressors = np.column_stack([np.ones(len(self.f)), away / unit])
        weighted = regressors * weights[:, None]
        inverse = np.linalg.pinv(weighted.T @ regressors, hermitian=True)
        influence = inverse @ weighted.T
        f = self.f - weights @ self.f
        solution = influence @ f
        leverage = np.clip((regressors * influence.T).sum(axis=1), 0.0, 0.9)
        rest = (f - regressors @ solution) / np.sqrt(1.0 - leverage)
        value, error = np.full(features.shape[1], np.nan), np.full(features.shape[1], np.inf)
        value[used] = solution[1:] / unit
        error[used] = self.noise * np.sqrt(influence[1:] ** 2 @ rest**2) / unit
        return Estimate(value, error)

    def _blind(self, weights: Floats, features: Floats) -> Bools:
        """Return which features (d,) vary in too few of the rows that count."""
        slopes = ((features != 0) & (features != 1)).any(axis=0)
        sizes = [_size(weights[:, None] * (slopes | (features == z))) for z in (0.0, 1.0)]
        varies = np.ptp(features, axis=0) > 0
        return np.asarray(~varies | (np.minimum(*sizes) < _FEWEST * self.noise))


def kernel(squared: Floats, bandwidth: float) -> Floats:
    """Return log π = -D / (2ν²), (m,); 0 for an infinite bandwidth."""
    with np.errstate(over="ignore"):
        return np.asarray(-0.5 * squared / np.float64(bandwidth) ** 2)


def _size(weights: Floats) -> Floats:
    """Return the effective number of rows of each column of weights, (d,)."""
    total, squares = weights.sum(axis=0), (weights**2).sum(axis=0)
    size: Floats = np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0)
    return size


@dataclass(frozen=True, kw_only=True, eq=False)
class DiagnosticContext(ABC):
    """Rows (n, d) of one explainer.

    Attributes
    ----------
    row_outputs
        The explanation of each row, for one output.
    positions
        (n,) position of each row's output among the model's.
    predict
        (m, d) -> (m,) or (m, k), the model's predictions.
    source
        Source of the numbers: the read model, or a sample.
    bandwidth, ridge
        Bandwidth and ridge penalty of the explainer.
    budget
        Model calls for each neighbourhood; None for the default of the source.
    """

    row_outputs: tuple[RowOutput, ...]
    rows: Floats
    positions: Ints
    predict: Callable[[Floats], Floats]
    source: SampledSource
    bandwidth: float
    ridge: float
    budget: int | None
    seed: int

    @property
    @abstractmethod
    def inputs(self) -> Floats:
        """Four inputs of the model."""

    @abstractmethod
    def designs(self, bandwidth: float) -> Sequence[Any]:
        """Return the design at each row, for a bandwidth."""

    @abstractmethod
    def draw(self, design: Any, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw rows x and features h of a design, (count, d) both."""

    @abstractmethod
    def squared_distances(self, i: int, x: Floats) -> Floats:
        """Return D of rows x from row i, (m,): π = exp(-D / (2ν²))."""

    @abstractmethod
    def all_states(self, i: int) -> MixtureSample | None:
        """Return all possible rows around row i with their predictions; None if they are too many."""

    @abstractmethod
    def locality(self, i: int) -> float:
        """Return the mean share of the row's conditions that hold in a weighted row, NaN without any."""

    @property
    @abstractmethod
    def penalty(self) -> float | Floats:
        """The ridge penalty of ``lime``'s own fit, a number or one a feature."""

    @cached_property
    def row_designs(self) -> Sequence[Any]:
        """The design at each row, at the explainer's bandwidth."""
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

    def __len__(self) -> int:
        return len(self.rows)

    def predictions(self, i: int, x: Floats) -> Floats:
        """Return the model's predictions (m,) at rows x, for the output of row i."""
        return np.asarray(self.predict(x).reshape(len(x), -1)[:, self.positions[i]])

    def rng(self, i: int, purpose: int) -> np.random.Generator:
        """Return a stream that depends on seed, row and purpose only."""
        values = np.nan_to_num(self.rows[i]) + 0.0  # -0.0 becomes 0.0
        return np.random.default_rng([self.seed, purpose, *values.view(np.uint64).tolist()])

    @cached_property
    def samples(self) -> tuple[MixtureSample, ...]:
        """A sample around each row."""
        return tuple(self.all_states(i) or self._sample(i, self.source.spread) for i in range(len(self)))

    @cached_property
    def wide_samples(self) -> tuple[MixtureSample, ...]:
        """A sample around each row that can be used for other bandwidths as well."""
        if self.source.spread == SPREAD:
            return self.samples
        return tuple(self.all_states(i) or self._sample(i, SPREAD) for i in range(len(self)))

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


@dataclass(frozen=True, kw_only=True, eq=False)
class TableContext(DiagnosticContext):
    """Rows (n, d) of a table, around which a product design draws.

    Attributes
    ----------
    family
        The designs at the explainer's bandwidth.
    background
        (N, d), encoded.
    numeric
        (d,) whether a column holds numbers.
    texts
        The cells of each column in words, (p,).
    units
        (d,) standard deviation of each number, 1 for categories.
    other_law
        Coefficients (d, k) of a row (d,) under the law that did not explain it, joint or product, and their
        standard errors; None where laws cannot be compared.
    """

    family: ProductFamily
    background: Floats
    numeric: Bools
    texts: Sequence[Objects]
    units: Floats
    other_law: Callable[[Floats], Estimate] | None

    def by_law(self, i: int) -> tuple[Estimate, Estimate]:
        """Return coefficients (d,) of row i under the product law, and under the joint law."""
        return self.limits[i], self._other(i)

    def _other(self, i: int) -> Estimate:
        assert self.other_law is not None  # noqa: S101 - the caller checked
        both, k = self.other_law(self.rows[i]), self.positions[i]
        return Estimate(both.value[:, k], both.error[:, k])

    @property
    def inputs(self) -> Floats:
        return few_inputs(self.background)

    def perturbed(self, i: int, most: int) -> Floats:
        """Return rows of the product law around row i, (m, d)."""
        # the first rows of every sample are drawn from w itself
        return self.samples[i].x[: min(most, self.calls // len(self.source.spread))]

    def designs(self, bandwidth: float) -> Sequence[Any]:
        return self._at_rows(self.family_at(bandwidth))

    def _at_rows(self, family: ProductFamily) -> list[ProductDesign]:
        if not family.by_cell:
            return [family.at(row) for row in self.rows]
        return [family.of_cells(cells) for cells in self.cells]

    def family_at(self, bandwidth: float) -> ProductFamily:
        """Return the family of designs at another bandwidth."""
        if bandwidth == self.bandwidth:
            return self.family
        return replace(self.family, weights=replace(self.family.weights, bandwidth=bandwidth))

    @cached_property
    def box(self) -> list[ProductDesign]:
        """The law inside the cells of each row, whatever the weights are."""
        inside = replace(self.family, weights=BinWeights(_BOX_BANDWIDTH), slopes=None)
        return self._at_rows(inside)

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
        """Return the design at row i, if its column j lay in another cell and all else were unchanged."""
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
        levels = rng.random((count, design.size))
        return design.draw(levels)

    def squared_distances(self, i: int, x: Floats) -> Floats:
        return self.squared_distances_from(self.rows[i], x)

    def squared_distances_from(self, row: Floats, x: Floats) -> Floats:
        """Return D of rows x from any row (d,)."""
        differs = self.family.cells(x) != self.family.cells(row[None])
        if self.family.counts_cells:
            return np.asarray(differs.sum(axis=1), dtype=np.float64)
        scales = np.ones(row.size) if self.family.scales is None else self.family.scales
        measured = np.array([isinstance(law.cells, BinCells) for law in self.family.marginals])
        away = ((x - row) / scales) ** 2
        # a missing value is one unit away, as another category is
        return np.asarray(np.where(measured & ~np.isnan(away), away, differs).sum(axis=1))

    def locality(self, i: int) -> float:
        return float(self.row_designs[i].inclusion[self.binned].mean()) if self.binned.any() else np.nan

    def all_states(self, i: int) -> MixtureSample | None:  # noqa: ARG002
        return None  # laws inside bins are continuous

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

    def by_law(self, i: int) -> tuple[Estimate, Estimate]:
        return self._other(i), self.limits[i]

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
    """One text or image with d features that can be removed: rows are (1, d), all ones.

    ``make_design`` returns the design for a bandwidth.
    """

    make_design: Callable[[float], ExchangeableDesign]

    @property
    def inputs(self) -> Floats:
        return few_subsets(self.rows.shape[1])

    def designs(self, bandwidth: float) -> list[ExchangeableDesign]:
        return [self.make_design(bandwidth)]

    def draw(self, design: ExchangeableDesign, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw subsets that are spread more evenly than independent ones."""
        return design.sample(count, np.random.SeedSequence(int(rng.integers(2**63))))

    def squared_distances(self, i: int, x: Floats) -> Floats:  # noqa: ARG002 - there is one row
        """Return squared cosine distances from (1, ..., 1)."""
        return np.asarray((1.0 - np.sqrt(x.mean(axis=1))) ** 2)

    def locality(self, i: int) -> float:
        return float(self.row_designs[i].inclusion.mean())

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

    @property
    def penalty(self) -> float:
        return 1.0
