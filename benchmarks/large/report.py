"""A table of what was measured, for README.md."""

from __future__ import annotations

_NAMES = {
    "classes": "multinomial regression of {} classes, 20 columns",
    "words": "text of {} words, steep logistic regression on normalised TF-IDF",
    "frame": "frame of {} rows of 20 columns",
}


def text(result: dict) -> str:
    """Markdown."""
    pairs = ("s", "s of all threads", "GB", "error")
    head = f"| case | | {' | '.join(f'{name}, before | now' for name in pairs)} |"
    lines = [line for case in result["cases"] for line in _lines(case)]
    return "\n\n".join(
        [
            f"Machine: {result['machine']}. Commit {result['before']} and this version in turn, in new "
            f"processes with no thread variables; medians of {result['rounds']}. Error: the largest standard "
            "error over the largest coefficient of its output.",
            "\n".join([head, "|---" * 10 + "|", *lines]),
        ]
    )


def _lines(case: dict) -> list[str]:
    before, now = case["before"], case["now"]
    steps = [name for name in now if isinstance(now[name], list)]
    lines = []
    for step in steps:
        times = " | ".join(f"{each[step][k]:.3g}" for k in (0, 1) for each in (before, now))
        rest = " | | |"
        if step == steps[-1]:
            errors = [f"{each['error']:.2%}" if "error" in each else "" for each in (before, now)]
            rest = f"{before['gigabytes']:.2f} | {now['gigabytes']:.2f} | {' | '.join(errors)}"
        lines.append(
            f"| {_NAMES[case['case']].format(format(case['size'], ','))} | {step} | {times} | {rest} |"
        )
    return lines
