"""``python -m benchmarks.text``: measure, print, and write results/text.json."""

from __future__ import annotations

import json

from benchmarks.readme import RESULTS
from benchmarks.text import run


def main() -> None:
    found = {"speed": run.speed(), "batch": run.batch(), "agreement": run.agreement()}
    text = json.dumps(found, indent=1)
    print(text)
    (RESULTS / "text.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
