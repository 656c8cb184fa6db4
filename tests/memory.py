"""The memory that pyarrow takes to read a row group larger than that memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_CHILD = """
import sys
from pathlib import Path
import pyarrow
sys.path.insert(0, sys.argv[2])
path = Path(sys.argv[1])
{}
print(rows, pyarrow.default_memory_pool().max_memory())
"""


def rows_and_peak(reading: str, folder: Path) -> tuple[int, int]:
    """Run ``reading`` in a separate process; return the ``rows`` it read and Arrow's peak memory, bytes.

    The file has one row group, of two columns of a million numbers: 16 MB.
    """
    path, values = folder / "t.parquet", np.random.default_rng(0).normal(size=1_000_000)
    pq.write_table(pa.table({"a": values, "b": values}), path, row_group_size=1_000_000, use_dictionary=False)
    command = [sys.executable, "-c", _CHILD.format(reading), str(path), str(Path(__file__).parent)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, peak = map(int, run.stdout.split())
    return rows, peak
