"""What a worker does with a part: read it, explain it, write it. Every engine runs this and nothing else."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cloudpickle
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limes.exceptions import InputError
from limes.scale.frames import Explainer, explain_frame
from limes.scale.parts import Done, Folder, checksum, unwritable, write_whole
from limes.scale.sources import Chunk, Part, Unreadable


@dataclass(frozen=True)
class Work:
    """From a part to a file of explanations; it goes to each worker once.

    Attributes
    ----------
    schema
        Of the columns that are read.
    keys
        Columns of the table that are carried along, beside the number of the row.
    """

    explainer: Explainer
    folder: Folder
    schema: pa.Schema
    layout: str
    keys: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        return list(self.schema.names)

    @cached_property
    def result(self) -> pa.Schema:
        """Columns of what is written."""
        return self._explained(self.schema.empty_table(), 0).schema

    def packed(self) -> bytes:
        """The work as bytes, for other processes: model and prepared tables among it.

        Raises
        ------
        InputError
            If the model, or what it is made of, cannot be sent.
        """
        try:
            content: bytes = cloudpickle.dumps(self)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"the model cannot be sent to other processes ({error}): use one worker, engine='local'"
            ) from error
        return content

    @staticmethod
    def unpacked(content: bytes) -> Work:
        """The work that `packed` made bytes of; it runs code, so the bytes must be this program's own."""
        work: Work = pickle.loads(content)  # noqa: S301 - the driver of this run made it
        return work

    def __call__(self, part: Part) -> Done:
        """Explain a part, and put its file in place.

        Raises
        ------
        InputError
            The file could not be written.
        """
        chunks, tables, first = part.read(self.columns), [], part.first
        for chunk in chunks:
            tables.append(self._lines(chunk, first))
            first += chunk.num_rows
        found = pa.concat_tables(tables)
        path, buffer = self.folder.part(part.number), pa.BufferOutputStream()
        pq.write_table(found, buffer)
        try:
            write_whole(path, buffer.getvalue().to_pybytes())
        except OSError as error:
            raise unwritable(self.folder.path, error) from error
        errors = found.num_rows - found["error"].null_count
        return Done(part.number, first - part.first, errors, str(checksum(path)))

    def _lines(self, chunk: Chunk, first: int) -> pa.Table:
        return self._lost(chunk, first) if isinstance(chunk, Unreadable) else self._explained(chunk, first)

    def _explained(self, rows: pa.Table, first: int) -> pa.Table:
        found = explain_frame(rows, self.explainer, self.layout)
        place = found["row"]
        columns = {"row": pc.add(place, first)}
        columns |= {name: rows[name].take(place) for name in self.keys}
        return pa.table({**columns, **{name: found[name] for name in found.column_names[1:]}})

    def _lost(self, chunk: Unreadable, first: int) -> pa.Table:
        said: dict[str, Any] = {
            "row": pa.array(range(first, first + chunk.num_rows), pa.int64()),
            "error": pa.array([chunk.reason] * chunk.num_rows, self.result.field("error").type),
        }
        return pa.table({f.name: said.get(f.name, pa.nulls(chunk.num_rows, f.type)) for f in self.result})


def work_of(
    explainer: Explainer, folder: Folder, schema: pa.Schema, *, layout: str, keys: Sequence[str]
) -> Work:
    """Choose the columns that are read.

    Raises
    ------
    InputError
        The table lacks one, or a key bears the name of a column of the result.
    """
    wanted = [*dict.fromkeys([*keys, *explainer.feature_names])]
    lost = [name for name in wanted if name not in schema.names]
    if lost:
        raise InputError(f"the table has no column {', '.join(map(repr, lost))}; it has {schema.names}")
    work = Work(explainer, folder, pa.schema([schema.field(name) for name in wanted]), layout, ())
    clash = [name for name in keys if name in work.result.names]
    if clash:
        raise InputError(f"the key {clash[0]!r} bears the name of a column of the result: rename it")
    return Work(explainer, folder, work.schema, layout, tuple(keys))
