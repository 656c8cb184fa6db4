"""Write what was measured: JSON, and a table in README.md."""

from __future__ import annotations

import json

from benchmarks import readme


def text(found: list[dict]) -> str:
    """The table."""
    lines = [
        "| logistic regression, 30 columns | ms a row | of processor | largest error |",
        "|---" * 4 + "|",
    ]
    lines += [
        f"| {c['way']} | {c['ms']:.3g} | {c['processor_ms']:.3g} "
        f"| {'below 1e-9' if 'error' not in c else format(c['error'], '.1%')} |"
        for c in found
    ]
    return "\n".join(lines)


def write(found: list[dict]) -> None:
    """JSON, and the table in README.md."""
    (readme.RESULTS / "links.json").write_text(json.dumps(found, indent=1) + "\n")
    readme.replace("links", text(found))
