"""A table of what was measured, for its page."""

from __future__ import annotations

GOAL = 0.93
# Explanations without a warning, fewer than which say nothing of coverage
_FEW = 10
_HEAD = "| case | control | calls | covered | error / standard error | warned | infinite | at least 93 % |"


def text(result: dict) -> str:
    """Markdown."""
    lines = [_HEAD, "|---" * 8 + "|", *(_line(line) for line in result["lines"])]
    return "\n\n".join([f"Machine: {result['machine']}.", "\n".join(lines)])


def _line(line: dict) -> str:
    return (
        f"| {line['case']} | {line['control']}, {line['seeds']} seeds | {line['calls']:,} | {_covered(line)} "
        f"| {_number(line['error / standard error'])} | {line['warned']:.0%} | {line['infinite']:.0%} "
        f"| {_verdict(line)} |"
    )


def _covered(line: dict) -> str:
    if line["coverage"] is None:
        return "refused"
    noise = "" if line["noise"] is None else f" ± {line['noise']:.3f}"
    return f"{line['coverage']:.3f}{noise}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _verdict(line: dict) -> str:
    """Less than the goal by more than twice the noise is a failure."""
    if line["coverage"] is None or line["coverage"] >= GOAL:
        return "yes"
    if line["trusted"] < _FEW:
        return f"refused but for {line['trusted']}"
    return "within noise" if line["coverage"] + 2 * (line["noise"] or 0.0) >= GOAL else "**no**"
