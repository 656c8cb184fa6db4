"""Models of one table with columns of texts, as a Pipeline of a ColumnTransformer: explained as they are.

Each text is a part, by the name of its column, and the other columns are a row. Perturbed parts become rows
of a table again, which the model takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from limes._checks import did_you_mean, require
from limes._explainers.masked import InputPart
from limes._explainers.splits import WORD, of_tokens
from limes._explainers.tables.part import TablePart
from limes._explainers.text import TextPart
from limes._names import names_of_frame, refuse_repeats
from limes.exceptions import InputError
from limes.models._documents import VECTORIZERS, steps_of
from limes.models._identity import qualified_name
from limes.models.readers.sklearn_text import token_pattern

# Names of the part of all columns that are no texts
_ROW = ("row", "other columns")


def columns_of_frame(model: Any) -> tuple[str, ...] | None:
    """Names of the columns of the table that an estimator, or its method, takes; None if it takes none."""
    names = getattr(getattr(model, "__self__", model), "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def parts_of_table(model: Any, background: Any) -> dict[str, InputPart]:
    """The parts of a model of one table: columns that it vectorizes are texts, others that it uses a row."""
    used = _used(model)
    texts: dict[str, Any] = {}
    for its, chosen in _transformed(model):
        vectorizer = next((s for s in _every_step(its) if qualified_name(type(s)) in VECTORIZERS), None)
        texts |= {} if vectorizer is None else dict.fromkeys(chosen, vectorizer)
    if not texts:
        raise InputError(
            f"{type(model).__name__} has no ColumnTransformer with a vectorizer of a column of texts: name "
            "the parts, as {'review': 'text', 'row': limes.TablePart(background=table[columns])}; a table "
            "without texts is for limes.TabularExplainer"
        )
    parts: dict[str, InputPart] = {name: TextPart(split=_split(one)) for name, one in texts.items()}
    rest = [name for name in used if name not in texts]
    if rest:
        table = _opened(background)
        if missing := [name for name in rest if name not in table.columns]:
            raise InputError(f"the background lacks the columns {missing}, which the model takes")
        row = next(name for name in _ROW if name not in texts)
        parts[row] = TablePart(background=table.select(rest).to_native())
    return parts


def _opened(frame: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError:
        refuse_repeats(names_of_frame(frame))
        raise


def _every_step(model: Any) -> list[Any]:
    """The steps of a Pipeline and of those inside it."""
    steps = steps_of(model)
    return [*steps] if len(steps) == 1 else [inner for step in steps for inner in _every_step(step)]


def _transformed(model: Any) -> list[tuple[Any, list[str]]]:
    """The transformers of a ColumnTransformer, each with the names of its columns; [] without one."""
    owner = getattr(model, "__self__", model)
    transformer = next((step for step in _every_step(owner) if hasattr(step, "transformers_")), None)
    if transformer is None:
        return []
    names = tuple(map(str, transformer.feature_names_in_))
    every = ((its, _named(columns, names)) for _, its, columns in transformer.transformers_)
    return [(its, chosen) for its, chosen in every if not (isinstance(its, str) and its == "drop")]


def _used(model: Any) -> list[str]:
    """Names of the columns that a model needs."""
    names, transformed = columns_of_frame(model) or (), _transformed(model)
    if not transformed:
        return [*names]
    used = {name for _, chosen in transformed for name in chosen}
    return [name for name in names if name in used]


def _split(vectorizer: Any) -> Any:
    pattern = token_pattern([vectorizer])
    return WORD if pattern is None else of_tokens(*pattern)


def _named(columns: Any, names: Sequence[str]) -> list[str]:
    """Names of columns as a ColumnTransformer has them: a name, names, positions, a slice or truth values."""
    if isinstance(columns, str):
        return [columns]
    if isinstance(columns, slice):
        ends = (names.index(end) if isinstance(end, str) else end for end in (columns.start, columns.stop))
        start, stop = ends
        inclusive = isinstance(columns.stop, str)
        return [*names[start : stop + 1 if inclusive else stop]]
    chosen = np.atleast_1d(np.asarray(columns))
    return [*map(str, chosen)] if chosen.dtype.kind in "OUT" else np.asarray(names)[chosen].tolist()


def by_part(parts: Mapping[str, InputPart], raw: Any) -> Any:
    """A row of a table as a mapping of parts; other inputs as they are."""
    is_row = hasattr(raw, "to_dict") and hasattr(raw, "index")
    cells = raw.to_dict() if is_row else raw
    if not isinstance(cells, Mapping):
        return raw
    grouped: dict[str, Any] = {}
    columns: set[Any] = set()
    for name, part in parts.items():
        if name in cells:
            grouped[name] = cells[name]
            columns.add(name)
        elif isinstance(part, TablePart) and all(column in cells for column in part.columns):
            grouped[name] = {column: cells[column] for column in part.columns}
            columns |= set(part.columns)
    # a row may have columns that the model does not take
    return grouped | ({} if is_row else {key: cell for key, cell in cells.items() if key not in columns})


def rows_of(inputs: Any, parts: Mapping[str, InputPart]) -> list[Any] | None:
    """The rows of a table, as mappings of the columns that parts take; None if it is no table."""
    if isinstance(inputs, Mapping) or not hasattr(inputs, "columns"):
        return None
    table = _opened(inputs)
    cells = {name for part in parts.values() if isinstance(part, TablePart) for name in part.columns}
    chosen = [name for name in table.columns if name in cells or name in parts]
    return list(table.select(chosen).rows(named=True))


def check_columns(model: Any, batch: Mapping[str, Any]) -> None:
    """Refuse a batch of parts that does not make the table that a model takes."""
    names, kind = columns_of_frame(model) or (), type(model).__name__
    for name, its in batch.items():
        if not (hasattr(its, "columns") or isinstance(its, list)):
            raise InputError(f"{kind} takes a table of texts and cells, and the part {name!r} is neither")
    columns = [name for part, its in batch.items() for name in getattr(its, "columns", [part])]
    if unknown := [name for name in columns if name not in names]:
        raise InputError(
            f"{kind} takes no column {unknown[0]!r}{did_you_mean(unknown[0], names)}: name the part of a "
            f"text by its column, and leave other columns out of the background; it takes {[*names]}"
        )
    if missing := [name for name in _used(model) if name not in columns]:
        raise InputError(f"{kind} also takes the columns {missing}, which no part has: add them to a part")


def as_table(batch: Mapping[str, Any], names: Sequence[str]) -> Any:
    """A batch of texts and tables as one table of the columns that a model takes, in its order."""
    tables = [nw.from_native(its, eager_only=True) for its in batch.values() if hasattr(its, "columns")]
    texts = {name: its for name, its in batch.items() if isinstance(its, list)}
    if not tables:
        pandas = require("pandas", "a model of columns of texts")
        return pandas.DataFrame({name: texts[name] for name in names if name in texts})
    table = nw.concat(tables, how="horizontal") if len(tables) > 1 else tables[0]
    backend = table.implementation
    columns = [nw.new_series(name, its, nw.String, backend=backend) for name, its in texts.items()]
    table = table.with_columns(*columns)
    return table.select([name for name in names if name in table.columns]).to_native()
