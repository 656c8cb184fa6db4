"""A table and a picture of what was measured, for its page."""

from __future__ import annotations

from benchmarks.links import picture, wide


def _error(error: float | None) -> str:
    """In words; other numbers than LIME's have none."""
    if error is None:
        return "other numbers"
    return format(error, ".1%") if error else "below 1e-9"


def text(result: dict) -> str:
    """The table."""
    lines = ["| model | way | ms a row or text | of processor | largest error |", "|---" * 5 + "|"]
    lines += [
        f"| {c['model']} | {c['way']} | {c['ms']:.3g} | {c['processor_ms']:.3g} "
        f"| {_error(c.get('error', 0.0))} |"
        for c in result["ways"]
    ]
    parts = [f"Machine: {result['machine']}.", "", *lines]
    # measured by `python -m benchmarks.links.wide`
    parts += ["", wide.text(result["contributions"])] if "contributions" in result else []
    return "\n".join(parts)


def draw(result: dict) -> str:
    """Draw the picture, and return its Markdown."""
    picture.draw(result["curve"])
    return "![error against nodes and time](../results/links.png)"
