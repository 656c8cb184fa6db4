"""Write what was measured: JSON, and a table in README.md."""

from __future__ import annotations

import json

from benchmarks import readme


def write(found: list[dict]) -> None:
    """JSON, and the table in README.md."""
    (readme.RESULTS / "tables.json").write_text(json.dumps(found, indent=1) + "\n")
    head = "| table | model | output | method | prepare s | ms a row | strongest, row 0 | largest \\|z\\| |"
    lines = [head, "|---" * 8 + "|"]
    lines += [
        f"| {c['table']} ({c['rows']:,} x {c['columns']}) | {c['model']} | {c['output']} | {c['method']} "
        f"| {c['prepare_s']:.2f} | {c['ms_a_row']:.2f} | {c['strongest']} | {c['largest_z']:.1f} |"
        for c in found
    ]
    readme.replace("tables", "\n".join(lines))
