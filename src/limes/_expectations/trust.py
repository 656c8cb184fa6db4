"""Whether the errors of a sample are to be trusted: one rule for all samplers, and for what warnings say."""

from __future__ import annotations

import numpy as np

from limes._arrays import Bools
from limes._expectations.moments import SampleStatistics

# Rows that differ from the most frequent answer: from fewer, the size of errors is hardly known
ENOUGH_ANSWERS = 16
# Effective rows that an error rests on: with fewer, the sample may have missed the ones that matter
ENOUGH_CARRIERS = 12.0
# Effective rows for each coefficient, below which a row is warned about
FEW_ROWS = 4


def can_be_trusted(sampled: SampleStatistics, features: int, *, varies: Bools) -> Bools:
    """Return for which of n samples errors are to be trusted, (n,).

    Not where answers are all, or nearly all, alike, where few rows decide a coefficient, where too few count
    for the number of features, where features change together, and where R² cannot be estimated. Samples
    whose features do not vary (``varies``, (n,)) have no errors.
    """
    n = len(varies)

    def everywhere(condition: Bools) -> Bools:
        return np.asarray(condition.reshape(n, -1).all(axis=1))

    trusted = (
        everywhere(sampled.unlike >= ENOUGH_ANSWERS)
        & everywhere(sampled.carriers >= ENOUGH_CARRIERS)
        & everywhere(np.isfinite(sampled.fidelity_errors))
        & everywhere(~sampled.collinear)
        & (sampled.effective >= FEW_ROWS * (features + 1))
    )
    return trusted | ~varies
