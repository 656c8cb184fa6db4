"""``limes app MODEL TABLE``: a local page on which a row's values are moved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limes._cli.files import (
    Background,
    Bins,
    Drop,
    Exclude,
    Law,
    Trust,
    TrustPickle,
    load_model,
    output_of,
    parse_bins,
    read_table,
    select_features,
    table_explainer,
)
from limes._explanation.wording import one_line
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limes._app.desk import Desk


def what_if(
    model: Annotated[Path, typer.Argument(help="A fitted model, as for explain.")],
    table: Annotated[Path, typer.Argument(help="A table, .csv or .parquet: the background, and the rows.")],
    *,
    row: Annotated[int, typer.Option(min=0, help="Which row to start from, from 0.")] = 0,
    ids: Annotated[
        str | None, typer.Option("--id", help="A column with the rows' names, by which they are searched.")
    ] = None,
    output: Annotated[str | None, typer.Option(help="margin, probability, or a class label.")] = None,
    drop: Drop = None,
    background: Background = None,
    bins: Bins = "quartile",
    law: Law = "truncnorm",
    bandwidth: Annotated[float | None, typer.Option(help="Default: 0.75 √(number of columns).")] = None,
    weights: Annotated[str, typer.Option(help="bins or euclidean.")] = "bins",
    method: Annotated[str, typer.Option(help="auto, exact or sampled.")] = "auto",
    max_calls: Annotated[int | None, typer.Option(help="As for explain.")] = None,
    facts: Annotated[int, typer.Option(min=1, help="Most facts of the short rule.")] = 4,
    exclude: Exclude = None,
    seed: Annotated[int, typer.Option(help="Seed of the sampler.")] = 0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    trust: Trust = None,
    trust_pickle: TrustPickle = False,
) -> None:
    """Serve a page on this machine: move a row's values, see prediction and explanation change.

    The page is served to this machine alone, at an address that holds a secret; Ctrl-C ends it.
    """
    from limes._app.server import serve

    frame = read_table(table)
    names = _names(frame, ids)
    fitted = load_model(model, trust=trust or [], trust_pickle=trust_pickle)
    dropped = [*(drop or []), *([] if ids is None else [ids])]
    rows = select_features(frame, fitted, dropped)
    learnt = rows if background is None else _background(background, fitted, dropped)
    options = {"output": output_of(output, fitted), "bins": parse_bins(bins), "method": method, "rng": seed}
    of_values = {"law": law, "weights": weights, "bandwidth": bandwidth, "max_calls": max_calls}
    of_rules = {"k": facts, "exclude": exclude or []}
    desk = _desk(fitted, learnt, (options, of_values, of_rules), rows, names, row)
    serve(desk, port=port, browser=browser, announce=_announce)


def _background(path: Path, model: Any, dropped: Sequence[str]) -> Any:
    """Read the background, which need not have the columns that are dropped."""
    table = read_table(path)
    return select_features(table, model, [name for name in dropped if name in table.columns])


def _names(frame: Any, column: str | None) -> list[str]:
    """Return names of the rows: the cells of a column, else their positions."""
    if column is None:
        return [*map(str, range(len(frame)))]
    if column not in frame.columns:
        raise InputError(f"--id {column}: no such column; there are {frame.columns}")
    return [one_line(str(name)) for name in frame[column].to_list()]


def _desk(
    model: Any,
    background: Any,
    options: tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]],
    rows: Any,
    ids: Sequence[str],
    start: int,
) -> Desk:
    """Return the desk; it has explained the row to start from, so that errors come before the page."""
    import narwhals as nw

    from limes._app.desk import Desk

    shared, of_values, of_rules = options
    columns = len(nw.from_native(rows, eager_only=True).columns)

    def rules(output: str | int | None) -> Any:
        chosen = {
            "output": shared["output"] if output is None else output,
            "bins": shared["bins"] or "quartile",  # slopes have no conditions
            "k": min(of_rules["k"], columns),
        }
        return table_explainer(model, background, {**shared, **of_rules, **chosen})

    desk = Desk(table_explainer(model, background, {**shared, **of_values}), rows, ids, rules, start)
    desk.table()
    return desk


def _announce(address: str) -> None:
    typer.echo(
        f"limes app: {address}\nCtrl-C ends it. The address is secret: it opens the model and the table."
    )
