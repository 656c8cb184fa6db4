"""Write what was measured: JSON, a table in README.md, a picture."""

from __future__ import annotations

import json

from benchmarks import readme
from benchmarks.links import picture


def text(found: dict) -> str:
    """The table."""
    lines = ["| model | way | ms a row or text | of processor | largest error |", "|---" * 5 + "|"]
    lines += [
        f"| {c['model']} | {c['way']} | {c['ms']:.3g} | {c['processor_ms']:.3g} "
        f"| {'below 1e-9' if 'error' not in c else format(c['error'], '.1%')} |"
        for c in found["ways"]
    ]
    return "\n".join([f"Machine: {found['machine']}.", "", *lines])


def write(found: dict) -> None:
    """All three."""
    (readme.RESULTS / "links.json").write_text(json.dumps(found, indent=1) + "\n")
    picture.draw(found["curve"])
    readme.replace("links", text(found) + "\n\n![error against nodes and time](results/links.png)")
