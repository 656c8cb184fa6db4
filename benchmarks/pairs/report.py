"""The page of ``benchmarks.pairs``."""

from __future__ import annotations

from typing import Any


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    lines = [
        f"Machine: {result['machine']}; one thread, CPU time, milliseconds a row, medians of alternating "
        f"calls. {versions}.",
        "",
        "Pairs of all of 20 columns, with the contributions; `between`: from one row to another.",
        "",
        f"| model | pairs, one row: limes | shap | the model's own | ratio | limes, {result['batch']} rows "
        "| `compiled().between` | `explainer.between` |",
        "|---" * 8 + "|",
    ]
    for case in result["cases"]:
        one = case["one row"]
        fastest = min(its for name, its in one.items() if name != "limes")
        cells = [
            f"{one['limes']:.3g}",
            f"{one['shap']:.3g}",
            f"{one['library']:.3g}" if "library" in one else "–",
            f"{fastest / one['limes']:.0f}",
            f"{case['batch']:.3g}",
            f"{case['between']['compiled']:.2g}",
            f"{case['between']['call']:.2g}",
        ]
        lines.append(f"| {case['case']} | {' | '.join(cells)} |")
    lines += [
        "",
        "Groups: a forest of 100 trees of depth 8, of five columns and a category of 100 levels; "
        "contributions by `compiled()`. The forest of the codes is another one than that of the dummies.",
        "",
        "| the category is | one row | 200 rows, each |",
        "|---" * 3 + "|",
    ]
    texts = {"column": "one column", "dummies": "100 columns", "group": "100 columns in one group"}
    for kind, name in texts.items():
        its = result["groups"]
        lines.append(f"| {name} | {its['one row'][kind]:.3g} | {its['batch'][kind]:.3g} |")
    return "\n".join(lines)
