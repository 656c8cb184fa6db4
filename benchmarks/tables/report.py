"""A table of what was measured, for its page."""

from __future__ import annotations


def text(result: list[dict]) -> str:
    """Markdown."""
    head = "| table | model | output | method | prepare s | ms a row | strongest, row 0 | largest \\|z\\| |"
    lines = [head, "|---" * 8 + "|"]
    lines += [
        f"| {c['table']} ({c['rows']:,} x {c['columns']}) | {c['model']} | {c['output']} | {c['method']} "
        f"| {c['prepare_s']:.2f} | {c['ms_a_row']:.2f} | {c['strongest']} | {c['largest_z']:.1f} |"
        for c in result
    ]
    return "\n".join(lines)
