"""Write between the markers of README.md."""

from __future__ import annotations

from pathlib import Path

HOME = Path(__file__).parent
RESULTS = HOME / "results"


def replace(part: str, text: str, *, by: str = "benchmarks") -> None:
    """Put ``text`` in the place of what an earlier run of this part, ``by`` a package, wrote."""
    begin, end = f"<!-- {part}: written by python -m {by} -->", f"<!-- end of {part} -->"
    before, rest = (HOME / "README.md").read_text().split(begin)
    (HOME / "README.md").write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}")
