"""Write what was measured: JSON in results/, text in pages/, and what README.md quotes of the pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent
RESULTS = HOME / "results"
PAGES = HOME / "pages"
# `<!-- one_row, 1 and 3 -->` quotes the first and the third block of that part; blank lines divide blocks
_QUOTED = re.compile(r"(<!-- ([\w ]+), (\d+(?: and \d+)*) -->\n\n).*?(<!-- end of quotation -->)", re.DOTALL)


def save(part: str, result: Any) -> None:
    """Store what a part measured as JSON."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{part}.json").write_text(json.dumps(result, indent=1) + "\n")


def load(part: str) -> Any:
    """Return what `save` stored."""
    return json.loads((RESULTS / f"{part}.json").read_text())


def replace(part: str, text: str, *, by: str = "benchmarks") -> None:
    """Put ``text`` in the place of what an earlier run of this part, ``by`` a package, wrote on its page."""
    begin, end = f"<!-- {part}: written by python -m {by} -->", f"<!-- end of {part} -->"
    page = _page(part)
    before, rest = page.read_text().split(begin)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}")
    front = HOME / "README.md"
    front.write_text(with_quotations(front.read_text()))


def with_quotations(front: str) -> str:
    """README.md with the blocks that it quotes as they are on the pages now."""

    def quoted(match: re.Match[str]) -> str:
        blocks = _blocks(match[2])
        chosen = [blocks[int(number) - 1] for number in match[3].split(" and ")]
        return match[1] + "\n\n".join(chosen) + "\n\n" + match[4]

    return _QUOTED.sub(quoted, front)


def _blocks(part: str) -> list[str]:
    written = _page(part).read_text().split(f"<!-- {part}: written by ")[1]
    return re.split(r"\n\n+", written.split(f"<!-- end of {part} -->")[0].strip())[1:]


def _page(part: str) -> Path:
    """The page that has the markers of a part."""
    (page,) = (page for page in PAGES.glob("*.md") if f"<!-- {part}: written by " in page.read_text())
    return page
