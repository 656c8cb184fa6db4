"""Write what was measured: JSON in results/, text in pages/, and what README.md quotes of the pages."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

from limes import __version__

HOME = Path(__file__).parent
RESULTS = HOME / "results"
PAGES = HOME / "pages"
# `<!-- one_row, 1 and 3 -->` quotes the first and the third block of that part; blank lines divide blocks
_QUOTED = re.compile(r"(<!-- ([\w ]+), (\d+(?: and \d+)*) -->\n\n).*?(<!-- end of quotation -->)", re.DOTALL)
# The last line of what a part writes
_STAMP = re.compile(r"^Measured on \d{4}-\d\d-\d\d by limes \S+(?: at (\w+))?\.$", re.MULTILINE)


def save(part: str, result: Any) -> None:
    """Store what a part measured as JSON."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{part}.json").write_text(json.dumps(result, indent=1) + "\n")


def load(part: str) -> Any:
    """Return what `save` stored."""
    return json.loads((RESULTS / f"{part}.json").read_text())


def replace(part: str, text: str, *, by: str = "benchmarks", stamp: str = "") -> None:
    """Put ``text`` in the place of what an earlier run of this part, ``by`` a package, wrote on its page.

    Its last line is ``stamp``: the date and the version of limes, by default those of today.
    Give `stamp_of` (part) to write a measurement of another day again.
    """
    page = _page(part)
    before, rest = page.read_text().split(begin := f"<!-- {part}: written by python -m {by} -->")
    after = rest.split(end := f"<!-- end of {part} -->")[1]
    page.write_text(f"{before}{begin}\n\n{text}\n\n{stamp or _stamp()}\n\n{end}{after}")
    front = HOME / "README.md"
    front.write_text(with_quotations(front.read_text()))


def stamp_of(part: str) -> str:
    """The line that says when a part was measured, and by which version of limes; "" before it has one."""
    stamps = [*_STAMP.finditer(_written(part))]
    return stamps[-1][0] if stamps else ""


def is_of_this_version(part: str) -> bool:
    """Whether a part was measured since the library's code changed last; no where that cannot be known."""
    stamp, version = _STAMP.fullmatch(stamp_of(part)), _version()
    return stamp is not None and bool(version) and stamp[1] == version


def _stamp() -> str:
    version = _version()
    return f"Measured on {date.today()} by limes {__version__}{f' at {version}' if version else ''}."


def _version() -> str:
    """The last commit that changed the library's code; "" outside a checkout."""
    log = ["git", "log", "-1", "--format=%h", "--abbrev=8", "--", "../src", "../kernels"]
    try:
        return subprocess.run(log, cwd=HOME, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def with_quotations(front: str) -> str:
    """README.md with the blocks that it quotes as they are on the pages now."""

    def quoted(match: re.Match[str]) -> str:
        blocks = _blocks(match[2])
        chosen = [blocks[int(number) - 1] for number in match[3].split(" and ")]
        return match[1] + "\n\n".join(chosen) + "\n\n" + match[4]

    return _QUOTED.sub(quoted, front)


def _blocks(part: str) -> list[str]:
    return re.split(r"\n\n+", _written(part).strip())[1:]


def _written(part: str) -> str:
    return _page(part).read_text().split(f"<!-- {part}: written by ")[1].split(f"<!-- end of {part} -->")[0]


def _page(part: str) -> Path:
    """The page that has the markers of a part."""
    (page,) = (page for page in PAGES.glob("*.md") if f"<!-- {part}: written by " in page.read_text())
    return page
