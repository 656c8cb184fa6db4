"""Print requirements of pyproject.toml for pip: ``python tools/requirements.py [--lowest] EXTRA ...``.

Those of the extras, as they stand. With ``--lowest`` the lowest versions that they allow, those of the core,
and from the extra `test` what is needed to run tests at all.
"""

import re
import sys
import tomllib
from pathlib import Path

RUNNERS = ("pytest", "pytest-xdist", "hypothesis", "polars")


def requirements(names: list[str], *, lowest: bool) -> set[str]:
    """Return the requirements of the extras called ``names``, one a line of pip's."""
    text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    stated = {line for name in names for line in extras[name]}
    if not lowest:
        return stated
    runners = {line for line in extras["test"] if re.split(r"[>=]", line)[0] in RUNNERS}
    return {_lowest(line) for line in {*stated, *runners, *project["dependencies"]}}


def _lowest(line: str) -> str:
    """One version in full, 1.2.0 for 1.2: databases of advisories know it by this name."""
    name, minimum, *_ = re.split(r"[>=]=|;", line)
    return f"{name}=={'.'.join([*minimum.strip().split('.'), '0', '0'][:3])}"


if __name__ == "__main__":
    wanted = [name for name in sys.argv[1:] if name != "--lowest"]
    print("\n".join(sorted(requirements(wanted, lowest="--lowest" in sys.argv))))
