"""Slopes cut into slices: cells in which a model has effects, where the surrogate's feature is x itself.

A slice is a tenth of the column's law around the row.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from limes._arrays import Floats, Ints
from limes.designs._coordinates import Coordinate, IndicatorCoordinate, SlopeCoordinate
from limes.designs._gaussian import GaussianPieces
from limes.designs._marginals import Atoms, BinCells, Marginal, marginal
from limes.designs._partial_slopes import PartialSlopeCoordinate
from limes.designs._product import ProductDesign
from limes.designs._weights import BinWeights

_SLICES = 10


def sliced(design: ProductDesign) -> ProductDesign:
    """Return the design with every slope replaced by the indicator of the instance's slice."""
    return replace(design, coordinates=tuple(_sliced(column) for column in design.coordinates))


def instance_cells(design: ProductDesign) -> Ints:
    """Cells of the instance of a sliced design, (d,)."""
    # a slope that remains has a single value
    return np.array([c.cell if isinstance(c, IndicatorCoordinate) else 0 for c in design.coordinates])


def _sliced(coordinate: Coordinate) -> Coordinate:
    slope = coordinate.present if isinstance(coordinate, PartialSlopeCoordinate) else coordinate
    if not isinstance(slope, SlopeCoordinate) or coordinate.marginal.is_point:
        return coordinate
    cut, x = slope.marginal if slope.marginal.is_point else _cut(slope.marginal), slope.instance
    if isinstance(coordinate, PartialSlopeCoordinate):
        cut = _with_missing(cut, coordinate.probability)
    # the law around the row is weighted already
    return IndicatorCoordinate.tilted(
        cut, x, int(cut.cells.locate(np.array([x]))[0]), scale=1.0, weights=BinWeights(np.inf)
    )


def _cut(law: Marginal) -> Marginal:
    """Cut the law of a column with one cell into slices of about the same probability."""
    levels = np.arange(1, _SLICES) / _SLICES
    inner = np.unique(law.quantile(np.zeros(levels.size, dtype=np.int64), levels))
    (measure,) = law.measures
    if isinstance(measure, Atoms):
        inner = inner[inner < measure.value.max()]
        cells = BinCells(np.concatenate([[-np.inf], inner, [np.inf]]))
        owners = cells.locate(measure.value)
        sums = np.bincount(owners, measure.weight, cells.count)
        return marginal(cells, sums, [(Atoms(measure.value, measure.weight / sums[owners]), owners)])
    cells = BinCells(np.concatenate([[-np.inf], inner, [np.inf]]))
    pieces, mass = _pieces(measure, cells.edges)
    return marginal(cells, mass, [(pieces, np.arange(cells.count))])


def _with_missing(law: Marginal, probability: Floats) -> Marginal:
    """Append the cell of missing values to a law of numbers, given the probabilities of both, (2,)."""
    assert isinstance(law.cells, BinCells)  # noqa: S101 - only numbers have slopes
    present, missing = np.log(probability)
    inside = law.log_mass - np.logaddexp.reduce(law.log_mass)
    return Marginal(
        BinCells(law.cells.edges, missing=True),
        np.append(inside + present, missing),
        (*law.measures, Atoms(np.array([np.nan]), np.ones(1))),
        np.append(law.owners, law.cells.count),
    )


def _pieces(whole: GaussianPieces, edges: Floats) -> tuple[GaussianPieces, Floats]:
    """Cut one piece at edges (p + 1,): p pieces of weight 1, and their probabilities."""
    lower, upper = np.maximum(edges[:-1], whole.lower), np.minimum(edges[1:], whole.upper)
    anchor = np.clip(whole.anchor, lower, upper)
    step = whole.steps(anchor)
    slope = whole.slope + whole.precision * step
    arrays = np.broadcast_arrays(anchor, slope, whole.precision, lower, upper, 1.0, whole.scale)
    pieces = GaussianPieces(*arrays)
    density = np.exp(-step * (whole.slope + 0.5 * whole.precision * step))
    return pieces, pieces.area * density / whole.area
