"""Compiled passes over the pixels of an image; what they compute is explained in ``quickshift.py``.

All functions release the interpreter's lock; the machine code is kept on disk.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from limes._arrays import Floats, Ints

# exp(x) = exp(x / 64)^64, six squarings of a polynomial; exp(-40) is nothing beside the pixel's own 1.
SQUARINGS = 64.0
_FURTHEST = -40.0 / SQUARINGS


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
def densities(planes: Floats, reach: int, scale: float) -> Floats:
    """Sum of exp(64 · scale · distance²) over the pixels at most ``reach`` rows and columns away, (H, W).

    Distances are of planes (C, H, W) and place. Each pair of pixels is met once; along a row all is plain
    arithmetic on contiguous numbers, which compilers turn into vectors.
    """
    channels, height, width = planes.shape
    found = np.ones((height, width))
    row = np.empty(width)
    for down in range(reach + 1):
        for across in range(1 if down == 0 else -reach, reach + 1):
            first, last = max(0, -across), min(width, width - across)
            if last <= first:
                continue
            far = row[: last - first]
            for r in range(height - down):
                far[:] = float(down * down + across * across)
                for k in range(channels):
                    here = planes[k, r, first:last]
                    there = planes[k, r + down, first + across : last + across]
                    for c in range(far.size):
                        t = here[c] - there[c]
                        far[c] += t * t
                _exponentials(far, scale)
                mine = found[r, first:last]
                theirs = found[r + down, first + across : last + across]
                for c in range(far.size):
                    mine[c] += far[c]
                for c in range(far.size):
                    theirs[c] += far[c]
    return found


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy", inline="always")
def _exponentials(values: Floats, scale: float) -> None:
    """Replace v by exp(64 · scale · v) for scale · v <= 0: Taylor's polynomial, squared."""
    for c in range(values.size):
        x = max(values[c] * scale, _FURTHEST)
        p = 1.0 / 39916800.0 + x * (1.0 / 479001600.0)
        p = 1.0 / 3628800.0 + x * p
        p = 1.0 / 362880.0 + x * p
        p = 1.0 / 40320.0 + x * p
        p = 1.0 / 5040.0 + x * p
        p = 1.0 / 720.0 + x * p
        p = 1.0 / 120.0 + x * p
        p = 1.0 / 24.0 + x * p
        p = 1.0 / 6.0 + x * p
        p = 0.5 + x * p
        p = 1.0 + x * p
        p = 1.0 + x * p
        for _ in range(6):
            p *= p
        values[c] = p


@njit(cache=True, nogil=True, error_model="numpy")
def nearest_denser(
    planes: Floats, density: Floats, down: Ints, across: Ints, squared: Floats
) -> tuple[Ints, Floats]:
    """The nearest denser pixel of each, itself if there is none, and how far it is, (H, W) both.

    Offsets come by growing length, so that a search ends where place alone is further than what was found;
    of equals the first in the image is taken.
    """
    channels, height, width = planes.shape
    parent = np.empty((height, width), np.int64)
    distance = np.empty((height, width))
    for r in range(height):
        for c in range(width):
            nearest, best = np.inf, r * width + c
            for m in range(down.size):
                if squared[m] > nearest:
                    break
                i, j = r + down[m], c + across[m]
                if i < 0 or i >= height or j < 0 or j >= width or density[i, j] <= density[r, c]:
                    continue
                far = 0.0
                for k in range(channels):
                    t = planes[k, r, c] - planes[k, i, j]
                    far += t * t
                far += squared[m]
                place = i * width + j
                if far < nearest or (far == nearest and place < best):
                    nearest, best = far, place
            parent[r, c], distance[r, c] = best, np.sqrt(nearest)
    return parent, distance
