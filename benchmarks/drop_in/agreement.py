"""How many patterns of public code get the numbers of ``lime``: ``python -m benchmarks.drop_in.agreement``.

The patterns are those of ``tests/compat``, with the samples that they ask for. Each is run with ``lime``
and with both engines, whose results agree if all numbers differ by no more than `SHARE` of the largest.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import readme
from benchmarks.progress import say
from limes.compat.lime import engine

SHARE = 0.2


def measure() -> dict[str, Any]:
    """How many of the patterns with numbers agree with lime, by engine, and which do not."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    from compat.lime_alias import installed
    from compat.test_clients import FAILS_IN_LIME, PATTERNS, modules

    gaps: dict[str, dict[str, float]] = {"limit": {}, "lime": {}}
    patterns = {name: pattern for name, pattern in PATTERNS.items() if name not in FAILS_IN_LIME}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        for name, pattern in patterns.items():
            theirs = pattern(modules(), folder)
            for chosen, its in gaps.items():
                with installed(), engine(chosen):
                    ours = pattern(modules(), folder)
                if parts := list(_gaps(ours, theirs)):
                    its[name] = max(parts)
    say(f"{len(patterns)} patterns\n")
    result: dict[str, Any] = {"patterns with numbers": len(gaps["limit"])}
    for chosen, its in gaps.items():
        beyond = {name: round(gap, 3) for name, gap in its.items() if gap > SHARE}
        result |= {f"engine {chosen}: agree": len(its) - len(beyond), f"engine {chosen}: beyond": beyond}
    return result


def _gaps(ours: Any, theirs: Any) -> Iterator[float]:
    """Largest differences of the numbers in two results, as shares of the largest number of each part."""
    if isinstance(theirs, Mapping):
        shared = [key for key in theirs if key in ours]
        if shared and all(isinstance(theirs[key], float) for key in shared):
            yield from _gap([ours[key] for key in shared], [theirs[key] for key in shared])
        else:
            for key in shared:
                yield from _gaps(ours[key], theirs[key])
    elif isinstance(theirs, list | tuple) and theirs and all(map(_is_pair, theirs)):
        yield from _gaps(dict(ours), dict(theirs))
    elif isinstance(theirs, list | tuple) and not all(isinstance(value, float) for value in theirs):
        for our, their in zip(ours, theirs, strict=False):
            yield from _gaps(our, their)
    elif isinstance(theirs, float | np.ndarray | list | tuple):
        yield from _gap(ours, theirs)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], float)


def _gap(ours: Any, theirs: Any) -> Iterator[float]:
    one, other = np.asarray(ours, dtype=object).ravel(), np.asarray(theirs, dtype=object).ravel()
    if one.size == other.size and all(isinstance(value, int | float) for value in other):
        largest = np.abs(other.astype(float)).max(initial=0.0)
        if largest > 0:
            yield float(np.abs(one.astype(float) - other.astype(float)).max() / largest)


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    count = result["patterns with numbers"]
    lines = [f"Of {count} patterns with numbers agree with lime at their own samples:", ""]
    for chosen in ("limit", "lime"):
        beyond = ", ".join(f"{name} {gap:g}" for name, gap in result[f"engine {chosen}: beyond"].items())
        lines.append(f"- engine {chosen}: {result[f'engine {chosen}: agree']}; beyond: {beyond or 'none'}")
    return "\n".join(lines)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    measured = measure()
    readme.save("drop_in_agreement", measured)
    readme.replace("agreement of patterns", text(measured), by="benchmarks.drop_in.agreement")
