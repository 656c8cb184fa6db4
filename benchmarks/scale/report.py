"""Tables of what was measured, for its page."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.scale.cases import FOREST, SMALL
from benchmarks.scale.engines import DIRECT, ENGINES
from benchmarks.scale.run import FEW, GROWTH, MANY

# What an engine may add to the direct call
GOALS = {"dask": 0.15, "spark": 0.40}

Runs = list[dict]


def text(result: dict) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    runs = result["runs"]
    blocks = [f"Machine: {result['machine']}. {versions}. Medians of {result['rounds']} rounds."]
    for model in dict.fromkeys(run["model"] for run in runs if run["rows"] == MANY and run["model"] != SMALL):
        blocks += [f"**{model}, {MANY:,} rows**", "\n".join(_engines(runs, model))]
    blocks += ["**Growth**", "\n".join(_growth(runs))]
    if result["absent"]:
        blocks.append(f"Absent: {'; '.join(f'{who} ({why})' for who, why in result['absent'].items())}.")
    return "\n\n".join(blocks)


def _engines(runs: Runs, model: str) -> Iterator[str]:
    yield (
        "| | seconds | of them start | rows/s | added to the direct call | without start | goal | "
        "MB: driver | a worker | Java | all |"
    )
    yield "|---" * 11 + "|"
    direct = _of(runs, model, DIRECT, MANY)
    for engine in (DIRECT, *ENGINES):
        measured = _of(runs, model, engine, MANY)
        if measured:
            yield _line(engine, measured, direct, {who: _start(runs, who) for who in (engine, DIRECT)})


def _line(engine: str, measured: Runs, direct: Runs, starts: dict[str, float]) -> str:
    seconds, rows, start = _seconds(measured), measured[0]["rows"], starts[engine]
    added = alone = None
    if direct and engine != DIRECT:
        # within a round, then the median over rounds
        pairs = [(m["seconds"], d["seconds"]) for m, d in zip(measured, direct, strict=False)]
        added = median(m / d for m, d in pairs) - 1
        alone = median((m - start) / (d - starts[DIRECT]) for m, d in pairs) - 1
    sizes = {kind: median(run["megabytes"][kind] for run in measured) for kind in measured[0]["megabytes"]}
    megabytes = " | ".join(f"{size:.0f}" if size else "" for size in sizes.values())
    return (
        f"| {engine} | {seconds:.1f} | {start:.1f} | {rows / seconds:,.0f} | {_number(added, '+.0%')} "
        f"| {_number(alone, '+.0%')} | {_number(GOALS.get(engine), '.0%')} | {megabytes} |"
    )


def _growth(runs: Runs) -> Iterator[str]:
    yield "| model | engine | rows | seconds | µs a further row | distinct explanations | bytes a row |"
    yield "|---" * 7 + "|"
    for model, counts in GROWTH.items():
        for engine in (DIRECT, *ENGINES):
            sizes = [_of(runs, model, engine, rows) for rows in sorted({*counts, MANY})]
            measured = [runs_of_size for runs_of_size in sizes if runs_of_size]
            for runs_of_size, fewer in zip(measured, [[], *measured], strict=False):
                yield _growing(runs_of_size, fewer)


def _growing(measured: Runs, fewer: Runs) -> str:
    """A line; ``fewer`` are runs of the size before, which take the start away."""
    first, seconds = measured[0], _seconds(measured)
    further = None
    if fewer:
        further = 1e6 * (seconds - _seconds(fewer)) / (first["rows"] - fewer[0]["rows"])
    return (
        f"| {first['model']} | {first['engine']} | {first['rows']:,} | {seconds:.2f} "
        f"| {_number(further, '.1f')} | {_number(first.get('distinct'), ',')} "
        f"| {_number(first.get('bytes_a_row'), '.0f')} |"
    )


def _of(runs: Runs, model: str, engine: str, rows: int) -> Runs:
    return [run for run in runs if (run["model"], run["engine"], run["rows"]) == (model, engine, rows)]


def _seconds(runs: Runs) -> float:
    return median(run["seconds"] for run in runs)


def _start(runs: Runs, engine: str) -> float:
    """Return what a few rows take, 0 where that was not measured."""
    few = _of(runs, FOREST, engine, FEW)
    return _seconds(few) if few else 0.0


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
