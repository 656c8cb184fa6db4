"""Write what was measured: JSON, a table in README.md, a picture."""

from __future__ import annotations

import json

from benchmarks import readme
from benchmarks.links import picture


def _error(error: float | None) -> str:
    """In words; other numbers than LIME's have none."""
    if error is None:
        return "other numbers"
    return format(error, ".1%") if error else "below 1e-9"


def text(found: dict) -> str:
    """The table."""
    lines = ["| model | way | ms a row or text | of processor | largest error |", "|---" * 5 + "|"]
    lines += [
        f"| {c['model']} | {c['way']} | {c['ms']:.3g} | {c['processor_ms']:.3g} "
        f"| {_error(c.get('error', 0.0))} |"
        for c in found["ways"]
    ]
    return "\n".join([f"Machine: {found['machine']}.", "", *lines])


def write(found: dict) -> None:
    """All three."""
    (readme.RESULTS / "links.json").write_text(json.dumps(found, indent=1) + "\n")
    picture.draw(found["curve"])
    readme.replace("links", text(found) + "\n\n![error against nodes and time](results/links.png)")
