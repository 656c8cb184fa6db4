"""Means over tables of explanations: what matters in all rows together, output by output."""

from __future__ import annotations

import json
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from limes import __version__
from limes._arrays import Floats
from limes._checks import require
from limes.exceptions import InputError
from limes.scale._frames import ERRORS, numbers_of

if TYPE_CHECKING:
    from limes.scale._parts import Increment
    from limes.scale._sources import Source
    from limes.scale._stores import Place
    from limes.scale._tables import RunSummary

# Columns that tell a table of explanations from any other
_NEEDED = ("output", "prediction", "method", "error")
_ORDER = ("contribution", "value")
# Libraries that limes computes with
_NUMERICS = ("numpy", "scipy", "scikit-learn")


class Mean(NamedTuple):
    """Means (d,) over rows of an output: of sizes, of numbers, and the standard error of both by sampling."""

    size: Floats
    value: Floats
    error: Floats  # 0 where exact


class OutputMeans(NamedTuple):
    """Means of one output, of contributions, if a table has them, and of coefficients."""

    output: str
    rows: int
    features: tuple[str, ...]
    means: dict[str, Mean]
    warnings: Counter[str]  # rows by code, most frequent first where it is listed

    @property
    def order(self) -> list[int]:
        """Features by mean |contribution|, largest first, or else by mean |coefficient|."""
        kind = next(kind for kind in _ORDER if kind in self.means)
        return [int(j) for j in np.argsort(-self.means[kind].size, kind="stable")]


def summarize(table: Any) -> Any:
    """Return means over all rows of a table of explanations: a line an output and column.

    Parameters
    ----------
    table
        What `explain_frame` returned, in either layout; or the folder of ``limes explain-table``.

    Returns
    -------
    frame
        A frame of the same library, of a folder pyarrow's. Outputs are in their order, and columns by mean
        |contribution|, largest first, or by mean |coefficient| where the table has no contributions:

        ============================================ =====================================================
        ``output``, ``feature``                      names
        ``rows``                                     number of rows with an explanation
        ``mean_abs_contribution``                    what the column matters in a prediction
        ``mean_contribution``                        what it adds on average
        ``error_contribution``                       standard error of both, 0 where exact
        ``mean_abs_value``, ``mean_value``,          the same of coefficients
        ``error_value``
        ============================================ =====================================================

        Errors are of the sampling of these rows, not of the choice of the rows. The mean of |contribution|
        of sampled rows is too large by up to its error.

    Raises
    ------
    InputError
        It is no table of explanations.

    Examples
    --------
    >>> import limes, pandas as pd
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> table = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    >>> tree = DecisionTreeRegressor().fit(table, [0.0, 2.0, 2.0, 5.0])
    >>> result = limes.scale.explain_frame(limes.TabularExplainer(tree, table), table)
    >>> limes.scale.summarize(result)["feature"].tolist()
    ['a', 'b']
    """
    frames: Iterable[Any]
    try:
        frame = nw.from_native(table, eager_only=True)
        frames, backend = [frame], frame.implementation
    except TypeError:
        require("pyarrow", "summarize of a folder", package="'limes[scale]'")
        frames, backend = parts_of(table), "pyarrow"
    columns: dict[str, list[Any]] = {}
    for its in means_of(frames):
        for name, cells in _columns(its).items():
            columns.setdefault(name, []).extend(cells)
    return nw.from_dict(columns, backend=backend).to_native()


def versions_of(model: Any) -> dict[str, str]:
    """Versions of what a run's numbers depend on: Python, limes, its numerics, and the model's libraries.

    A model's libraries are those of its classes and their bases, and of what it holds: a Pipeline's steps,
    the model inside a wrapper.
    """
    held = [*getattr(model, "__dict__", {}).values()]
    if hasattr(model, "get_params") and hasattr(model, "set_params"):  # scikit-learn's interface
        held += model.get_params().values()
    classes = {base for part in (model, *held) for base in type(part).__mro__}
    roots = {base.__module__.partition(".")[0] for base in classes} - {"sklearn"}
    modules = {root: getattr(sys.modules.get(root), "__version__", None) for root in sorted(roots)}
    return {
        "python": platform.python_version(),
        "limes": __version__,
        **{name: version(name) for name in _NUMERICS},
        **{root: text for root, text in modules.items() if isinstance(text, str)},
    }


def summary_place(where: str, out: str, source: Source, inputs: Iterable[Path | None]) -> Place:
    """The place of a run's summary; none of an earlier run is left there, and nothing else is lost."""
    from limes.scale._sources import is_in
    from limes.scale._stores import place_of

    place = place_of(where)
    if place.is_dir() or (isinstance(place, Path) and not place.parent.is_dir()):
        raise InputError(f"{where} cannot be written: pass the name of a file in a folder that exists")
    for folder in (place_of(out).absolute(), *source.folders):
        if is_in(place, folder):
            raise InputError(
                f"--summary {where} lies in {folder}, whose readers would take it for a part: pass a name in "
                "another folder"
            )
    read = [*source.files, *(path for path in inputs if path is not None)]
    if any(is_in(place, path) for path in read):
        raise InputError(f"{where} is read by this command: pass another name to write to")
    place.unlink(missing_ok=True)
    return place


def write_summary(place: Place, summary: Mapping[str, Any]) -> None:
    from limes.scale._parts import writing
    from limes.scale._stores import write_whole

    with writing(place):
        write_whole(place, json.dumps(summary, indent=1, allow_nan=False).encode())


def run_summary(
    folder: Any, tally: RunSummary, *, method: str, seconds: float, versions: Mapping[str, str]
) -> dict[str, Any]:
    """What a finished run has to say to the program that started it, for JSON.

    Means are those of `summarize`, of the folder's rows: also of those that an earlier run finished.
    ``seconds`` are of this run alone.
    """
    kinds: dict[str, dict[str, Any]] = {}
    outputs = means_of(_with_kinds(parts_of(folder), kinds))
    distinct, is_exact = tally.distinct
    return {
        "rows": tally.rows,
        "resumed": tally.resumed,
        "errors": tally.errors,
        "errors_by_kind": kinds,
        "method": method,
        "seconds": round(seconds, 3),
        "versions": {**versions},
        "distinct_explanations": distinct,
        "distinct_is_exact": is_exact,
        "repeated_keys": tally.repeated,
        "since": None if tally.increment is None else _of_increment(tally.increment, tally.differences),
        "outputs": [
            {
                "output": its.output,
                "rows": its.rows,
                "warnings": dict(its.warnings.most_common()),
                "columns": _records(_columns(its)),
            }
            for its in outputs
        ],
    }


def _of_increment(its: Increment, differences: Sequence[str]) -> dict[str, Any]:
    counts = {"first_row": its.rows, "files": len(its.files), "new_files": len(its.new)}
    return {"run": its.run, **counts, "later_files": its.later, "differences": [*differences]}


def _with_kinds(frames: Iterable[Any], kinds: dict[str, dict[str, Any]]) -> Iterator[Any]:
    """Yield the frames, and count errors by kind: the error's class, or of rows not read "unreadable"."""
    for frame in frames:
        lines = frame.filter(~nw.col("error").is_null())  # one of each row
        for row, text in zip(lines["row"].to_list(), lines["error"].to_list(), strict=True):
            stated = re.match(r"(\w+): ", text)
            first = {"rows": 0, "first_row": row, "first_error": text}
            kinds.setdefault(stated[1] if stated else "unreadable", first)["rows"] += 1
        yield frame


def _records(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """A record a line, without what all lines share; numbers that are unknown are null."""
    names = [name for name in columns if name not in ("output", "rows")]
    lines = zip(*(columns[name] for name in names), strict=True)
    return [
        {name: None if cell != cell else cell for name, cell in zip(names, line, strict=True)}
        for line in lines
    ]


def _columns(its: OutputMeans) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        "output": [its.output] * len(its.features),
        "feature": [its.features[j] for j in its.order],
        "rows": [its.rows] * len(its.features),
    }
    for kind, mean in its.means.items():
        for name, numbers in (("mean_abs", mean.size), ("mean", mean.value), ("error", mean.error)):
            columns[f"{name}_{kind}"] = numbers[its.order].tolist()
    return columns


def parts_of(folder: Any) -> Iterator[Any]:
    """Yield the parts of a folder of explanations, in their order."""
    import pyarrow.parquet as pq

    from limes.scale._parts import Folder
    from limes.scale._stores import parsed, place_of

    files = Folder(place_of(folder)).files() if place_of(folder).is_dir() else []
    if not files:
        raise InputError(f"{folder}: no folder with parts of explanations, and no table of them")
    for file in files:
        yield nw.from_native(parsed(file, pq.read_table), eager_only=True)


def means_of(frames: Iterable[Any]) -> list[OutputMeans]:
    """Means over the lines of frames, output by output; sums go over frames in their order."""
    features: tuple[str, ...] = ()
    sums: dict[str, dict[str, Floats]] = {}
    codes: dict[str, Counter[str]] = {}
    for frame in frames:
        missing = [name for name in _NEEDED if name not in frame.columns]
        if missing:
            raise InputError(
                f"the table has no column {missing[0]!r}: pass what limes.scale.explain_frame returned, or a "
                "folder of limes explain-table"
            )
        features = features or _features(frame)
        good = frame.filter(nw.col("error").is_null())
        for output in good["output"].unique(maintain_order=True).to_list():
            lines = good.filter(nw.col("output") == output)
            for kind, numbers in _sums(lines, features).items():
                by_kind = sums.setdefault(output, {})
                by_kind[kind] = by_kind.get(kind, 0.0) + numbers
            codes.setdefault(output, Counter()).update(_codes(lines, len(features)))
    return [
        OutputMeans(output, *_means(by_kind, features), codes[output]) for output, by_kind in sums.items()
    ]


def _codes(lines: Any, features: int) -> Counter[str]:
    """How many rows have a warning of each code; tables of earlier versions have none."""
    counts: Counter[str] = Counter()
    if "warnings" in lines.columns:
        times = features if "feature" in lines.columns else 1  # lines of a row
        for texts, number in Counter(lines["warnings"].to_list()).items():
            # an empty text is null in a CSV
            for code in filter(None, texts.split(", ") if isinstance(texts, str) else ()):
                counts[code] += number // times
    return counts


def _features(frame: Any) -> tuple[str, ...]:
    if "feature" not in frame.columns:
        return tuple(name.removeprefix("value_") for name in frame.columns if name.startswith("value_"))
    return tuple(frame["feature"].drop_nulls().unique(maintain_order=True).to_list())


def _sums(lines: Any, features: Sequence[str]) -> dict[str, Floats]:
    """Sums over lines of sizes, numbers and squared errors, and their count, (4, d) of each kind."""
    sums = {}
    for kind in _ORDER:
        values = numbers_of(lines, kind, features)
        if values is not None:
            errors = numbers_of(lines, ERRORS[kind], features)
            squares = np.zeros_like(values) if errors is None else errors**2
            parts = (np.abs(values), values, squares)
            count = (~np.isnan(values)).sum(axis=0)
            sums[kind] = np.stack([*(np.nansum(part, axis=0) for part in parts), count])
    return sums


def _means(
    by_kind: dict[str, Floats], features: tuple[str, ...]
) -> tuple[int, tuple[str, ...], dict[str, Mean]]:
    means = {}
    for kind, (size, value, squares, count) in by_kind.items():
        safe = np.where(count > 0, count, np.nan)
        means[kind] = Mean(size / safe, value / safe, np.sqrt(squares) / safe)
    return int(by_kind["value"][3].max(initial=0)), features, means
