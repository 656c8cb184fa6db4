"""Check the built site: ``python docs/links.py docs/_build/html`` lists links and pictures that lead nowhere.

Sphinx checks references between sources. This walks the HTML: every address inside the site is a file, and
every ``#anchor`` an element of it. The site's build does the same at its end.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_ADDRESSES = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}


class _Page(HTMLParser):
    """The addresses and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: set[str] = set()
        self.anchors: set[str] = {"", "top"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := facts.get(key))}
        if value := facts.get(_ADDRESSES.get(tag, "")):
            self.addresses.add(value)
        self.addresses |= {part.split()[0] for part in (facts.get("srcset") or "").split(",") if part.strip()}


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page


def broken_links(site: Path) -> list[str]:
    """Return "page: address" for every address inside the site that is no file, or no anchor of one."""
    _read.cache_clear()
    return [
        f"{path.relative_to(site)}: {address}"
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts  # templates of the theme
        for address in sorted(_read(path).addresses)
        if _is_broken(path, address)
    ]


def _is_broken(path: Path, address: str) -> bool:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return False
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return True
    return target.suffix == ".html" and unquote(parts.fragment) not in _read(target).anchors


if __name__ == "__main__":
    broken = broken_links(Path(sys.argv[1]).resolve())
    sys.exit("\n".join(broken) or None)
