"""Random numbers that depend on the user's seed and on the row alone: not on its place in a batch."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from limes._arrays import Floats


def fingerprint(row: Floats) -> int:
    """A number that depends on the row's values alone."""
    canonical = np.where(np.isnan(row), np.nan, row + 0.0)  # one NaN, one zero
    return int.from_bytes(blake2b(canonical.tobytes(), digest_size=16).digest(), "little")


def streams(seed: int, key: int, count: int) -> list[np.random.SeedSequence]:
    """Independent streams for a row of this fingerprint."""
    return np.random.SeedSequence([seed, key]).spawn(count)
