"""A table and a picture of what was measured, for its page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.accuracy import goals, picture

_HEAD = (
    "| case, d | ν/√d | 256 | 1,024 | 4,096 | control at 256, 1,024, 4,096 "
    "| s outside the model: limes | `lime` |"
)


def draw(result: dict) -> str:
    """Draw the picture, and return its Markdown."""
    picture.draw(result["cases"])
    return "![error against calls](../results/accuracy.png)"


def text(result: dict) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    seeds = ", ".join(f"{count} of {who}" for who, count in result["seeds"].items())
    blocks = [
        f"Machine: {result['machine']}. {versions}. Seeds: {seeds}.",
        "## Goals",
        goals.text(result["cases"]),
        "## Cases",
        "\n".join([_HEAD, "|---" * 8 + "|", *(_line(case) for case in result["cases"])]),
        *_tied(result["cases"]),
        _truths(result["cases"]),
    ]
    if result["absent"]:
        blocks.append("Absent: " + "; ".join(f"{n} ({why})" for n, why in result["absent"].items()) + ".")
    return "\n\n".join(blocks)


def _line(case: dict) -> str:
    result = case["calls"].values()
    ratios = " | ".join(_ratio(f["ratio"]["lime"]) for f in result)
    controls = ", ".join(_control(f["control"]) for f in result)
    seconds = " | ".join(" / ".join(f"{f['seconds'][who]:.2g}" for f in result) for who in ("limes", "lime"))
    return f"| {case['case']}, {case['columns']} | {case['bandwidth']} | {ratios} | {controls} | {seconds} |"


def _ratio(ratio: dict[str, float]) -> str:
    digits = max(0, 1 - int(np.floor(np.log10(ratio["error"]))))
    return f"{ratio['value']:.{min(digits, 2)}f} ± {ratio['error']:.{min(digits, 2)}f}"


def _control(chosen: dict[str, int]) -> str:
    """The one that most seeds took, and how many of them if not all."""
    (name, count), total = max(chosen.items(), key=lambda item: item[1]), sum(chosen.values())
    return name if count == total else f"{name} ({count}/{total})"


def _tied(cases: list[dict]) -> Iterator[str]:
    """Return what is left of the ratios without the columns where ``lime`` sends a wrong value."""
    lines = [
        f"| {case['case']} | {case['bandwidth']} | {', '.join(case['misplaced'])} | "
        + " | ".join(
            f"{_ratio(f['ratio']['lime'])} | {_ratio(f['ratio_rest']['lime'])}"
            for f in case["calls"].values()
        )
        + " |"
        for case in cases
        if case["misplaced"]
    ]
    if lines:
        head = "| case | ν/√d | left out | 256: all | rest | 1,024: all | rest | 4,096: all | rest |"
        yield (
            "Columns with a bin without width, where `lime` sends 0 to the model instead of the value there, "
            "left out of both sums of squares:"
        )
        yield "\n".join([head, "|---" * 9 + "|", *lines])


def _truths(cases: list[dict]) -> str:
    """How far the truth may be off, beside the smallest error that is compared with it."""
    shares = [
        case["truth"]["squared_error"] / min(f["mse"]["limes"] for f in case["calls"].values())
        for case in cases
        if not case["truth"]["exact"]
    ]
    exact = sum(case["truth"]["exact"] for case in cases)
    result = f"The truth is exact in {exact} of {len(cases)} lines"
    if not shares:
        return result + "."
    return (
        f"{result}; in the others its squared error is at most {max(shares):.2f} (median "
        f"{np.median(shares):.3f}) of limes's own at 4,096 calls, which it makes look larger by as much."
    )
