"""From files to files: what is not done yet is given to an engine, and written down when it is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from limes.exceptions import InputError
from limes.explainers.options import check_count
from limes.scale.engines import HERE, Cluster, engine_of
from limes.scale.frames import Explainer
from limes.scale.parts import Folder
from limes.scale.sources import Source
from limes.scale.work import work_of


@dataclass(frozen=True)
class Summary:
    """What a folder holds.

    Attributes
    ----------
    rows, errors : int
        Rows, and those among them that have no explanation.
    resumed : int
        Rows that had been done before.
    mean_size : mapping
        Mean |β| of each column over all rows and outputs, in the output's units.
    """

    rows: int
    errors: int
    resumed: int
    mean_size: Mapping[str, float]


def explain_files(
    source: Source,
    explainer: Explainer,
    out: str | Path,
    *,
    run: Mapping[str, Any],
    layout: str = "wide",
    keys: Sequence[str] = (),
    rows_per_part: int = 50_000,
    engine: str = "local",
    cluster: Cluster = HERE,
    progress: bool = True,
) -> Summary:
    """Explain every row of a table in files into a folder of Parquet files; begun work is gone on with.

    Each part has the columns of `limes.scale.explain_frame`, after ``row``, its number in the table from 0,
    and the keys. ``run`` says what makes these explanations these (model, background, options): a folder
    takes explanations of one run only.

    Raises
    ------
    InputError
        The table, an option or the folder is not usable; what was done before stays done.
    """
    do = engine_of(engine)
    check_count("workers", cluster.workers)
    step, folder = check_count("rows_per_part", rows_per_part), Folder(Path(out))
    work = work_of(explainer, folder, source.schema, layout=layout, keys=keys)
    shape = {"layout": layout, "keys": list(keys), "rows_per_part": step}
    folder.open({**run, "input": source.fingerprint, "output": shape})
    done = folder.done()
    resumed = sum(one.rows for one in done.values())
    left = (part for part in source.parts(step, work.columns) if part.number not in done)
    with tqdm(initial=resumed, unit=" rows", unit_scale=True, disable=not progress, desc="explaining") as bar:
        for one in do(work, left, cluster):
            folder.note(one)
            done[one.part] = one
            bar.update(one.rows)
    if not done:
        raise InputError("the table has no rows")
    rows, errors = (sum(getattr(one, name) for one in done.values()) for name in ("rows", "errors"))
    return Summary(rows, errors, resumed, _mean_sizes(folder, sorted(done), explainer.feature_names, layout))


def _mean_sizes(
    folder: Folder, parts: Sequence[int], names: Sequence[str], layout: str
) -> Mapping[str, float]:
    """Mean |β| of each column, a part at a time."""
    total, count = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    for number in parts:
        for name, values in _values(folder.part(number), names, layout):
            total[name] += pc.sum(pc.abs(values), min_count=0).as_py()
            count[name] += len(values) - values.null_count
    return {name: total[name] / max(count[name], 1) for name in names}


def _values(path: Path, names: Sequence[str], layout: str) -> Iterator[tuple[str, Any]]:
    if layout == "wide":
        table = pq.read_table(path, columns=[f"value_{name}" for name in names])
        yield from ((name, table[f"value_{name}"]) for name in names)
        return
    table = pq.read_table(path, columns=["feature", "value"])
    yield from ((name, table.filter(pc.equal(table["feature"], name))["value"]) for name in names)
