"""Write what was measured: JSON in results/, and text between the markers of README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent
RESULTS = HOME / "results"


def save(part: str, result: Any) -> None:
    """Store what a part measured as JSON."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{part}.json").write_text(json.dumps(result, indent=1) + "\n")


def load(part: str) -> Any:
    """What `save` stored."""
    return json.loads((RESULTS / f"{part}.json").read_text())


def replace(part: str, text: str, *, by: str = "benchmarks") -> None:
    """Put ``text`` in the place of what an earlier run of this part, ``by`` a package, wrote."""
    begin, end = f"<!-- {part}: written by python -m {by} -->", f"<!-- end of {part} -->"
    before, rest = (HOME / "README.md").read_text().split(begin)
    (HOME / "README.md").write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}")
