"""The work on a part: a worker reads, explains and writes it. Every engine runs this and nothing else."""

from __future__ import annotations

from limes import __version__
from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

import pickle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import cloudpickle
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limes._explanation.wording import shorten
from limes.exceptions import InputError, LimesError, ModelError
from limes.scale._cells import Unreadable, typed
from limes.scale._frames import Explainer, check_columns, check_keys, error_text, explain_frame, schema_of
from limes.scale._keys import key_hashes
from limes.scale._parts import Folder, PartRecord, Tally, with_run, writing
from limes.scale._sources import Part, Source
from limes.scale._stores import write_whole

NONE: Mapping[int, str] = {}
# Starts every pickle with the version of limes: another version refuses it
_HEADER = f"limes {__version__}\n".encode()


def pickled(work: Work | Explainer) -> bytes:
    """Pickle for other processes; raise InputError if the model, or a part of it, cannot be pickled."""
    try:
        content: bytes = _HEADER + cloudpickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"the model cannot be sent to other processes ({error}): use one worker, engine='local', or "
            "limes.scale.explain_frame"
        ) from error
    return content


def unpickled(content: bytes) -> Any:
    """Unpickle what `pickled` returned; it runs code, so the bytes must come from this program."""
    if not content.startswith(_HEADER):
        sender = content[: content.find(b"\n")].decode(errors="replace")
        raise InputError(
            f"a worker has {_HEADER.decode().strip()}, and the program that sent the model has "
            f"{shorten(sender, 40)}: install one version of limes everywhere"
        )
    try:
        return pickle.loads(memoryview(content)[len(_HEADER) :])  # noqa: S301 - this program made it
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"a worker cannot load the model ({error}): install limes, the model's library and your own "
            "modules where workers run"
        ) from error


@dataclass(frozen=True)
class Work:
    """The function from a part to a file of explanations; it is sent to each worker once.

    Attributes
    ----------
    run
        Name of the run, which each part states.
    schema
        Schema of the features.
    key_schema
        Schema of the columns that are copied to the result, beside the number of the row.
    """

    explainer: Explainer
    folder: Folder
    run: str
    schema: pa.Schema
    key_schema: pa.Schema
    layout: str

    @classmethod
    def plan(
        cls,
        explainer: Explainer,
        folder: Folder,
        source: Source,
        *,
        run: str,
        layout: str,
        keys: Sequence[str],
    ) -> Work:
        """Choose the columns that are read."""
        check_keys(keys, {"row": None, **schema_of(explainer, layout)})
        check_columns("the table", source.schema.names, [*keys, *explainer.feature_names])
        read = pa.schema([source.schema.field(name) for name in explainer.feature_names])
        return cls(explainer, folder, run, read, source.schema_of_keys(keys), layout)

    @property
    def keys(self) -> list[str]:
        return list(self.key_schema.names)

    @property
    def columns(self) -> list[str]:
        return [*dict.fromkeys([*self.keys, *self.schema.names])]

    @cached_property
    def result(self) -> pa.Schema:
        return self._explain(self.schema.empty_table(), self.key_schema.empty_table(), {}, 0).schema

    def to_bytes(self) -> bytes:
        """Pickle the work for other processes, with the model, its tables and its pool of answers."""
        # a model that fails is reported row by row, by those who explain the rows
        with suppress(ModelError):
            self.explainer.fill_pool(progress=False)
        return pickled(self)

    @staticmethod
    def from_bytes(content: bytes) -> Work:
        """Unpickle the work of `to_bytes`; it runs code, so the bytes must come from this program."""
        work: Work = unpickled(content)
        return work

    def __call__(self, part: Part, faults: Mapping[int, str] = NONE) -> PartRecord:
        """Explain a part and put its file in place; rows among the ``faults`` have the error stated there."""
        rows, keys, reasons = self._read(part)
        reasons = {**reasons, **faults}
        lines = self._explain(rows, keys, reasons, part.first)
        tally = Tally.count(lines, self.explainer.feature_names, rows.num_rows)
        return PartRecord(part.number, self._write(lines, part.number), tally)

    def warm_up(self) -> None:
        """Import and prepare what the first row needs, by a row of the background.

        A model that fails there is reported row by row, by those who explain the rows.
        """
        with suppress(LimesError):
            self.explainer.reproducible(self.explainer.typical(), progress=False)

    def attempt(self, part: Part, rows: range) -> None:
        """Explain some rows of a part, to see how long it takes."""
        table, _, reasons = self._read(part)
        good = pa.array([row for row in rows if row not in reasons], pa.int64())
        explain_frame(table.take(good), self.explainer, self.layout)

    def _read(self, part: Part) -> tuple[pa.Table, pa.Table, dict[int, str]]:
        """Read features and keys of a part; rows that cannot be read are null, and have a reason."""
        loose = [name for name in self.schema.names if name not in self.keys]
        reasons: dict[int, str] = {}
        tables, first = [], 0
        for chunk in part.read(self.columns):
            if isinstance(chunk, Unreadable):
                rows, keys = (_nulls(chunk.num_rows, schema) for schema in (self.schema, self.key_schema))
                wrong = dict.fromkeys(range(chunk.num_rows), chunk.reason)
            else:
                rows, wrong = typed(chunk, self.schema, loose)
                keys, wrong_keys = typed(chunk, self.key_schema, (), verbatim=True)
                wrong = wrong_keys | wrong
            tables.append((rows, keys))
            reasons |= {first + position: reason for position, reason in wrong.items()}
            first += chunk.num_rows
        rows, keys = (
            pa.concat_tables(pieces, promote_options="permissive") for pieces in zip(*tables, strict=True)
        )
        return rows, keys, reasons

    def _explain(self, rows: pa.Table, keys: pa.Table, reasons: Mapping[int, str], first: int) -> pa.Table:
        good = pa.array(np.setdiff1d(np.arange(rows.num_rows), [*reasons]), pa.int64())
        lines = explain_frame(rows.take(good) if reasons else rows, self.explainer, self.layout)
        columns = _identify(keys, good.take(lines["row"]), first)
        explained = pa.table(columns | {name: lines[name] for name in lines.column_names[1:]})
        if not reasons:
            return explained
        return pa.concat_tables([explained, self._error_lines(keys, reasons, first)]).sort_by("row")

    def _error_lines(self, keys: pa.Table, reasons: Mapping[int, str], first: int) -> pa.Table:
        """A line a row that has a reason."""
        positions = pa.array([*reasons], pa.int64())
        columns = _identify(keys, positions, first)
        columns["error"] = pa.array(map(error_text, reasons.values()), self.result.field("error").type)
        return pa.table({f.name: columns.get(f.name, pa.nulls(len(positions), f.type)) for f in self.result})

    def _write(self, lines: pa.Table, number: int) -> str:
        """Put a part in place, after the hashes of its keys; return its checksum."""
        buffer = pa.BufferOutputStream()
        pq.write_table(with_run(lines, self.run), buffer)
        content = buffer.getvalue().to_pybytes()
        self.folder.check_run(self.run)
        with writing(self.folder.path):
            if self.keys:
                self.folder.write_keys(number, key_hashes(lines, self.keys)[1])
            write_whole(self.folder.part(number), content)
        return sha256(content).hexdigest()


def _nulls(count: int, schema: pa.Schema) -> pa.Table:
    return pa.table([pa.nulls(count, kind) for kind in schema.types], schema=schema)


def _identify(keys: pa.Table, positions: pa.Array, first: int) -> dict[str, pa.Array]:
    return {
        "row": pc.add(positions, first),
        **{name: keys[name].take(positions) for name in keys.column_names},
    }
