"""``limes explain-table MODEL IN OUT``: every row of a table in files, however long."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limes.cli_files import Trust, TrustPickle, bins_of, features, load_model, read_table

if TYPE_CHECKING:
    from limes.explainers.tabular import TabularExplainer
    from limes.scale.sources import Source
    from limes.scale.tables import Summary

# Rows that bins are learnt from, where no background is given: from this many up to twice as many
_BACKGROUND = 10_000
# Columns that the summary shows, the largest first
_SHOWN = 10
_STOPPED = 130


def explain_table(
    model: Annotated[Path, typer.Argument(help="A fitted model, as for explain.")],
    table: Annotated[str, typer.Argument(metavar="IN", help="A .parquet or .csv file, folder or pattern.")],
    out: Annotated[Path, typer.Argument(help="A folder, new or of the same command: it goes on from there.")],
    *,
    background: Annotated[
        Path | None, typer.Option(help="Table that bins are learnt from; else rows of IN, evenly taken.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="The features: a,b,c. Default: those the model names, else all but keys."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A column to carry along beside the row's number; may be repeated."),
    ] = None,
    layout: Annotated[str, typer.Option(help="wide: a line a row. long: a line a row and column.")] = "wide",
    engine: Annotated[str, typer.Option(help="What carries the work: local, dask or spark.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a cluster that is there; else workers are started here.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that are started here.")] = 1,
    rows_per_part: Annotated[int, typer.Option(min=1, help="Rows of a file of OUT.")] = 50_000,
    output: Annotated[str | None, typer.Option(help="margin, probability, or a class label.")] = None,
    bins: Annotated[str, typer.Option(help="As for explain.")] = "quartile",
    bandwidth: Annotated[float | None, typer.Option(help="Default: 0.75 √(number of columns).")] = None,
    weights: Annotated[str, typer.Option(help="bins or euclidean.")] = "bins",
    method: Annotated[str, typer.Option(help="auto, exact or sampled.")] = "auto",
    max_errors: Annotated[
        float, typer.Option(min=0, max=1, help="Stop when a larger share of the rows has no explanation.")
    ] = 1.0,
    max_calls: Annotated[int, typer.Option(help="As for explain.")] = 4096,
    seed: Annotated[int, typer.Option(help="Seed of the sampler.")] = 0,
    trust: Trust = None,
    trust_pickle: TrustPickle = False,
) -> None:
    """Explain every row of a table into Parquet files; the same command goes on where it stopped."""
    from limes._optional import require
    from limes.explainers.tabular import TabularExplainer

    require("pyarrow", "limes explain-table")
    from limes.scale.engines import Cluster
    from limes.scale.sources import Source
    from limes.scale.tables import explain_files

    source = Source.of(table)
    fitted = load_model(model, trust=trust or [], trust_pickle=trust_pickle)
    named = _named(columns, fitted, source, key or [])
    learnt = _background(background, source, named)
    options: dict[str, Any] = {"output": output, "bins": bins_of(bins), "bandwidth": bandwidth}
    options |= {"weights": weights, "method": method, "max_calls": max_calls, "rng": seed}
    explainer = TabularExplainer(fitted, learnt, **options)
    run = _run(model, background, named, options)
    try:
        found = explain_files(
            source,
            explainer,
            out,
            run=run,
            layout=layout,
            keys=key or [],
            rows_per_part=rows_per_part,
            engine=engine,
            cluster=Cluster(workers, scheduler),
            max_errors=max_errors,
        )
    except KeyboardInterrupt:
        typer.secho("limes: stopped; the same command goes on from the parts that are there", err=True)
        raise typer.Exit(_STOPPED) from None
    _say(found, explainer, out)


def _named(columns: str | None, model: Any, source: Source, keys: list[str]) -> list[str]:
    from limes.scale.chunks import check_names

    if columns is not None:
        named = [name.strip() for name in columns.split(",")]
    else:
        others = [name for name in source.schema.names if name not in keys]
        named = [str(name) for name in getattr(model, "feature_names_in_", others)]
    check_names("the table", source.schema.names, named)
    return named


def _background(path: Path | None, source: Source, columns: list[str]) -> Any:
    """A table that bins are learnt from, of the library that models are most often fitted with."""
    if path is not None:
        table = read_table(path)
        return features(table.select(columns) if set(columns) <= set(table.columns) else table, None, [])
    from limes.scale.sources import decimated

    found = decimated(source, columns, _BACKGROUND)
    return found.to_pandas()


def _run(model: Path, background: Path | None, columns: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """What makes the explanations what they are, for the output folder to remember."""
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


def _say(found: Summary, explainer: TabularExplainer, out: Path) -> None:
    import rich
    from rich.table import Table

    about = "" if found.counted else "about "
    typer.echo(
        f"{out}: {found.rows:,} rows, {explainer.method}; {about}{found.distinct:,} distinct explanations"
    )
    lines = Table("column", "mean |β|")
    largest = sorted(found.mean_size.items(), key=lambda pair: -pair[1])
    for name, size in largest[:_SHOWN]:
        lines.add_row(name, f"{size:.4g}")
    if found.distinct:
        rich.print(lines)
    if found.resumed:
        typer.echo(f"{found.resumed:,} rows had been done before")
    if found.errors:
        typer.secho(f"{found.errors:,} rows have no explanation; the first: {found.reason}", fg="yellow")
    if found.repeated:
        typer.secho(found.repeated, fg="yellow")
