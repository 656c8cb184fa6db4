"""Tables of what was measured, for its page."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.few_calls.reviews import BUDGETS as OF_REVIEWS
from benchmarks.few_calls.run import BUDGETS


def text(result: dict) -> str:
    """Markdown."""
    lines, before = result["games"], _before(result)
    ratios = _ratios(lines, before)
    covered, largest = (np.mean([line["limes"][name] for line in lines]) for name in ("covered", "largest"))
    head = (
        f"Machine: {result['machine']}. {len(lines)} cases; squared errors over squared Shapley values. "
        f"limes / the better of LASSO and limes before: {np.median(ratios):.2f} in the median (goal 0.8), "
        f"{max(ratios):.2f} at most (goal 1.1), above 1.1 in {np.mean(np.array(ratios) > 1.1):.0%}.\n"
        f"95 % intervals that cover: {covered:.1%} of all parts, {largest:.1%} of the five largest."
    )
    return "\n\n".join([head, _of_games(lines, before), _of_reviews(result), _each(lines, before)])


def _before(result: dict) -> dict[tuple[str, int], dict]:
    return {(line["game"], line["calls"]): line["limes"] for line in result["before"]["games"]}


def _ratios(lines: list[dict], before: dict) -> list[float]:
    return [
        line["limes"]["error"] / min(line["lasso"]["error"], before[line["game"], line["calls"]]["error"])
        for line in lines
    ]


def _of_games(lines: list[dict], before: dict) -> str:
    rows = [
        "| game | calls | squared error (median): limes; LASSO; before; leave one out | ranks of ablations "
        "(mean): the same | top-3 drop (mean): the same | covered; five largest |",
        "|---|---|---|---|---|---|",
    ]
    for kind in dict.fromkeys(line["game"].split(",")[0] for line in lines):
        for calls in BUDGETS:
            its = [line for line in lines if line["game"].startswith(kind) and line["calls"] == calls]
            methods = [
                [line["limes"] for line in its],
                [line["lasso"] for line in its],
                [before[line["game"], calls] for line in its],
                [line["one out"] for line in its if line["one out"]],
            ]
            cells = [
                "; ".join(f"{mean([one[name] for one in each]):.3f}" if each else "-" for each in methods)
                for name, mean in (("error", np.median), ("ranks", np.mean), ("drop", np.mean))
            ]
            shares = [np.mean([line["limes"][name] for line in its]) for name in ("covered", "largest")]
            rows.append(
                f"| {kind} | {calls} | {' | '.join(cells)} | {'; '.join(f'{s:.1%}' for s in shares)} |"
            )
    return "\n".join(rows)


def _of_reviews(result: dict) -> str:
    rows = [
        "| reviews | calls | squared error of sentences (mean): limes; before | of words | covered "
        "sentences; words |",
        "|---|---|---|---|---|",
    ]
    for model in dict.fromkeys(line["model"] for line in result["reviews"]):
        for calls in OF_REVIEWS:
            now, then = (
                [line for line in its["reviews"] if (line["model"], line["calls"]) == (model, calls)]
                for its in (result, result["before"])
            )

            def mean(name: str, lines: Any) -> float:
                return float(np.mean([line[name] for line in lines]))

            errors = [
                f"{mean(name, now):.3f}; {mean(name, then):.3f}"
                for name in ("error of sentences", "error of words")
            ]
            covered = f"{mean('covered sentences', now):.1%}; {mean('covered words', now):.1%}"
            rows.append(f"| {len(now)}, {model} | {calls} | {' | '.join(errors)} | {covered} |")
    return "\n".join(rows)


def _each(lines: list[dict], before: dict) -> str:
    rows = ["| case | calls | limes | LASSO | before | ratio |", "|---|---|---|---|---|---|"]
    for line, ratio in zip(lines, _ratios(lines, before), strict=True):
        then = before[line["game"], line["calls"]]["error"]
        rows.append(
            f"| {line['game']} | {line['calls']} | {line['limes']['error']:.3f} | "
            f"{line['lasso']['error']:.3f} | {then:.3f} | {ratio:.2f} |"
        )
    return "\n".join(rows)
