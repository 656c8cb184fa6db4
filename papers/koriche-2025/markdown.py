"""Markdown tables."""

from __future__ import annotations


def table(head, lines):
    """Return a table of a head and lines of cells."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
