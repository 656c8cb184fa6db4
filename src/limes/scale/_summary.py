"""Means over tables of explanations: what matters in all rows together, output by output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from limes._arrays import Floats
from limes._checks import require
from limes.exceptions import InputError
from limes.scale._frames import ERRORS, numbers_of

# Columns that tell a table of explanations from any other
_NEEDED = ("output", "prediction", "method", "error")
_ORDER = ("contribution", "value")


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
