"""Processes of this machine, by joblib. The work is loaded once a process, from a file that all share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from limes.scale.engines import Cluster
from limes.scale.parts import Done
from limes.scale.sources import Part
from limes.scale.work import Work


def run(work: Work, parts: Iterable[Part], cluster: Cluster) -> Iterator[Done]:
    """Do the parts, in any order; what is done is told as it is done.

    Raises
    ------
    InputError
        If the explainer cannot be sent to other processes, or a part cannot be read or written.
    """
    workers = cluster.workers
    if workers == 1:
        yield from map(work, parts)
        return
    from joblib import Parallel, delayed

    with TemporaryDirectory(prefix="limes-") as folder:
        path = Path(folder) / "work"
        path.write_bytes(work.packed())
        parallel = Parallel(n_jobs=workers, return_as="generator_unordered", pre_dispatch=2 * workers)
        yield from parallel(delayed(_do)(str(path), part) for part in parts)


def _do(path: str, part: Part) -> Done:
    return _loaded(path)(part)


@lru_cache(maxsize=1)
def _loaded(path: str) -> Work:
    return Work.unpacked(Path(path).read_bytes())
