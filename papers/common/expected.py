"""Expected numbers of figures, in a paper's expected.json, against what a new run gives.

What is computed must be the same to a millionth of its largest entry. Means of repeated runs are kept with
their standard errors, and must be the same within six of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Another version of a library may add in another order, and fits end where their tolerance lets them.
_SAME = 1e-6
_ERRORS = 6.0
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Sampled:
    """Mean of repeated runs, and its standard error, (d,) each."""

    mean: np.ndarray
    error: np.ndarray

    @classmethod
    def of(cls, runs: np.ndarray) -> Sampled:
        """For runs (n, d)."""
        return cls(runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs)))


Numbers = Mapping[str, np.ndarray | float | Sampled]


def plain(numbers: Numbers) -> dict:
    """As JSON has them."""
    return {
        name: {"mean": _rounded(value.mean), "error": _rounded(value.error)}
        if isinstance(value, Sampled)
        else _rounded(value)
        for name, value in numbers.items()
    }


def differences(result: Numbers, expected: Mapping) -> Iterator[str]:
    """Return what does not agree, one line each."""
    for name in sorted({*result, *expected}):
        if name not in result or name not in expected:
            yield f"{name}: {'not expected' if name in result else 'missing'}"
        elif isinstance(result[name], Sampled):
            yield from _sampled(name, result[name], expected[name])
        else:
            yield from _computed(name, np.asarray(result[name]), np.asarray(expected[name]))


def _computed(name: str, result: np.ndarray, expected: np.ndarray) -> Iterator[str]:
    if result.shape != expected.shape:
        yield f"{name}: shape {result.shape}, expected {expected.shape}"
        return
    far = float(np.abs(result - expected).max(initial=0.0))
    size = float(np.abs(expected).max(initial=0.0))
    if not far <= _SAME * size:
        yield f"{name}: differs by {far:.3g}, of numbers up to {size:.3g}"


def _sampled(name: str, result: Sampled, expected: Mapping) -> Iterator[str]:
    mean, error = np.asarray(expected["mean"]), np.asarray(expected["error"])
    if result.mean.shape != mean.shape:
        yield f"{name}: shape {result.mean.shape}, expected {mean.shape}"
        return
    spread = np.hypot(result.error, error)
    far = np.abs(result.mean - mean)
    # runs that do not vary must be the same
    z = np.divide(far, spread, out=np.where(far > _SAME * np.abs(mean).max(), np.inf, 0.0), where=spread > 0)
    if not z.max(initial=0.0) <= _ERRORS:
        yield f"{name}: means of runs differ by {z.max():.1f} standard errors"


def read(path: Path) -> dict:
    return json.loads(path.read_text()) if path.exists() else {}


def write(path: Path, numbers: Mapping[str, dict]) -> None:
    """One line a list, so that changes are read easily."""
    blocks = [
        f" {json.dumps(figure)}: {{\n"
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in result.items())
        + "\n }"
        for figure, result in numbers.items()
    ]
    path.write_text("{\n" + ",\n".join(blocks) + "\n}\n")


def _rounded(values: np.ndarray | float) -> list | float:
    """To nine significant digits of the largest, as more say nothing."""
    array = np.asarray(values, dtype=np.float64)
    size = float(np.abs(array).max(initial=0.0))
    digits = _DIGITS - int(np.floor(np.log10(size))) if size > 0 and np.isfinite(size) else 0
    return np.round(array, digits).tolist()
