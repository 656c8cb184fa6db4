"""A table of what was measured, for its page."""

from __future__ import annotations

_NAMES = {
    "classes": "multinomial regression of {} classes, 20 columns",
    "words": "text of {} words, steep logistic regression on normalised TF-IDF",
    "frame": "frame of {} rows of 20 columns",
}


def text(result: dict) -> str:
    """Markdown."""
    lines = [line for case in result["cases"] for line in _lines(case)]
    return "\n\n".join(
        [
            f"Machine: {result['machine']}. New processes with no thread variables; medians of "
            f"{result['rounds']}. Error: the largest standard error over the largest coefficient of its "
            "output.",
            "\n".join(["| case | | s | s of all threads | GB | error |", "|---" * 6 + "|", *lines]),
        ]
    )


def _lines(case: dict) -> list[str]:
    figures = case["figures"]
    steps = [name for name in figures if isinstance(figures[name], list)]
    lines = []
    for step in steps:
        name = _NAMES[case["case"]].format(format(case["size"], ","))
        cells = [name, step, *(f"{seconds:.3g}" for seconds in figures[step]), "", ""]
        if step == steps[-1]:
            cells[-2:] = (
                f"{figures['gigabytes']:.2f}",
                f"{figures['error']:.2%}" if "error" in figures else "",
            )
        lines.append(f"| {' | '.join(cells)} |")
    return lines
