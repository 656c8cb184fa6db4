"""Controls of wide tables: a slope for every column, and effects of cells for those that matter.

All effects and slopes of d columns in quartiles are 8 d functions, whose normal equations have 64 d² numbers.
Beyond 512 functions, or half the number of rows, the answers choose the columns that have them: those whose
cells' means differ by more than chance allows (`strongest`). A half of the sequences chooses for the other
half, so that neither the functions nor the coefficients depend on the rows that a control is subtracted from.
Ridge regression is by conjugate gradients, whose memory and time grow with the functions, not with their
square.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, CellNumbers, Floats, Reals, power_of_two
from limes._sampling.controls.control import FittedControl, evenly_spread, share_left
from limes._sampling.controls.tables import CellBasis, ColumnBasis, Units, fit_effects
from limes._sampling.least_squares import ControlMoments
from limes._sampling.pool_fit import CellMoments, ExplainedRows
from limes.designs._marginals import BinCells, Marginal
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._stacks import learn_means

# Functions of cells with which every column has them, and most of those that are chosen
_MOST_FUNCTIONS, _CHOSEN = 512, 512
# Most rows that choose the columns of a margin's rest
_CHOOSING = 2048
# Penalties in units of the number of rows; of many more functions than rows the best one is large
_PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
# Steps of conjugate gradients, and the share of the first residual at which they end. Columns of a pool are
# independent, so that few steps are enough
_STEPS, _ENOUGH = 12, 1e-2
# Numbers that are computed at once, and stay in the processor's cache
_NUMBERS = 1 << 18


def is_wide(laws: Sequence[Marginal], rows: int) -> bool:
    """Whether all columns have too many functions of cells for a fit to this number of rows."""
    return sum(2 * law.cells.count for law in laws) > min(_MOST_FUNCTIONS, rows // 2)


def strongest(laws: Sequence[Marginal], cells: CellNumbers, f: Floats) -> Bools:
    """Columns (d,) in whose cells (n, d) the means of answers f (n, k) differ by more than chance allows.

    If f does not depend on a column, Σ_b n_b (mean in cell b - mean)² / Var f is χ² of p - 1 degrees of
    freedom for p cells. With L = log d it exceeds p - 1 + 2 √((p - 1) L) + 2 L with probability 1 / d at most
    (Laurent & Massart 2000). Of the columns beyond that the strongest are taken, as long as there is room.
    """
    d, scale = len(laws), f.std(axis=0)
    standard, k = ((f - f.mean(axis=0)) / np.where(scale > 0, scale, 1.0)).ravel(), f.shape[1]
    between, freedom = np.empty(d), np.array([law.cells.count - 1 for law in laws])
    for j, cell in enumerate(cells.T.astype(np.int64)):
        # the sums of all outputs in one pass
        sums = np.bincount((cell[:, None] * k + np.arange(k)).ravel(), standard).reshape(-1, k)
        between[j] = (sums**2 / np.maximum(np.bincount(cell), 1)[:, None]).sum(axis=0).max()
    log = np.log(d)
    beyond = between > freedom + 2.0 * np.sqrt(freedom * log) + 2.0 * log
    order = np.argsort(freedom - between, kind="stable")
    order = order[beyond[order]]
    room = np.cumsum(2 * (freedom[order] + 1)) <= _CHOSEN
    chosen = np.zeros(d, dtype=np.bool_)
    chosen[order[room]] = True
    return chosen


def strong_effects(design: ProductDesign, x: Floats, f: Floats) -> FittedControl:
    """The additive control, of many columns with the functions of those that matter alone."""
    cells, laws = design.locate(x), design.laws
    if not is_wide(laws, 2 * _MOST_FUNCTIONS):
        return fit_effects(design, CellBasis.of(laws, cells), x, cells, f)
    some = evenly_spread(len(x), _CHOOSING)
    columns = [ColumnBasis(law, *np.zeros((2, law.cells.count), dtype=np.bool_)) for law in laws]
    chosen = np.flatnonzero(strongest(laws, cells[some], f[some])).tolist()
    if chosen:
        basis = CellBasis.of([laws[j] for j in chosen], cells[:, chosen])
        for j, its in zip(chosen, basis.columns, strict=True):
            columns[j] = its
    return fit_effects(design, CellBasis(tuple(columns)), x, cells, f)


def halves(
    family: ProductFamily, cells: CellNumbers, f: Floats, sequences: int
) -> Iterator[tuple[range, Bools]]:
    """The sequences of either half of the rows, and the columns that the other half chooses."""
    middle, count = len(f) // 2, sequences // 2
    for first, others in ((0, slice(middle, None)), (count, slice(None, middle))):
        yield range(first, first + count), strongest(family.marginals, cells[others], f[others])


def slopes_of_columns(laws: Sequence[Marginal], x: Floats) -> Units:
    """Slopes of columns, and indicators of categories: of mean 0 and variance 1 at rows x (n, d)."""
    whole = np.asarray(np.isfinite(x).all(axis=0))
    with np.errstate(over="ignore", invalid="ignore"):
        means, spreads = x.mean(axis=0), x.std(axis=0)
    parts: list[tuple[float, ...]] = []
    for j, law in enumerate(laws):
        if isinstance(law.cells, BinCells):
            if not whole[j]:
                its = x[np.isfinite(x[:, j]), j]
                means[j], spreads[j] = (its.mean(), its.std()) if its.size else (0.0, 0.0)
            parts += [(j, -1, means[j], spreads[j])] if 0.0 < spreads[j] < np.inf else []
        else:
            mass = np.exp(law.log_mass)
            parts += [
                (j, b, p, float(np.sqrt(p * (1.0 - p)))) for b, p in enumerate(mass.tolist()) if 0.0 < p < 1.0
            ]
    none = [ColumnBasis(law, *np.zeros((2, law.cells.count), dtype=np.bool_)) for law in laws]
    return _units(CellBasis(tuple(none)), np.array(parts, dtype=np.float64).reshape(-1, 4))


def functions_of_cells(laws: Sequence[Marginal], cells: CellNumbers) -> Units:
    """Functions of cells of some columns, for a fit to rows in these cells, (n, d)."""
    return _units(CellBasis.of(laws, cells), np.empty((0, 4)))


def _units(basis: CellBasis, columns: Floats) -> Units:
    """Functions of cells, and columns in units: the column, its category or -1, centre and scale, (m, 4)."""
    column, cell, center, scale = columns.T
    layer = np.empty((len(columns), 0), dtype=np.float32), np.empty(0, dtype=np.float32)
    pairs = np.empty((0, 2), dtype=np.int64)
    return Units(basis, column.astype(np.int64), cell.astype(np.int64), center, scale, *layer, pairs)


@dataclass(frozen=True, eq=False)
class EffectsOfCells:
    """A sum of functions of single columns, by their means in cells: no more counts under bin weights."""

    constant: Floats  # (k,)
    effects: CellMoments

    def around(self, rows: ExplainedRows) -> ControlMoments:
        mean, coef = self.effects.at(rows.cells)
        return ControlMoments.exact(self.constant + mean, coef)


def wide_additive(
    family: ProductFamily, x: Floats, cells: CellNumbers, f: Floats, sequences: int
) -> tuple[Floats, EffectsOfCells]:
    """Values (n, k) of fits without each sequence in turn, each at rows not seen, and their mean."""
    rows, k = len(f) // sequences, f.shape[1]
    values, constant = np.empty_like(f), np.zeros(k)
    effects = [np.zeros((law.cells.count, k)) for law in family.marginals]
    laws, slopes, penalty = family.marginals, slopes_of_columns(family.marginals, x), None
    learn_means(laws)
    # the functions of cells are those that a half of the sequences chooses, the slopes are the same
    both, size = np.empty((len(x), slopes.size + _CHOSEN), dtype=np.float32), slopes.size
    both[:, 0] = 1.0
    fill(both[:, 1:size], slopes.standard, x, cells)
    for fitted, chosen in halves(family, cells, f, sequences):
        at, features = np.flatnonzero(chosen), both[:, :size]
        if at.size:
            units = functions_of_cells([laws[j] for j in at], cells[:, at])
            features = both[:, : size + units.size - 1]
            fill(features[:, size:], units.of_cells, x[:, at], cells[:, at])
        parts = [slice(s * rows, (s + 1) * rows) for s in fitted]
        if penalty is None:
            # the one that predicts the first sequence best
            unseen = parts[0]
            tried = ridge_without(features, f, [unseen] * len(_PENALTIES), _PENALTIES)
            shares = [share_left((f[unseen] - features[unseen] @ coef).var(axis=0), f) for coef in tried]
            penalty = _PENALTIES[int(np.argmin(shares))]
        coefs = ridge_without(features, f, parts, [penalty] * len(parts))
        for part, coef in zip(parts, coefs, strict=True):
            values[part] = features[part] @ coef
            constant += coef[0] / sequences
        coef, share = coefs.mean(axis=0), len(parts) / sequences
        for effect, its in zip(effects, slopes.effects(coef[:size]), strict=True):
            effect += its * share
        if at.size:
            of_cells = np.concatenate([np.zeros((1, k)), coef[size:]])
            for j, its in zip(at.tolist(), units.effects(of_cells), strict=True):
                effects[j] += its * share
    return values, EffectsOfCells(constant, CellMoments.of(family, effects))


def fill(
    values: Reals, functions: Callable[[Floats, CellNumbers], Reals], x: Floats, cells: CellNumbers
) -> None:
    """Write values (n, p) of functions at rows x in cells (n, d), few rows at once."""
    step = max(1, _NUMBERS // max(values.shape[1], 1))
    for first in range(0, len(x), step):
        block = slice(first, first + step)
        values[block] = functions(x[block], cells[block])


def ridge_without(
    features: Reals, targets: Floats, parts: Sequence[slice], penalties: Sequence[float]
) -> Floats:
    """Ridge regression on features (n, p), the first of them 1, without each of these rows: (parts, p, k).

    Each fit has a penalty, in units of the rows that remain; the constant has none.
    """
    n, k = targets.shape
    seen = np.ones((n, len(parts)), dtype=np.float32)
    for i, part in enumerate(parts):
        seen[part, i] = 0.0
    seen, strength = np.repeat(seen, k, axis=1), np.repeat(np.array(penalties), k)
    size = float(power_of_two(np.abs(targets).max(initial=0.0)))
    ridge = np.outer(np.arange(features.shape[1]) > 0, strength * seen.sum(axis=0)).astype(np.float32)
    rest = features.T @ (seen * np.tile((targets / size).astype(np.float32), (1, len(parts))))
    coef, way = np.zeros_like(rest), rest
    square = first = (rest**2).sum(axis=0)
    for _ in range(_STEPS):
        moved = features.T @ (seen * (features @ way)) + ridge * way
        curvature = (way * moved).sum(axis=0)
        # a fit that has ended stays as it is, whatever the others need
        goes_on = (square > _ENOUGH**2 * first) & (curvature > 0)
        step = np.divide(square, curvature, out=np.zeros_like(square), where=goes_on)
        coef, rest = coef + step * way, rest - step * moved
        before, square = square, (rest**2).sum(axis=0)
        if not goes_on.any():
            break
        way = rest + np.divide(square, before, out=np.zeros_like(square), where=before > 0) * way
    coefs = coef.astype(np.float64).reshape(len(coef), len(parts), k).transpose(1, 0, 2)
    return np.asarray(coefs * size)
