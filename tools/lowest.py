"""Print the lowest versions that pyproject.toml allows: ``pip install $(python tools/lowest.py EXTRA ...)``.

Those of the core and of the extras; from the extra `test` only what is needed to run tests at all.
"""

import re
import sys
import tomllib
from pathlib import Path

RUNNERS = ("pytest", "pytest-xdist", "hypothesis", "polars")

project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
extras = project["optional-dependencies"]
stated = [*project["dependencies"], *(line for name in sys.argv[1:] for line in extras[name])]
stated += [line for line in extras["test"] if re.split(r"[>=]", line)[0] in RUNNERS]
print("\n".join(sorted({line.replace(">=", "==") for line in stated})))
