"""The real data that some parts read: the folder LIMES_DATA, by default ../shared/data."""

from __future__ import annotations

import os
from pathlib import Path

DATA = (Path(__file__).parents[1] / os.environ.get("LIMES_DATA", "../shared/data")).resolve()


def table_path(name: str) -> Path:
    """The file of a table."""
    path = DATA / "tabular" / f"{name}.csv.gz"
    if not path.exists():
        raise SystemExit(f"{path} is not there: set LIMES_DATA to the folder of the data")
    return path
