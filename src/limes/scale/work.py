"""What a worker does with a part: read it, explain it, write it. Every engine runs this and nothing else."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cloudpickle
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limes.exceptions import InputError
from limes.scale.cells import typed
from limes.scale.chunks import Unreadable, check_names
from limes.scale.frames import Explainer, explain_frame
from limes.scale.parts import Done, Folder, checksum, unwritable, write_whole
from limes.scale.sources import Part
from limes.scale.tally import Tally


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
        return self._explained(self.schema.empty_table(), {}, 0).schema

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
        """The work that `packed` made bytes of; it runs code, so the bytes must be this program's own.

        Raises
        ------
        InputError
            If the model needs something that is not there.
        """
        try:
            work: Work = pickle.loads(content)  # noqa: S301 - the driver of this run made it
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"a worker cannot load the model ({error}): install limes, the model's library and your own "
                "modules where workers run"
            ) from error
        return work

    def __call__(self, part: Part) -> Done:
        """Explain a part, and put its file in place.

        Raises
        ------
        InputError
            The file could not be written, or what is read was changed.
        """
        rows, reasons = self._read(part)
        found = self._explained(rows, reasons, part.first)
        tally = Tally.of(found, self.explainer.feature_names, rows.num_rows)
        return Done(part.number, self._written(found, self.folder.part(part.number)), tally)

    def _read(self, part: Part) -> tuple[pa.Table, dict[int, str]]:
        """Rows of the part; those that cannot be read are null, and have a reason."""
        loose = [name for name in self.columns if name not in self.keys]
        reasons: dict[int, str] = {}
        tables, first = [], 0
        for chunk in part.read(self.columns):
            if isinstance(chunk, Unreadable):
                rows = pa.table([pa.nulls(chunk.num_rows, kind) for kind in self.schema.types], self.columns)
                wrong = dict.fromkeys(range(chunk.num_rows), chunk.reason)
            else:
                rows, wrong = typed(chunk, self.schema, loose)
            tables.append(rows)
            reasons |= {first + place: why for place, why in wrong.items()}
            first += chunk.num_rows
        return pa.concat_tables(tables, promote_options="permissive"), reasons

    def _explained(self, rows: pa.Table, reasons: Mapping[int, str], first: int) -> pa.Table:
        good = pa.array(np.setdiff1d(np.arange(rows.num_rows), [*reasons]), pa.int64())
        found = explain_frame(rows.take(good) if reasons else rows, self.explainer, self.layout)
        lines = self._numbered(rows, good.take(found["row"]), first)
        explained = pa.table(lines | {name: found[name] for name in found.column_names[1:]})
        if not reasons:
            return explained
        return pa.concat_tables([explained, self._lost(rows, reasons, first)]).sort_by("row")

    def _lost(self, rows: pa.Table, reasons: Mapping[int, str], first: int) -> pa.Table:
        """A line a row that has a reason."""
        places = pa.array([*reasons], pa.int64())
        said = self._numbered(rows, places, first)
        said["error"] = pa.array([*reasons.values()], self.result.field("error").type)
        return pa.table({f.name: said.get(f.name, pa.nulls(len(places), f.type)) for f in self.result})

    def _numbered(self, rows: pa.Table, places: pa.Array, first: int) -> dict[str, pa.Array]:
        """Columns that say which row a line is of."""
        return {"row": pc.add(places, first), **{name: rows[name].take(places) for name in self.keys}}

    def _written(self, found: pa.Table, path: Path) -> str:
        buffer = pa.BufferOutputStream()
        pq.write_table(found, buffer)
        try:
            write_whole(path, buffer.getvalue().to_pybytes())
        except OSError as error:
            raise unwritable(self.folder.path, error) from error
        return str(checksum(path))


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
    check_names("the table", schema.names, wanted)
    work = Work(explainer, folder, pa.schema([schema.field(name) for name in wanted]), layout, ())
    clash = [name for name in keys if name in work.result.names]
    if clash:
        raise InputError(f"the key {clash[0]!r} bears the name of a column of the result: rename it")
    return Work(explainer, folder, work.schema, layout, tuple(keys))
