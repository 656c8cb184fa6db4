"""Tables of the command line: of large ones the rows that are needed are read; what long runs print.

The background of a table of n rows is every m-th row, the first one included, m being the smallest power of
two that leaves at most 20,000 of them: as in explain-table, and however the file is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from limes._checks import listed, require
from limes._cli import files
from limes._dialects import Dialect
from limes._explanation.wording import cell, count, difference, estimate_text, estimates, one_line
from limes._names import Names
from limes._warnings import CODES
from limes.exceptions import CellError, InputError, ModelError

if TYPE_CHECKING:
    from limes.scale._changes import RowChange
    from limes.scale._sources import Source
    from limes.scale._summary import OutputMeans, RunComparison
    from limes.scale._tables import RunSummary

# Rows of a background: from this many up to twice as many
BACKGROUND = 10_000
# Bytes of a CSV file that is read as a whole, and how many times that a compressed one may hold
_WHOLE, _RATIO = 32 << 20, 8
# Rows of a Parquet file that are decoded at once, and bytes of a column that are read
_BATCH, _BUFFER = 1 << 16, 1 << 18
# Columns that a summary of a long table shows, the largest first
SHOWN_COLUMNS = 10


class TableFile(ABC):
    """A table in a file."""

    columns: Sequence[str]

    @abstractmethod
    def column(self, name: str) -> Iterator[Any]:
        """The cells of a column, in order; of a CSV file texts where it was opened so."""

    def with_numbers(self, names: Sequence[str], model: Any) -> TableFile:  # noqa: ARG002 - typed as they are
        """The table whose columns of numbers have numbers, and nothing in cells that do not."""
        return self

    @abstractmethod
    def read(self, names: Sequence[str], rows: Sequence[int], *, sample: bool) -> tuple[Any, Any]:
        """These columns of some rows, and of the background if it is wanted, as native frames."""


def open_table(path: Path, types: files.ColumnTypes | None = None, ids: str | None = None) -> TableFile:
    """Open a table, of which a large one is not read yet, or raise InputError.

    Cells of a CSV file's column ``ids`` are texts, as they are written there.
    """
    types = types or files.ColumnTypes()
    files.check_exists(path)
    texts = (*types.texts, *([] if ids is None else [ids]))
    if find_spec("pyarrow") is not None:
        if path.name.endswith(".parquet"):
            return _Parquet.of(path, types)
        size = path.stat().st_size * (_RATIO if path.name.endswith(".gz") else 1)
        if path.name.endswith((".csv", ".csv.gz")) and size > _WHOLE:
            table = _Csv(path, types, texts)
            types.check(table.columns)
            files.note_of_guess(path, table.dialect)
            return table
    return _Whole.of(path, types, texts)


def step_of(rows: int) -> int:
    """The distance of a background's rows in a table of this length."""
    step = 1
    while -(-rows // step) > 2 * BACKGROUND:
        step *= 2
    return step


def _check(rows: Sequence[int], count: int) -> None:
    outside = [row for row in rows if not 0 <= row < count]
    if outside:
        raise InputError(f"--row {outside[0]}: the table has {count} rows, counted from 0")


@dataclass(frozen=True)
class _Whole(TableFile):
    path: Path
    frame: Any  # of narwhals
    types: files.ColumnTypes
    faults: Mapping[int, str] = field(default_factory=dict)  # by row, cells that cannot be read, in words

    @classmethod
    def of(cls, path: Path, types: files.ColumnTypes, texts: Sequence[str] = ()) -> TableFile:
        frame = files.read_table(path, texts)
        types.check(frame.columns)
        return cls(path, types.cast(frame), types)

    def column(self, name: str) -> Iterator[Any]:
        yield from self.frame[:, list(self.frame.columns).index(name)].to_list()

    @property
    def columns(self) -> Sequence[str]:  # type: ignore[override]
        return list(self.frame.columns)

    def read(self, names: Sequence[str], rows: Sequence[int], *, sample: bool) -> tuple[Any, Any]:
        columns = [*self.frame.columns]
        frame = self.frame[:, [columns.index(name) for name in names]]
        step = step_of(len(self.frame))
        _check(rows, len(frame))
        for row in rows:
            if row in self.faults:
                raise InputError(f"--row {row} of {self.path} could not be read: {self.faults[row]}")
        chosen = frame[list(rows)].to_native()
        if not sample:
            return chosen, None
        if self.faults:
            good = files.good_rows(self.path, len(frame), self.faults)
            return chosen, frame[[row for row in good if row % step == 0]].to_native()
        return chosen, (frame if step == 1 else frame[::step]).to_native()

    def with_numbers(self, names: Sequence[str], model: Any) -> TableFile:
        frame, faults = files.with_numbers(self.path, self.frame, names, model, self.types)
        return replace(self, frame=frame, faults=faults)


@dataclass(frozen=True)
class _Parquet(TableFile):
    """Read in batches: a row group, which would be read at once, may be the whole table."""

    path: Path
    columns: Sequence[str]
    sizes: Sequence[int]  # of the row groups
    types: files.ColumnTypes

    @classmethod
    def of(cls, path: Path, types: files.ColumnTypes) -> TableFile:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(path) as file:
                schema, footer = file.schema_arrow, file.metadata
                sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path} could not be read with pyarrow: {error}") from error
        if step_of(sum(sizes)) == 1:
            return _Whole.of(path, types)
        # pandas keeps an index as a column
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        names = [name for name in schema.names if name not in index]
        types.check(names)
        return cls(path, names, sizes, types)

    def column(self, name: str) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_BUFFER) as file:
                for batch in file.iter_batches(_BATCH, columns=[name], use_threads=False):
                    yield from batch.column(0).to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{self.path} could not be read with pyarrow: {error}") from error

    def read(self, names: Sequence[str], rows: Sequence[int], *, sample: bool) -> tuple[Any, Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        _check(rows, sum(self.sizes))
        background = range(0, sum(self.sizes), step_of(sum(self.sizes))) if sample else range(0)
        wanted = sorted({*rows, *background})
        parts, first, at = [], 0, 0
        try:
            reading = {"pre_buffer": False, "buffer_size": _BUFFER, "page_checksum_verification": True}
            with pq.ParquetFile(self.path, **reading) as file:
                for group, size in enumerate(self.sizes):
                    if at < len(wanted) and wanted[at] < first + size:
                        start = first
                        options = {"row_groups": [group], "columns": [*names], "use_threads": False}
                        for batch in file.iter_batches(_BATCH, **options):
                            end = at
                            while end < len(wanted) and wanted[end] < start + batch.num_rows:
                                end += 1
                            places = pa.array([row - start for row in wanted[at:end]], pa.int64())
                            parts.append(pa.Table.from_batches([batch]).take(places))
                            at, start = end, start + batch.num_rows
                    first += size
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{self.path} could not be read with pyarrow: {error}") from error
        table, place = pa.concat_tables(parts), {row: i for i, row in enumerate(wanted)}
        chosen, learnt = (
            _native(
                table.take(pa.array([place[row] for row in some], pa.int64())).select([*names]), self.types
            )
            for some in (rows, background)
        )
        return chosen, learnt if sample else None


@dataclass(frozen=True)
class _Csv(TableFile):
    """Read from its beginning, with the types of explain-table: those of its first 8 MiB."""

    path: Path
    types: files.ColumnTypes
    texts: Sequence[str]

    @cached_property
    def _source(self) -> Any:
        from limes.scale._sources import Source

        source = Source.of(self.path)
        texts = tuple(name for name in dict.fromkeys(self.texts) if name in source.schema.names)
        return replace(source, texts=texts) if texts else source

    def column(self, name: str) -> Iterator[Any]:
        from limes.scale._typed import Unreadable

        for part in self._source.parts(_BATCH, [name]):
            for chunk in part.read([name]):
                if isinstance(chunk, Unreadable):
                    yield from [None] * chunk.num_rows
                else:
                    for value in chunk[name].to_pylist():
                        yield None if value is None else value.decode("utf-8", "replace")

    @property
    def dialect(self) -> Dialect:
        its: Dialect = self._source.dialect
        return its

    @property
    def columns(self) -> Sequence[str]:  # type: ignore[override]
        return list(self._source.schema.names)

    def read(self, names: Sequence[str], rows: Sequence[int], *, sample: bool) -> tuple[Any, Any]:
        from limes.scale._sources import picked

        its = picked(self._source, names, BACKGROUND, rows)
        _check(rows, its.rows)
        for row in rows:
            if row in its.reasons:
                raise InputError(f"--row {row} of {self.path} could not be read: {its.reasons[row]}")
        if not sample:
            return _native(its.chosen, self.types), None
        files.report_omitted(self.path, its.omitted)
        return _native(its.chosen, self.types), _native(its.sample, self.types)


def _native(table: Any, types: files.ColumnTypes) -> Any:
    """A table of Arrow as the library of most models has it, with the types that the user states."""
    import narwhals as nw

    if find_spec("pandas") is not None:
        table = table.to_pandas()
    elif find_spec("polars") is not None:
        import polars

        table = polars.from_arrow(table)
    return types.cast(nw.from_native(table, eager_only=True)).to_native() if types.by_name else table


def row_called(table: TableFile, row: str, ids: str | None) -> tuple[int, str | int]:
    """A row's position and its name: ``--row`` is the one, or the other in the column ``--id``."""
    if ids is None:
        if not row.isdecimal():
            raise InputError(
                f"--row {row}: pass a position, counted from 0; or a name, and --id COLUMN, which has it"
            )
        return int(row), int(row)
    name = column_called(table.columns, ids)
    positions = [i for i, value in enumerate(table.column(name)) if row in (str(value), cell(value))]
    if not positions:
        raise InputError(f"--row {row}: no row of column {ids!r} has this name")
    if len(positions) > 1:
        raise InputError(
            f"--row {row}: {len(positions):,} rows of column {ids!r} have this name, the first of them at "
            f"{listed(positions)}: pass one of these positions, without --id"
        )
    return positions[0], one_line(row)


def rows_and_background(
    model: Any,
    table: TableFile,
    background: Path | None,
    places: Sequence[int],
    ids: str | None,
    drop: Sequence[str],
    types: files.ColumnTypes,
) -> tuple[Any, Any]:
    """The features of some rows of a table, as the model has them, and of the background."""
    files.refuse_dropped(drop, model, table.columns)
    dropped = [*drop, *([] if ids is None else [column_called(table.columns, ids)])]
    names = files.feature_names(table.columns, model, dropped)
    chosen, learnt = table.with_numbers(names, model).read(names, places, sample=background is None)
    chosen = files.as_trained(model, chosen)
    for i, why in files.refused_rows(model, chosen).items():
        raise InputError(f"--row {places[i]} of the table: {why}")
    if background is not None:
        learnt = files.read_background(background, model, dropped, types)
    return chosen, files.without_refused(model, learnt)


@contextmanager
def naming_rows(labels: Sequence[str | int]) -> Iterator[None]:
    """Errors name rows as the user does, in place of their positions among the explained ones."""
    try:
        yield
    except CellError as error:
        if not error.rows:
            raise
        row, what = next(iter(error.rows.items()))
        raise InputError(f"row {labels[row]}, {what}") from error
    except ModelError as error:
        if error.row is None:
            raise
        text = str(error).removeprefix(f"row {error.row}: ")
        raise ModelError(f"row {labels[error.row]}: {text}", batch=error.batch) from error


def column_called(columns: Sequence[str], ids: str) -> str:
    """The column that ``--id`` names."""
    places = Names(columns).called(ids)
    if not places:
        raise InputError(f"--id {ids}: no such column; there are {list(columns)}")
    return columns[places[0]]


# -- long tables ---------------------------------------------------------------------------------------------


def features_of_run(columns: str | None, model: Any, source: Source, others: list[str]) -> list[str]:
    from limes.scale._frames import check_columns

    check_columns("the table", source.schema.names, others)
    if columns is not None:
        names = [name.strip() for name in columns.split(",")]
    else:
        rest = [name for name in source.schema.names if name not in others]
        names = [*files.features_of(model, source.schema.names)] or rest
    check_columns("the table", source.schema.names, names)
    return names


def texts_of_run(
    model: Any, names: Sequence[str], types: files.ColumnTypes, source: Source
) -> tuple[str, ...]:
    """Columns of CSV files that are read as text: those of the model's encoders of texts, and of --dtype."""
    from limes.models._encoders import encoded_texts

    types.check(source.schema.names)
    others = [name for name in types.by_name if name not in types.texts]
    if others:
        raise InputError(
            f"--dtype {others[0]}={types.by_name[others[0]]}: explain-table reads columns as text, or as the "
            "files have them; store the table as .parquet, with the column's type"
        )
    encoded = {names[j]: texts for j, texts in encoded_texts(model, names).items()}
    for name, texts in encoded.items():
        if source.is_csv and _holds_numbers(source, name) and name not in types.texts:
            files.note_of_cast(name, "text", texts[0])
        if source.is_csv:
            files.note_of_missing(source.first.name, name, texts)
    return tuple(dict.fromkeys([*encoded, *types.texts]))


def _holds_numbers(source: Source, name: str) -> bool:
    import pyarrow as pa

    kind = source.schema.field(name).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def background_of_run(
    path: Path | None, source: Source, columns: list[str], types: files.ColumnTypes, model: Any
) -> Any:
    """Read or sample the table from which bins are learnt, as the library of most models: pandas."""
    if path is not None:
        from limes.scale._frames import check_columns

        table = types.cast(files.read_table(path, types.texts))
        check_columns(path, table.columns, columns)
        names = Names(table.columns)
        table = table[:, [names.called(name)[0] for name in columns]]
        table, faults = files.with_numbers(path, table, table.columns, model, types)
        table = table[files.good_rows(path, len(table), faults)] if faults else table
        return files.without_refused(model, table.to_native())
    from limes.scale._sources import decimated

    require("pandas", "limes explain-table without --background", package="'limes[pandas]'")
    return files.without_refused(model, decimated(source, columns, BACKGROUND).to_pandas())


def hash_of(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16]


def print_run(summary: RunSummary, explainer: Any, out: str, *, chose: bool) -> None:
    """Print what a run made; ``chose`` is whether the user said if it has contributions."""
    import rich
    from rich.table import Table
    from rich.text import Text

    distinct, is_exact = summary.distinct
    about = "" if is_exact else "about "
    typer.echo(f"{out}: {summary.rows:,} rows, {explainer.method}; {about}{distinct:,} distinct explanations")
    sizes, shares = summary.mean_sizes, summary.mean_contributions
    lines = Table("column", *(["mean |contribution|"] if shares else []), "mean |LIME coefficient|")
    largest = sorted(sizes, key=lambda name: -(shares[name][0] if shares else sizes[name]))
    for name in largest[:SHOWN_COLUMNS]:
        cells = [estimate_text(*shares[name])] if shares else []
        lines.add_row(Text(one_line(name)), *cells, f"{sizes[name]:.4g}")  # a name in brackets is no markup
    if distinct:
        rich.print(lines)
    if distinct and not shares and not chose and not explainer._has_rules:  # noqa: SLF001 - a rule has none
        margin = "output='margin'" in explainer._model.bound.reason  # noqa: SLF001 - where it is read exactly
        typer.echo(
            "contributions are left out, which would take more than 2 ms a row: pass --contributions"
            f"{', or --output margin, whose contributions are exact' if margin else ''}"
        )
    for text in getattr(explainer, "model_warnings", ()):
        typer.secho(one_line(text), fg="yellow")
    if summary.increment is not None:
        typer.echo(str(summary.increment))
    if summary.differences:
        typer.secho(f"unlike the earlier run: {one_line('; '.join(summary.differences))}", fg="yellow")
    if summary.resumed:
        typer.echo(f"{summary.resumed:,} rows were finished before")
    if summary.errors:
        rows = "1 row has" if summary.errors == 1 else f"{summary.errors:,} rows have"
        typer.secho(f"{rows} no explanation; the first error: {one_line(summary.reason)}", fg="yellow")
    if summary.repeated:
        typer.secho(one_line(summary.repeated), fg="yellow")


def print_comparison(its: RunComparison, top: int) -> None:
    import rich
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    names = [
        one_line(name.rstrip("/").rpartition("/")[2].partition("?")[0]) for name in (its.earlier, its.later)
    ]
    typer.echo(f"{names[0]}: {count(its.rows[0], 'row')}; {names[1]}: {count(its.rows[1], 'row')}")
    changed, several = its.changed, len({change.output for change in its.changes if change.output}) > 1
    number = f"{len(changed)} of {len(its.changes)} means and shares"
    typer.echo(f"{number} changed, by Holm's correction at level {its.level:.2g}")
    lines = Table(box=SIMPLE)
    for title in ("", "earlier", "later", "change", "size", "changed"):
        right = title in ("earlier", "later", "change", "size")
        lines.add_column(title, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for change in its.changes[:top]:
        output = f"{change.output}: " if several and change.output else ""
        name = f"warning {change.name}" if change.quantity.endswith("warning") else change.name
        name = f"|{name}|" if "|" in change.quantity else name or change.quantity.split()[-1]
        text = f"{output}{name}"
        moved, error = estimates([change.change], [change.error], 3)[0]
        size = "" if change.size != change.size else f"{change.size:.3f}"
        cells = [f"{change.earlier:.4g}", f"{change.later:.4g}", f"{moved} {error}", size]
        lines.add_row(Text(one_line(text)), *cells, "yes" if change.changed else "no")
    rich.print(lines)
    kind = next((c.quantity for c in its.changes if "|" in c.quantity), "mean |contribution|")
    typer.echo(f"a column: {kind.replace('|', '')}; |column|: {kind}")
    typer.echo("size: change in standard deviations of the earlier predictions, or of a share")
    if top < len(its.changes):
        typer.echo(f"{len(its.changes) - top} more: --top {len(its.changes)}")
    for note in its.notes:
        typer.secho(one_line(note), fg="yellow")


def print_row_change(its: RowChange, top: int) -> None:
    import rich
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    base, prediction = (f"{before:.4g} to {after:.4g}" for before, after in (its.base, its.prediction))
    moved = difference(its.prediction[1] - its.prediction[0], 3)
    typer.echo(f"row {one_line(its.row)}, {one_line(its.output)}: {prediction}, {moved}")
    typer.echo(f"usual: {base}, {difference(its.base[1] - its.base[0], 3)}")
    lines = Table(box=SIMPLE)
    for title in ("contribution of", "earlier", "later", "change"):
        right = title != "contribution of"
        lines.add_column(title, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for name, change in its.largest[:top]:
        levels = [difference(level, 3) for level in its.contributions[name]]
        error = its.errors.get(name, 0.0)
        (changed,) = estimates([change], [error], 3) if error else [(difference(change, 3),)]
        lines.add_row(Text(one_line(name)), *levels, " ".join(changed))
    rich.print(lines)
    if top < len(its.largest):
        rest = sum(change for _, change in its.largest[top:])
        typer.echo(f"{len(its.largest) - top} more, {difference(rest, 3)} together: --top {len(its.largest)}")
    if any(its.errors.values()):
        typer.echo("±: one standard error of the change, at most")
    typer.echo("the changes of what is usual and of contributions add up to that of the prediction")


def print_means(its: OutputMeans, top: int) -> None:
    import rich
    from rich.table import Table
    from rich.text import Text

    name = "prediction" if its.output == "output" else f"output {one_line(its.output)}"
    typer.echo(f"{name}: means of {count(its.rows, 'row')}")
    lines, order = Table(), its.order[:top]
    lines.add_column("column", overflow="fold")
    columns: list[list[Any]] = [[Text(one_line(its.features[j])) for j in order]]
    for kind, (size, value, error) in its.means.items():
        word = {"contribution": "contribution", "value": "LIME\ncoefficient"}[kind]
        lines.add_column(f"mean\n|{word}|", justify="right", no_wrap=True)
        columns.append([estimate_text(size[j], error[j]) for j in order])
        if kind == "contribution" or len(its.means) == 1:  # else 80 characters are too few
            lines.add_column(f"mean\n{word}", justify="right", no_wrap=True)
            signed = estimates(value[order].tolist(), error[order].tolist(), 3)
            columns.append([" ".join(pair if error.any() else pair[:1]) for pair in signed])
    for cells in zip(*columns, strict=True):
        lines.add_row(*cells)
    rich.print(lines)
    if any(error.any() for _, _, error in its.means.values()):
        typer.echo("±: of the sampling of these rows, not of the choice of the rows")
    if top < len(its.features):
        typer.echo(f"{len(its.features) - top} smaller columns: --top {len(its.features)}")
    for code, number in its.warnings.most_common():
        meaning = CODES.get(code, code)
        typer.secho(f"{number:,} of {count(its.rows, 'row')}, {code!r}: {one_line(meaning)}", fg="yellow")
