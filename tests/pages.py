"""Pages of the documentation, which source distributions do not have."""

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def page(name: str) -> str:
    """The text of a page; its test is skipped where there is no documentation."""
    if not DOCS.exists():
        pytest.skip("the documentation is in a checkout, not in a source distribution")
    return (DOCS / name).read_text(encoding="utf-8")
