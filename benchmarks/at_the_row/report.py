"""Tables of what was measured, for its page."""

from __future__ import annotations

_WARNED = "| table, model | misleading rows | of them with a warning | fine rows | of them with a warning |"
_DESIGNS = (
    "| table, model | suggested | median miss: default | suggested | on the other side: default | suggested |"
)


def text(result: dict) -> str:
    """Markdown."""
    cases = result["cases"]
    classes = [case for case in cases if "misleading" in case]
    worse = sum(_is_worse(case) for case in cases)
    return "\n\n".join(
        [
            f"Machine: {result['machine']}. {result['rows']} test rows a case.",
            "\n".join([_WARNED, "|---" * 5 + "|", *map(_warned, classes)]),
            f"Designs are suggested by {result['by']} rows of the training set. Suggestions that miss test "
            f"rows more than the default: {worse} of {len(cases)}.",
            "\n".join([_DESIGNS, "|---" * 6 + "|", *map(_design, cases)]),
        ]
    )


def _is_worse(case: dict) -> bool:
    default, suggested = case["default"], case["suggested"]
    return suggested["miss"] > default["miss"] * (1 + 1e-9) or suggested["other side"] > default["other side"]


def _warned(case: dict) -> str:
    names = ("misleading", "misleading and warned", "fine", "fine and warned")
    return f"| {case['case']} | {' | '.join(f'{case[name]:.1%}' for name in names)} |"


def _design(case: dict) -> str:
    default, suggested = case["default"], case["suggested"]
    misses = f"{default['miss']:.4g} | {suggested['miss']:.4g}"
    sides = f"{default['other side']:.1%} | {suggested['other side']:.1%}"
    return f"| {case['case']} | {case['suggestion']} | {misses} | {sides} |"
