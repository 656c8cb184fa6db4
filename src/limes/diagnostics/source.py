"""Where diagnostics get their numbers: from the read model, exactly, or from a sample, with errors.

Both answer the same three questions about every row: the coefficients at other bandwidths, what the model
is on average in each cell of a column, and what changes when one column alone leaves its cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from limes._arrays import Floats
from limes.designs.coordinates import IndicatorCoordinate
from limes.designs.product import ProductDesign
from limes.diagnostics.sample import Estimate
from limes.expectations.forest import ForestExpectation
from limes.pipeline import Expectation
from limes.surrogates.linear import least_squares

if TYPE_CHECKING:
    from limes.diagnostics.scene import Scene
    from limes.diagnostics.table_scene import TableScene

# Bandwidths, as multiples of the explainer's, that make a sample serve all others; the first is its own
SPREAD = (1.0, 0.25, 0.5, 4.0)
# A column and one of its cells
Place = tuple[int, int]
# Rows of a sample that leave the box by one column each
_ALONE = 16
INSIDE = 128


class Source(Protocol):
    """Answers about all rows of a scene."""

    @property
    def spread(self) -> tuple[float, ...]:
        """Bandwidths, as multiples of the explainer's, that samples are drawn at; the first is 1."""
        ...

    @property
    def calls(self) -> int:
        """Rows of a sample, unless the user says how many: few where only variances are needed."""
        ...

    def path(self, scene: Scene, bandwidths: Floats) -> list[Estimate]:
        """Of each row, coefficients at the bandwidths, (G, d)."""
        ...

    def profile(self, scene: TableScene, i: int, places: Sequence[Place]) -> Estimate:
        """E_w[f | x_j in cell b] around row i, for each place (j, b), (m,)."""
        ...

    def moved(self, scene: TableScene, i: int, places: Sequence[Place]) -> Estimate:
        """All coefficients of row i if it lay in cell b of column j, (m, d)."""
        ...

    def alone(self, scene: TableScene, i: int) -> Estimate:
        """E[f | box] - E[f | column j alone has left it], (d,): β_j as ν → 0."""
        ...


class FromForm:
    """Exactly, from what was read."""

    spread: tuple[float, ...] = (1.0,)
    calls: int = 512

    def __init__(self, expectation: Any) -> None:
        self._expectation = expectation

    def path(self, scene: Scene, bandwidths: Floats) -> list[Estimate]:
        found = [self._coef(scene, scene.designs(bandwidth)) for bandwidth in bandwidths]
        return [_exact(np.stack([at[i] for at in found])) for i in range(len(scene))]

    def profile(self, scene: TableScene, i: int, places: Sequence[Place]) -> Estimate:
        # E[f | z = 1] = E f + P(z = 0) β_j, in the design where that cell is the instance's
        designs = [scene.moved(i, j, cell) for j, cell in places]
        mean, coef = self._limits(designs, scene.rows[i])
        own = coef[np.arange(len(places)), [j for j, _ in places], scene.output[i]]
        outside = [indicator(design, j).exclusion for design, (j, _) in zip(designs, places, strict=True)]
        return _exact(mean[:, scene.output[i]] + np.array(outside) * own)

    def moved(self, scene: TableScene, i: int, places: Sequence[Place]) -> Estimate:
        _, coef = self._limits([scene.moved(i, j, cell) for j, cell in places], scene.rows[i])
        return _exact(coef[..., scene.output[i]])

    def alone(self, scene: TableScene, i: int) -> Estimate:
        _, coef = self._limits([scene.box[i]], scene.rows[i])
        return _exact(coef[0, :, scene.output[i]])

    def _coef(self, scene: Scene, designs: Sequence[Any]) -> list[Floats]:
        _, coef = self._limits(designs, scene.rows)
        return [coef[i, :, k] for i, k in enumerate(scene.output)]

    def _limits(self, designs: Sequence[Any], rows: Floats) -> tuple[Floats, Floats]:
        """E_w f (m, k) and β (m, d, k) of m designs."""
        expectation = self._expectation
        first, m = designs[0], len(designs)
        if _in_blocks(expectation, first):
            cells = np.stack([design.cells for design in designs])
            features = first.family.features(cells)
            found = expectation.many(first.family, cells, features.variance)
            coef = least_squares(features, found).coef
            return found.mean.reshape(m, -1), coef.reshape(*cells.shape, -1)
        each = [
            (design.in_units(), expectation.moments(design.in_units(), row))
            for design, row in zip(designs, np.broadcast_to(rows, (m, rows.shape[-1])), strict=True)
        ]
        mean = np.stack([moments.mean for _, moments in each])
        fits = [least_squares(inner, moments) for inner, moments in each]
        coef = np.stack([fit.per(design.units).coef for fit, design in zip(fits, designs, strict=True)])
        return mean.reshape(m, -1), coef.reshape(*coef.shape[:2], -1)


class FromSample:
    """From a sample of the model, with standard errors."""

    spread: tuple[float, ...] = SPREAD
    calls: int = 4096

    def __init__(self, expectation: Any) -> None:
        self._expectation = expectation

    def path(self, scene: Scene, bandwidths: Floats) -> list[Estimate]:
        return [
            _stacked([sample.fit(sample.weights(bandwidth)) for bandwidth in bandwidths])
            for sample in scene.samples
        ]

    def profile(self, scene: TableScene, i: int, places: Sequence[Place]) -> Estimate:
        sample, cells = scene.samples[i], scene.family.cells(scene.samples[i].x)
        here = sample.weights(scene.bandwidth)
        return _stacked([sample.mean(here, cells[:, j] == cell) for j, cell in places])

    def moved(self, scene: TableScene, i: int, places: Sequence[Place]) -> Estimate:
        sample, cells = scene.samples[i], scene.family.cells(scene.samples[i].x)
        found = []
        for j, cell in places:
            h = sample.h.copy()
            h[:, j] = cells[:, j] == cell
            # bins' weights count from the other cell; distances hardly change across an edge
            shift = sample.h[:, j] - h[:, j] if scene.family.by_cell else 0.0
            found.append(sample.fit(sample.weights(scene.bandwidth, sample.squared + shift), h))
        return _stacked(found)

    def alone(self, scene: TableScene, i: int) -> Estimate:
        x, inside = boxed(scene, i)
        d = scene.rows.shape[1]
        mean, variance = inside.mean(), inside.var() / len(inside)
        value, error = np.zeros(d), np.zeros(d)
        rng = scene.rng(i, 2)
        columns = np.flatnonzero(scene.binned)
        if columns.size == 0:
            return Estimate(value, error)
        away = np.concatenate([_left(scene, i, int(j), x[:_ALONE], rng) for j in columns])
        answers = scene.answers(i, away).reshape(columns.size, _ALONE)
        value[columns] = mean - answers.mean(axis=1)
        error[columns] = np.sqrt(variance + answers.var(axis=1) / (_ALONE - 1))
        return Estimate(value, error)


_SOURCES: Mapping[str, type[FromForm] | type[FromSample]] = {"exact": FromForm, "sampled": FromSample}


def source_of(expectation: Expectation) -> Source:
    """The source that goes with an expectation."""
    return _SOURCES[expectation.method](expectation)


def boxed(scene: TableScene, i: int) -> tuple[Floats, Floats]:
    """Rows x inside the cells of row i, and the model's answers there, (m,)."""
    x, _ = scene.draw(scene.box[i], INSIDE, scene.rng(i, 1))
    return x, scene.answers(i, x)


def _left(scene: TableScene, i: int, j: int, x: Floats, rng: np.random.Generator) -> Floats:
    """Rows x with column j drawn anew from its other cells."""
    coordinate = indicator(scene.box[i], j)
    cells = rng.choice(coordinate.elsewhere.size, size=len(x), p=coordinate.elsewhere)
    moved = x.copy()
    moved[:, j] = scene.family.marginals[j].quantile(cells, rng.random(len(x)))
    return moved


def indicator(design: ProductDesign, j: int) -> IndicatorCoordinate:
    """Column j of a design, which is cut into cells."""
    found = design.coordinates[j]
    assert isinstance(found, IndicatorCoordinate)  # noqa: S101 - asked of such columns only
    return found


def _in_blocks(expectation: Any, design: Any) -> bool:
    """Whether a forest can take many designs at once."""
    return (
        isinstance(expectation, ForestExpectation)
        and isinstance(design, ProductDesign)
        and design.family is not None
        and design.cells is not None
        and expectation.serves(design.family)
    )


def _exact(value: Floats) -> Estimate:
    return Estimate(value, np.zeros_like(value))


def _stacked(estimates: Sequence[Estimate]) -> Estimate:
    return Estimate(np.stack([e.value for e in estimates]), np.stack([e.error for e in estimates]))
