"""Tables of what was measured, for its page."""

from __future__ import annotations

import os

# Of one split and row: two products and two sums on the way down and up, and three of each at its leaves.
OPERATIONS = 10
# Bytes of a split's table of four cells, read once for a block of 64 rows.
BYTES, BLOCK = 4 * 4 * 8 + 16, 64


def text(result: dict) -> str:
    """Markdown."""
    lines = [
        "| case | | ms, now | numba | times faster | ms of all threads, now | numba | times less |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in result["cases"]:
        for what, f in case["figures"].items():
            pairs = zip(f["now"], f["numba"], strict=True)
            cells = [f"{1e3 * now:.3g} | {1e3 * before:.3g} | {before / now:.2f}" for now, before in pairs]
            lines.append(f"| {case['case']} | {what} | {' | '.join(cells)} |")
    blocks = [
        f"Machine: {result['machine']}, load {result['load_at_the_end']:.1f} at the end. Medians of "
        f"{result['rounds']} rounds; in turn. Batches have 1,000 rows; times are a row's.",
        "\n".join(lines),
    ]
    if "first" in result:
        blocks += [
            "Seconds in a fresh process without a cache, construction included:",
            _first(result["first"]),
        ]
    limits = [_limit(case, result) for case in result["cases"] if "splits" in case]
    return "\n\n".join([*blocks, *([_measured(result), "\n".join([*_LIMITS, *limits])] if limits else [])])


def _first(first: dict) -> str:
    lines = [
        "| | import, now | numba | first answer, now | numba | later answer, now | numba |",
        "|---|---|---|---|---|---|---|",
    ]
    for task, versions in first.items():
        pairs = [
            f"{versions[v][what]:.2f}" for what in ("import", "first", "again") for v in ("now", "numba")
        ]
        lines.append(f"| {task} | {' | '.join(pairs)} |")
    return "\n".join(lines)


_LIMITS = (
    "| case | ms a row, measured | by arithmetic | by memory |",
    "|---|---|---|---|",
)


def _measured(result: dict) -> str:
    return (
        f"What this machine would allow at most: a thread reads {result['bandwidth_gb_s']:.1f} GB/s and does "
        f"{result['gflop_s']:.1f} GFLOP/s in BLAS; {OPERATIONS} operations a split and row, and tables read "
        f"once for {BLOCK} rows, on all {os.cpu_count()} cores:"
    )


def _limit(case: dict, result: dict) -> str:
    cores = os.cpu_count() or 1
    arithmetic = OPERATIONS * case["splits"] / (1e9 * result["gflop_s"]) / cores
    memory = BYTES * case["splits"] / BLOCK / (1e9 * result["bandwidth_gb_s"])
    measured = case["figures"]["batch"]["now"][0]
    return f"| {case['case']} | {1e3 * measured:.3g} | {1e3 * arithmetic:.3g} | {1e3 * memory:.3g} |"
