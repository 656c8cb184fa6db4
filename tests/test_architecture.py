"""The table of what is exact in ARCHITECTURE.md is what the code answers; its glossary stays short."""

from __future__ import annotations

import re
from pathlib import Path

from tools.exact_square import table

TEXT = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_the_code_answers_what_is_exact():
    printed = TEXT.split("<!-- exact square -->\n")[1].split("<!-- end -->")[0]
    assert printed == table()


def test_the_glossary_has_few_types():
    glossary = TEXT.split("## The types that carry everything")[1].split("\n## ")[0]
    entries = re.findall(r"^\| `", glossary, re.MULTILINE)
    assert 10 <= len(entries) <= 16
