"""The same rows by the direct call and by each engine, each in a new process that knows nothing yet."""

from __future__ import annotations

import os
import shutil
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib

from benchmarks.scale.memory import Tree

DIRECT = "direct call"
ENGINES = ("local", "dask", "spark")
CORES = os.cpu_count() or 1


def absent(engine: str) -> str:
    """Why an engine cannot be measured; empty if it can."""
    if engine == "dask" and find_spec("distributed") is None:
        return "distributed is not installed"
    if engine == "spark" and find_spec("pyspark") is None:
        return "pyspark is not installed"
    if engine == "spark" and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "there is no Java"
    return ""


def run(engine: str, case_file: Path, table: Path, out: Path, method: str = "exact") -> dict[str, Any]:
    """Seconds from the call to the last row, workers' start among them; memory above nothing."""
    import limes

    case = joblib.load(case_file)
    explainer = limes.TabularExplainer(case.model, case.background, method=method)
    do = _direct if engine == DIRECT else _engine
    with Tree() as tree:
        start = time.perf_counter()
        result = do(engine, explainer, table, out)
        seconds = time.perf_counter() - start
    return {"seconds": seconds, **result, "megabytes": tree.megabytes()}


def _direct(engine: str, explainer: Any, table: Path, out: Path) -> dict[str, Any]:  # noqa: ARG001
    import pandas as pd

    explanation = explainer(pd.read_parquet(table), progress=False)
    return {"rows": len(explanation)}


def _engine(engine: str, explainer: Any, table: Path, out: Path) -> dict[str, Any]:
    from limes.scale._sources import Source
    from limes.scale._tables import Cluster, explain_files

    cluster = Cluster(workers=CORES)
    try:
        summary = explain_files(
            Source.of(table), explainer, out, run={}, engine=engine, cluster=cluster, progress=False
        )
        size = sum(path.stat().st_size for path in out.glob("*.parquet"))
    finally:
        shutil.rmtree(out, ignore_errors=True)
    assert not summary.errors
    return {"rows": summary.rows, "distinct": summary.distinct[0], "bytes_a_row": size / summary.rows}
