"""Tables of what was measured, for its page."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.text.agreement import FALSE_ALARM
from benchmarks.text.cases import MARGIN

# Seconds of exact explanations of normalised TF-IDF, by words; the share of lime's time for a sampled one
GOALS = {50: 0.005, 200: 0.1}
SHARE = 0.1


def text(result: dict) -> str:
    """Markdown."""
    return "\n\n".join(
        [
            f"Machine: {result['machine']}. Medians of {result['rounds']} rounds.",
            "\n".join(_speed(result["exact"])),
            *_sampled(result["sampled"]),
            _batch(result["batch"]),
            "## Agreement of texts with `lime`",
            *_agreement(result["agreement"]),
        ]
    )


def _speed(rows: list[dict]) -> Iterator[str]:
    yield "| model | words | limes, exact: ms | CPU ms | `lime`: s | CPU s | times limes | goal, ms | |"
    yield "|---" * 9 + "|"
    for row in rows:
        ours, theirs = row["seconds"]["limes"], row["seconds"]["lime"]
        goal = GOALS.get(row["words"]) if row["model"] == MARGIN else None
        yield (
            f"| {row['model']} | {row['words']} | {1e3 * ours['wall']:.1f} | {1e3 * ours['cpu']:.1f} "
            f"| {theirs['wall']:.2f} | {theirs['cpu']:.2f} | {theirs['wall'] / ours['wall']:.0f} "
            f"| {'' if goal is None else f'{1e3 * goal:g}'} | {_verdict(ours, goal)} |"
        )


def _verdict(ours: dict[str, float], goal: float | None) -> str:
    if goal is None:
        return ""
    if ours["wall"] <= goal:
        return "reached"
    return "reached in CPU time" if ours["cpu"] <= goal else "**missed**"


def _sampled(result: dict) -> Iterator[str]:
    ours, theirs = result["seconds"]["limes"], result["seconds"]["lime"]
    share = ours["wall"] / theirs["wall"]
    yield (
        f"**A probability, sampled** (TF-IDF + logistic, {result['words']} words): root mean square error of "
        f"the coefficients; that of the truth is {result['truth_error']:.1e}."
    )
    head = [f"{int(calls):,}" for calls in result["error"] if calls != "lime"]
    yield "\n".join(
        [
            f"| `lime`, 5,000 calls | limes, {' | '.join(head)} |",
            "|---" * (1 + len(head)) + "|",
            "| " + " | ".join(f"{error:.2e}" for error in result["error"].values()) + " |",
        ]
    )
    verdict = "reached" if share <= SHARE else "**missed**"
    yield (
        f"limes is as accurate with {result['calls']:,} calls, and takes {1e3 * ours['wall']:.0f} ms "
        f"({1e3 * ours['cpu']:.0f} ms of CPU) to `lime`'s {1e3 * theirs['wall']:.0f} ms "
        f"({1e3 * theirs['cpu']:.0f}): {share:.1%} of its time (goal: {SHARE:.0%}), {verdict}."
    )


def _batch(result: dict) -> str:
    middle, most = result["words"]
    return (
        f"**{result['texts']:,} reviews in one call**, exact (TF-IDF + logistic margin; {middle} distinct "
        f"words in the median, {most} at most): {result['seconds']:.1f} s."
    )


def _agreement(result: dict) -> Iterator[str]:
    least, middle, most = result["words"]
    count = sum(m["coefficients"] for m in result["models"].values())
    yield (
        f"{result['texts']} reviews of {least} to {most} distinct words (median {middle}), {result['runs']} "
        "runs of `lime` each, at its defaults but for keeping all words. The exact values, with `lime`'s "
        "penalty and its 5,000 rows counted in, against the mean of the runs, in standard errors of that "
        "mean (one ten-thousandth of the largest coefficient at least, as the formula for the penalty is an "
        f"approximation), as normal deviates. All {count:,} coefficients and intercepts lie within "
        f"|z| < {result['limit']:.2f} with a probability of {1 - FALSE_ALARM:.0%}, if limes is right."
    )
    lines = [
        f"| {name} | {m['coefficients']:,} | {m['inside_95']:.1%} | {m['spread']:.2f} | {m['largest']:.2f} "
        f"| {'yes' if m['largest'] < result['limit'] else '**no**'} |"
        for name, m in result["models"].items()
    ]
    head = (
        "| model | coefficients | in 95 % intervals | spread of z (1) | largest \\|z\\| | within the limit |"
    )
    yield "\n".join([head, "|---" * 6 + "|", *lines])
