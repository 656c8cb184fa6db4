"""Print the section of a version from CHANGELOG.md: ``python tools/release_notes.py 0.2.0``."""

import re
import sys
from pathlib import Path

text = Path(__file__).parents[1].joinpath("CHANGELOG.md").read_text(encoding="utf-8")
section = re.search(rf"^## {re.escape(sys.argv[1])}\b.*?\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
if section is None:
    sys.exit(f"CHANGELOG.md has no section {sys.argv[1]}")
print(section[1].strip())
