r"""Moments of a control whose expectation has no closed form: on rows that the model is not asked about.

Rows of the background's law cost a control next to nothing, so that many times as many can be drawn as the
model answers. They serve every explained row by the weights t^#changed, as a pool does (``weighted.py``).
Their even sequences are independent of each other; how far these differ is the standard error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats
from limes._expectations.controls.control import ControlMoments
from limes._expectations.indicators import CellCodes, indicators
from limes._expectations.pool import SEQUENCES, cell_codes
from limes._expectations.residual import student_factors
from limes._expectations.weighted import normal_equations
from limes._streams import streams
from limes.designs._product import ProductDesign, ProductFamily, sobol_points
from limes.designs._weights import BinWeights

# Key of the streams of these rows, which are other ones than those of the pool
_KEY = 0x73696D75
# Rows in units of those that the model has answered, and at most
_TIMES, _MOST = 16, 1 << 17
# Values of a column
_STRATA = 1 << 12
# Rows of a sequence inside and outside a cell without which its column has no coefficient
_FEWEST = 4


class SimulatedRows(NamedTuple):
    """Rows of the background's law: x and cells (n, d), sequence by sequence."""

    x: Floats
    cells: CellCodes


def simulated_rows(family: ProductFamily, seed: int, answered: int) -> SimulatedRows:
    """Draw the rows for a control that was fitted to ``answered`` answers.

    A column takes one of 2^12 values, one drawn from each of as many strata of its law; which one, is
    a Sobol' point's first digits, shifted at random for each sequence. Every row follows the law.
    """
    d, count = len(family.marginals), min(_TIMES * answered, _MOST) // SEQUENCES
    of_points, of_others = streams(seed, _KEY, 2)
    points = (sobol_points(d, of_points).random(count) * _STRATA).astype(np.int64)
    rng = np.random.default_rng(of_others)
    shifts = rng.integers(_STRATA, size=(SEQUENCES, 1, d))
    x, cells = family.draw((np.arange(_STRATA)[:, None] + rng.random((_STRATA, d))) / _STRATA)
    strata = (points ^ shifts).reshape(-1, d)
    columns = np.arange(d)
    return SimulatedRows(x[strata, columns], cell_codes(family, cells)[strata, columns])


@dataclass(frozen=True, eq=False)
class SimulatedControl:
    """A control by its values (n, k) at simulated rows with these cells (n, d)."""

    cells: CellCodes
    values: Floats

    def predict(self, x: Floats) -> Floats:
        """Raise: values are those of the simulated rows alone."""
        raise NotImplementedError

    def moments(self, design: ProductDesign) -> ControlMoments:
        """E_w h and β, by weighted least squares on z, with standard errors."""
        assert design.cells is not None  # noqa: S101 - designs of families by cells have them
        assert design.family is not None  # noqa: S101
        assert isinstance(design.family.weights, BinWeights)  # noqa: S101
        z = indicators(self.cells, design.cells, design.inclusion)
        powers = np.float64(design.family.weights.ratio) ** np.arange(design.size, -1, -1)
        w = (powers / np.exp(design.log_weight))[z.kept]
        inside, total = z.sums(np.column_stack([np.ones_like(w), w, w[:, None] * self.values]), SEQUENCES)
        kept, rows = inside[:, :, 0].min(axis=0), total[0, 0, 0]
        used = (design.variance > 0) & (kept >= _FEWEST) & (rows - inside[:, :, 0].max(axis=0) >= _FEWEST)
        products = z.gram(w, SEQUENCES)[:, used][:, :, used]
        gram, moments = normal_equations(
            inside[:, used, 1:], total[:, :, 1:], products, design.inclusion[used, None]
        )
        place = np.concatenate([[True], used])
        solution, errors = np.zeros((2, place.size, self.values.shape[1]))
        solution[place] = np.linalg.solve(gram.sum(axis=0), moments.sum(axis=0))
        spread = np.linalg.solve(gram, moments).std(axis=0, ddof=1) / np.sqrt(SEQUENCES)
        errors[place] = spread * student_factors(np.array(SEQUENCES - 1))
        return ControlMoments(solution[0], solution[1:], errors)
