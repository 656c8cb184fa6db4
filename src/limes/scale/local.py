"""Processes of this machine, by joblib. The work is loaded once a process, from a file that all share."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from limes.exceptions import InputError
from limes.scale.parts import Done
from limes.scale.sources import Part
from limes.scale.work import Work


def run(work: Work, parts: Iterable[Part], workers: int) -> Iterator[Done]:
    """Do the parts, in any order; what is done is told as it is done.

    Raises
    ------
    InputError
        If the explainer cannot be sent to other processes, or a part cannot be read or written.
    """
    if workers == 1:
        yield from map(work, parts)
        return
    from joblib import Parallel, delayed

    with TemporaryDirectory(prefix="limes-") as folder:
        path = Path(folder) / "work"
        path.write_bytes(_packed(work))
        parallel = Parallel(n_jobs=workers, return_as="generator_unordered", pre_dispatch=2 * workers)
        yield from parallel(delayed(_do)(str(path), part) for part in parts)


def _packed(work: Work) -> bytes:
    try:
        return pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(f"the model cannot be sent to other processes ({error}): use one worker") from error


def _do(path: str, part: Part) -> Done:
    return _loaded(path)(part)


@lru_cache(maxsize=1)
def _loaded(path: str) -> Work:
    work: Work = pickle.loads(Path(path).read_bytes())  # noqa: S301 - this process's parent wrote it
    return work
