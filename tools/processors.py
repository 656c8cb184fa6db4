"""Run the tests as on other processors: no result may depend on the last bit of this one.

    python tools/processors.py [pytest's arguments]

BLAS, numpy and the compiled kernels choose their instructions when they are loaded. Each of `PROCESSORS` is
emulated by its BLAS kernel, its numpy features and its dispatch path of the kernels; a processor with more
than this machine has is named and left out. Every variable is checked in the process that it is set for.
"""

from __future__ import annotations

import os
import subprocess
import sys

# OPENBLAS_CORETYPE, LIMES_INSTRUCTIONS, and the parts of names of numpy's features that are switched off
PROCESSORS = (
    ("Nehalem", "portable", ("X86_V3", "AVX", "FMA", "F16C", "X86_V4")),
    ("Haswell", "avx2", ("AVX512", "X86_V4")),
    ("SkylakeX", "avx512", ()),
)

# Prints the BLAS kernels and the widest instructions that a new process has
_CHECK = """
import numpy, scipy.linalg
from threadpoolctl import threadpool_info
from limes import _kernels
blas = {pool["architecture"] for pool in threadpool_info() if pool["user_api"] == "blas"}
print(*blas, _kernels.instructions()[0])
"""

_FEATURES = """
import numpy
print(*numpy.__config__.CONFIG["SIMD Extensions"]["found"])
"""


def output(code: str, env: dict[str, str]) -> str:
    """Return what a new process prints that runs this code."""
    process = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    return process.stdout if process.returncode == 0 else process.stderr


def environment(core: str, instructions: str, without: tuple[str, ...]) -> dict[str, str]:
    """Variables of a process that takes this machine for another."""
    features = output(_FEATURES, dict(os.environ)).split()
    off = [name for name in features if without and name.startswith(without)]
    chosen = {"OPENBLAS_CORETYPE": core, "LIMES_INSTRUCTIONS": instructions}
    return {**os.environ, **chosen, "NPY_DISABLE_CPU_FEATURES": " ".join(off)}


def main(arguments: list[str]) -> int:
    """Run the tests once for each processor; 1 if any run failed, or none could be emulated."""
    codes = []
    for core, instructions, without in PROCESSORS:
        env = environment(core, instructions, without)
        chosen = output(_CHECK, env)
        if chosen.split() != [core, instructions]:
            print(f"{core} with {instructions} cannot be emulated here: {chosen[-200:]}")
            continue
        print(f"{core}, kernels {instructions}, numpy without {env['NPY_DISABLE_CPU_FEATURES']}", flush=True)
        command = [sys.executable, "-m", "pytest", *arguments]
        codes.append(subprocess.run(command, env=env, check=False).returncode)  # noqa: S603 - this interpreter
    return int(not codes or any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
