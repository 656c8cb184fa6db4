"""A table of what was measured, for its page."""

from __future__ import annotations


def text(result: dict) -> str:
    """Markdown."""
    head = (
        "| table, columns | rows | letters with the reasons of contributions | reasons against the outcome "
        "| ranks of contributions | of LIME's coefficients | joint law and enumeration apart "
        "| warnings outside LIME's view: print, page, report | in it |"
    )
    return "\n\n".join(
        [
            f"Machine: {result['machine']}. {result['background']} rows of the background are enumerated; "
            f"letters have {result['reasons']} reasons.",
            "\n".join([head, "|---" * 9 + "|", *map(_line, result["cases"])]),
        ]
    )


def _line(case: dict) -> str:
    others = ", ".join(str(number) for number in case["other warnings"].values())
    return (
        f"| {case['table']}, {case['columns']} | {case['rows']} | {case['same reasons'] / case['rows']:.1%} "
        f"| {case['reasons against']} of {case['reasons']:,} | {case['ranks of contributions']:.3f} "
        f"| {case['ranks of coefficients']:.2f} | {case['joint law apart']:.0e} of the largest | {others} "
        f"| {case['warnings of coefficients']:,} |"
    )
