"""``limes explain-table MODEL IN OUT``: every row of a table in files of any length."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limes._cli.files import (
    Bandwidth,
    Bins,
    Exclude,
    FittedModel,
    Law,
    MaxCalls,
    Method,
    Output,
    Seed,
    Sparse,
    Trust,
    TrustPickle,
    Weights,
    check_sparse,
    features_of,
    load_model,
    output_of,
    parse_bins,
    read_table,
    select_features,
    table_explainer,
)
from limes._cli.watching import rows_are_supervised
from limes._explanation.wording import one_line
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes.scale._sources import Source
    from limes.scale._tables import RunSummary

# Rows from which bins are learnt if no background is passed: from this many up to twice as many
_BACKGROUND = 10_000
# Columns that the summary shows, the largest first
_SHOWN = 10
_STOPPED, _SOME_ERRORS, _WRONG = 130, 3, 1


def explain_table(
    model: FittedModel,
    table: Annotated[str, typer.Argument(metavar="IN", help="A .parquet or .csv file, folder or pattern.")],
    out: Annotated[str, typer.Argument(help="A folder: new, or of the same command, which resumes.")],
    *,
    background: Annotated[
        Path | None, typer.Option(help="Table from which bins are learnt; default: evenly spaced rows of IN.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="The features: a,b,c. Default: those the model names, else all but keys."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column that is not a feature; may be repeated.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A column to copy beside the row's number; may be repeated."),
    ] = None,
    layout: Annotated[str, typer.Option(help="wide: a line a row. long: a line a row and column.")] = "wide",
    engine: Annotated[str, typer.Option(help="local, dask or spark.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a running cluster; default: workers on this machine.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    rows_per_part: Annotated[int, typer.Option(min=1, help="Rows of a file of OUT.")] = 50_000,
    output: Output = None,
    bins: Bins = "quartile",
    law: Law = "truncnorm",
    bandwidth: Bandwidth = None,
    weights: Weights = "bins",
    method: Method = "auto",
    max_errors: Annotated[
        float, typer.Option(min=0, max=1, help="Stop if a larger share of the rows has no explanation.")
    ] = 0.5,
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds that a part may take; then its rows that hang are errors."),
    ] = None,
    max_calls: MaxCalls = None,
    sparse: Sparse = None,
    exclude: Exclude = None,
    seed: Seed = 0,
    trust: Trust = None,
    trust_pickle: TrustPickle = False,
) -> None:
    """Explain every row of a table into Parquet files; the same command resumes an interrupted run.

    Exit codes: 0 every row is explained, 3 some rows have errors, 1 the run failed, 130 Ctrl-C.
    """
    from limes._checks import require

    require("pyarrow", "limes explain-table", package="'limes[scale]'")
    from limes.scale._sources import Source
    from limes.scale._tables import Cluster, explain_files

    if scheduler is not None and engine == "local":
        raise InputError("--scheduler goes with --engine dask or --engine spark")
    source = Source.of(table)
    fitted = load_model(model, trust=trust, trust_pickle=trust_pickle)
    names = _features(columns, fitted, source, [*(key or []), *(drop or [])])
    rows = _background(background, source, names)
    options: dict[str, Any] = {
        "output": output_of(output, fitted),
        "bins": parse_bins(bins),
        "method": method,
        "rng": seed,
    }
    if sparse is None:
        options |= {"bandwidth": bandwidth, "law": law, "weights": weights, "max_calls": max_calls}
    else:
        check_sparse((bandwidth, law, weights, max_calls) != (None, "truncnorm", "bins", None))
        options |= {"k": sparse, "exclude": exclude or []}
    explainer = table_explainer(fitted, rows, options)
    run = _run(model, background, names, options)
    is_one = engine == "local" and workers == 1 and timeout is None
    cluster = Cluster(workers, scheduler, timeout, supervised=is_one and rows_are_supervised())
    try:
        summary = explain_files(
            source,
            explainer,
            out,
            run=run,
            layout=layout,
            keys=key or [],
            rows_per_part=rows_per_part,
            engine=engine,
            cluster=cluster,
            max_errors=max_errors,
        )
    except KeyboardInterrupt:
        typer.secho("limes: stopped; the same command resumes from the finished parts", err=True)
        raise typer.Exit(_STOPPED) from None
    _print(summary, explainer, out)
    if summary.errors:
        raise typer.Exit(_SOME_ERRORS)


def verify(
    out: Annotated[str, typer.Argument(help="A folder of explain-table.")],
    *,
    table: Annotated[str | None, typer.Option("--input", help="The table that was explained.")] = None,
) -> None:
    """Check a folder of explanations: its parts, their checksums and rows, and the input if it is passed.

    Exit codes: 0 if everything is as it was written, 1 if not.
    """
    from limes._checks import require

    require("pyarrow", "limes verify", package="'limes[scale]'")
    from limes.scale._parts import verify as check
    from limes.scale._sources import Source

    result = check(out, None if table is None else Source.of(table))
    for problem in result.problems:
        typer.secho(one_line(problem), fg="red", err=True)
    typer.echo(f"{out}: {result.parts:,} parts, {result.rows:,} rows, {result.errors:,} with errors")
    if result.problems:
        raise typer.Exit(_WRONG)


def _features(columns: str | None, model: Any, source: Source, others: list[str]) -> list[str]:
    """Return the features: those that are named, those of the model, or all columns but the others."""
    from limes.scale._frames import check_columns

    check_columns("the table", source.schema.names, others)
    if columns is not None:
        names = [name.strip() for name in columns.split(",")]
    else:
        rest = [name for name in source.schema.names if name not in others]
        names = [*features_of(model)] or rest
    check_columns("the table", source.schema.names, names)
    return names


def _background(path: Path | None, source: Source, columns: list[str]) -> Any:
    """Read or sample the table from which bins are learnt, as the library of most models: pandas."""
    if path is not None:
        table = read_table(path)
        return select_features(
            table.select(columns) if set(columns) <= set(table.columns) else table, None, []
        )
    from limes._checks import require
    from limes.scale._sources import decimated

    require("pandas", "limes explain-table without --background", package="'limes[pandas]'")
    return decimated(source, columns, _BACKGROUND).to_pandas()


def _run(model: Path, background: Path | None, columns: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """The inputs that determine the explanations: the output folder compares a later run with them."""
    from limes import __version__

    return {
        "limes": __version__,
        "model": _hash(model),
        "background": "rows of the table" if background is None else _hash(background),
        "columns": columns,
        "options": options,
    }


def _hash(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16]


def _print(summary: RunSummary, explainer: Any, out: str) -> None:
    import rich
    from rich.table import Table
    from rich.text import Text

    about = "" if summary.counted else "about "
    typer.echo(
        f"{out}: {summary.rows:,} rows, {explainer.method}; {about}{summary.distinct:,} distinct explanations"
    )
    lines = Table("column", "mean |β|")
    largest = sorted(summary.mean_size.items(), key=lambda pair: -pair[1])
    for name, size in largest[:_SHOWN]:
        lines.add_row(Text(one_line(name)), f"{size:.4g}")  # text: a name in brackets is no markup
    if summary.distinct:
        rich.print(lines)
    for text in getattr(explainer, "model_warnings", ()):
        typer.secho(one_line(text), fg="yellow")
    if summary.resumed:
        typer.echo(f"{summary.resumed:,} rows were finished before")
    if summary.errors:
        rows = "1 row has" if summary.errors == 1 else f"{summary.errors:,} rows have"
        typer.secho(f"{rows} no explanation; the first error: {one_line(summary.reason)}", fg="yellow")
    if summary.repeated:
        typer.secho(one_line(summary.repeated), fg="yellow")
