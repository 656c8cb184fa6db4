r"""Expectations of a black box, from few rows of the tilted law.

Rows are drawn from w itself, so that every one counts the same, by scrambled Sobol' points through the
inverse distribution functions: one dimension a column. Least squares of f on h over all rows gives β. The
scramblings are independent, so leaving one out at a time (the jackknife) gives standard errors that know
how much the low-discrepancy points have helped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import numpy as np

from limes._arrays import Floats
from limes.designs.product import ProductDesign
from limes.exceptions import InputError
from limes.expectations.moments import Moments

_SCRAMBLINGS = 16
# With a tolerance, look after half of them whether it is already met.
_FIRST_LOOK = 8
# A coefficient is known from the rows where its feature differs from its usual value: so many at least.
_FEWEST = 16
# Rows handed to the model in one call
_BATCH = 4096


@dataclass(frozen=True)
class SampledExpectation:
    """Moments of a function under a design, by at most ``max_calls`` of its rows.

    Attributes
    ----------
    predict
        (n, d) -> (n,) or (n, k).
    max_calls
        The budget; a power of two of rows is drawn for each of 16 scramblings.
    tolerance
        Stop when no coefficient's standard error is larger; None spends the budget.
    seed
        Same seed and same row, same result.

    Raises
    ------
    InputError
        If the budget is too small for the number of columns.
    """

    predict: Callable[[Floats], Floats]
    max_calls: int
    tolerance: float | None
    seed: int

    @property
    def method(self) -> Literal["sampled"]:
        """How moments are had."""
        return "sampled"

    def moments(self, design: ProductDesign, row: Floats) -> Moments:
        """E_w f and Cov_w(h, f), estimated, with standard errors."""
        points = self._points_a_scrambling(design.size)
        streams = np.random.SeedSequence([self.seed, _fingerprint(row)]).spawn(_SCRAMBLINGS)
        looks = [_FIRST_LOOK, _SCRAMBLINGS] if self.tolerance is not None else [_SCRAMBLINGS]
        features: list[Floats] = []
        values: list[Floats] = []
        for look in looks:
            fresh = streams[len(features) : look]
            x, h = design.draw(np.concatenate([_sobol(design.size, points, s) for s in fresh]))
            features += np.split(h, len(fresh))
            values += np.split(self._ask(x), len(fresh))
            found = _estimate(design, features, values, self.tolerance)
            if found.converged:
                break
        return found

    def _points_a_scrambling(self, d: int) -> int:
        points = 2 ** int(np.log2(max(self.max_calls, _SCRAMBLINGS) / _SCRAMBLINGS))
        rows = points * (_FIRST_LOOK if self.tolerance is not None else _SCRAMBLINGS)
        if self.max_calls < _SCRAMBLINGS or rows < 2 * (d + 1):
            raise InputError(
                f"max_calls={self.max_calls} is too few to fit {d} coefficients; "
                f"use at least {4 * _SCRAMBLINGS * max(1, -(-(d + 1) // _FIRST_LOOK))}"
            )
        return int(points)

    def _ask(self, x: Floats) -> Floats:
        return np.concatenate([self.predict(x[i : i + _BATCH]) for i in range(0, len(x), _BATCH)])


def _fingerprint(row: Floats) -> int:
    """A number that depends on the row's values alone: not on its place in a batch."""
    canonical = np.where(np.isnan(row), np.nan, row + 0.0)  # one NaN, one zero
    return int.from_bytes(blake2b(canonical.tobytes(), digest_size=16).digest(), "little")


def _sobol(d: int, points: int, stream: np.random.SeedSequence) -> Floats:
    from scipy.stats.qmc import Sobol

    levels = Sobol(d, scramble=True, rng=np.random.default_rng(stream)).random(points)
    # an inverse distribution function has no value at 0
    return np.asarray(np.clip(levels, 2.0**-54, 1.0 - 2.0**-53))


def _estimate(
    design: ProductDesign, features: list[Floats], values: list[Floats], tolerance: float | None
) -> Moments:
    h, f = np.concatenate(features), np.concatenate(values)
    outputs = f.shape[1:]
    f2 = f.reshape(len(f), -1)
    # centred at the law's own mean: the intercept is then E_w f, and nothing cancels
    regressors = np.column_stack([np.ones(len(h)), h - design.inclusion])
    coef = _fit(regressors, f2)
    parts = np.split(np.arange(len(h)), len(features))
    left_out = np.stack([_fit(np.delete(regressors, p, axis=0), np.delete(f2, p, axis=0)) for p in parts])
    count = len(parts)
    spread = ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0) * (count - 1) / count
    errors = np.sqrt(spread) * _student(count - 1)
    fixed = design.variance == 0
    coef[1:][fixed], errors[1:][fixed] = 0.0, 0.0
    # a feature that should vary and hardly did in the sample: nothing is known of its coefficient
    unseen = ~fixed & ((h != np.median(h, axis=0)).sum(axis=0) < _FEWEST)
    coef[1:][unseen], errors[1:][unseen] = 0.0, np.inf
    scale = design.variance[:, None]
    shape = (design.size, *outputs)
    return Moments(
        mean=coef[0].reshape(outputs),
        gamma=(coef[1:] * scale).reshape(shape),
        gamma_errors=(errors[1:] * scale).reshape(shape),
        variance=f2.var(axis=0).reshape(outputs),
        calls=np.array(len(f)),
        converged=np.array(tolerance is None or bool((errors[1:] <= tolerance).all())),
    )


def _fit(regressors: Floats, values: Floats) -> Floats:
    """Least squares; the solution of least norm where a column never varied in the sample."""
    solution, *_ = np.linalg.lstsq(regressors, values, rcond=None)
    return np.asarray(solution)


def _student(freedom: int) -> float:
    """Factor by which an error from few replicates must grow so that ±1.96 of it is a 95 % interval."""
    from scipy.stats import norm, t

    return float(t.ppf(0.975, freedom) / norm.ppf(0.975))
