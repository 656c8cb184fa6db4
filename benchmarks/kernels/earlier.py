"""The earlier version: its commit's package, numba and llvmlite in a folder that is made on demand.

All else, models and numpy too, is the environment's own, so that the two versions differ in nothing else.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.progress import say

COMMIT = "ea3cdfd"
ROOT = Path(__file__).parents[2]
_PACKAGES = ROOT / "build" / f"limes-{COMMIT}"


def packages() -> Path:
    """Folder to be put on PYTHONPATH, before everything else."""
    if not (_PACKAGES / "limes").exists():
        say(f"installing {COMMIT} and numba into {_PACKAGES}")
        with TemporaryDirectory() as folder:
            archive = subprocess.run(
                ["git", "archive", COMMIT, "src/limes"], cwd=ROOT, capture_output=True, check=True
            )
            with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
                tar.extractall(folder, filter="data")
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(_PACKAGES)]
            subprocess.run([*pip, "numba", "llvmlite"], check=True)
            Path(folder, "src", "limes").rename(_PACKAGES / "limes")
    return _PACKAGES


def current() -> Path:
    """The same of this version."""
    return ROOT / "src"
