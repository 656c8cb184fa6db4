"""Random streams that depend on the user's seed and on the row alone, not on its position in a batch."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from limes._arrays import Floats


def fingerprint(row: Floats) -> int:
    """Hash the values of a row."""
    canonical = np.where(np.isnan(row), np.nan, row + 0.0)  # one NaN, one zero
    return int.from_bytes(blake2b(canonical.tobytes(), digest_size=16).digest(), "little")


def streams(seed: int, key: int, count: int) -> list[np.random.SeedSequence]:
    """Spawn ``count`` independent streams for a row of this fingerprint."""
    return np.random.SeedSequence([seed, key]).spawn(count)
