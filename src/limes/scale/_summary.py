"""Means over tables of explanations: what matters in all rows together, and what changed between two runs."""

from __future__ import annotations

import json
import math
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from limes import __version__
from limes._arrays import ROUNDING, Floats
from limes._checks import check_probability, listed, require
from limes._explanation import wording
from limes._explanation.drawing import write_text
from limes.exceptions import InputError
from limes.scale._frames import ERRORS, error_kind, numbers_of

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
    """Means (d,) over rows of an output: of sizes, of numbers, and what the error of both is at most."""

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
        What `explain_frame` returned, in either layout; or the folder of a finished run of
        ``limes explain-table``, each byte of which is checked first.

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
        ``error_contribution``                       standard error of both at most, 0 where exact
        ``mean_abs_value``, ``mean_value``,          the same of coefficients
        ``error_value``
        ============================================ =====================================================

        Errors are of the sampling of these rows, not of the choice of the rows. They are the means of the
        rows' errors, which no number of rows reduces: rows may share a pool, their bins or all their values,
        and with them their errors. A mean of |contribution| of sampled rows is too large by up to its error.

    Raises
    ------
    InputError
        It is no table of explanations, or the run is not finished, or its folder was changed.

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
    roots = {base.__module__.partition(".")[0] for base in classes} - {"sklearn"} - sys.stdlib_module_names
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


def write_summary(place: Place, summary: str) -> None:
    from limes.scale._parts import writing
    from limes.scale._stores import write_whole

    with writing(place):
        write_whole(place, summary.encode())


def run_summary(
    folder: Any, tally: RunSummary, *, method: str, seconds: float, versions: Mapping[str, str]
) -> str:
    """Return what a finished run has to say to the program that started it, as JSON.

    Means are those of `summarize`, of the folder's rows: also of those that an earlier run finished.
    ``seconds`` are of this run alone.
    """
    kinds: dict[str, dict[str, Any]] = {}
    outputs = means_of(_with_kinds(parts_of(folder), kinds))
    distinct, is_exact = tally.distinct
    summary = {
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
    return json.dumps(summary, indent=1, allow_nan=False)


def _of_increment(its: Increment, differences: Sequence[str]) -> dict[str, Any]:
    counts = {"first_row": its.rows, "files": len(its.files), "new_files": len(its.new)}
    return {"run": its.run, **counts, "later_files": its.later, "differences": [*differences]}


def _with_kinds(frames: Iterable[Any], kinds: dict[str, dict[str, Any]]) -> Iterator[Any]:
    """Yield the frames, and count errors by kind: the error's class, or of rows not read "unreadable"."""
    for frame in frames:
        lines = frame.filter(~nw.col("error").is_null())  # one of each row
        for row, text in zip(lines["row"].to_list(), lines["error"].to_list(), strict=True):
            first = {"rows": 0, "first_row": row, "first_error": text}
            kinds.setdefault(error_kind(text), first)["rows"] += 1
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
    """Yield the parts of a finished folder of explanations, in their order; InputError of any other."""
    return run_and_parts(folder)[1]


def run_and_parts(folder: Any) -> tuple[dict[str, Any], Iterator[Any]]:
    """Return what determined a finished run, and its parts, each as a frame."""
    from limes.scale._parts import Folder
    from limes.scale._stores import place_of

    its = Folder(place_of(folder).absolute())
    run, _ = its.finished_run()
    return run, (nw.from_native(table, eager_only=True) for table in its.tables())


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
        features = features or features_in(frame)
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


def features_in(frame: Any) -> tuple[str, ...]:
    if "feature" not in frame.columns:
        return tuple(name.removeprefix("value_") for name in frame.columns if name.startswith("value_"))
    return tuple(frame["feature"].drop_nulls().unique(maintain_order=True).to_list())


def _sums(lines: Any, features: Sequence[str]) -> dict[str, Floats]:
    """Sums over lines of sizes, numbers and errors, and their count, (4, d) of each kind."""
    sums = {}
    for kind in _ORDER:
        values = numbers_of(lines, kind, features)
        if values is not None:
            errors = numbers_of(lines, ERRORS[kind], features)
            parts = (np.abs(values), values, np.zeros_like(values) if errors is None else errors)
            count = (~np.isnan(values)).sum(axis=0)
            sums[kind] = np.stack([*(np.nansum(part, axis=0) for part in parts), count])
    return sums


def _means(
    by_kind: dict[str, Floats], features: tuple[str, ...]
) -> tuple[int, tuple[str, ...], dict[str, Mean]]:
    means = {}
    for kind, (size, value, errors, count) in by_kind.items():
        safe = np.where(count > 0, count, np.nan)
        means[kind] = Mean(size / safe, value / safe, errors / safe)
    return int(by_kind["value"][3].max(initial=0)), features, means


# -- two runs ------------------------------------------------------------------------------------------------

# Rows of two nights are two samples, independent of each other. With the same model, options and background,
# what is written of a row is a function of the row, whatever errors it was computed with: the rows' spread is
# all by which two means can differ. Otherwise the errors of one run's rows may have a common part, as those
# from one pool have, which no mean reduces: the mean standard error bounds it.

# Wrong alarms in a hundred comparisons of nights that do not differ, of all quantities together
LEVEL = 0.01
# Rows with a warning, or without, up to which shares are compared by Fisher's exact test
_FEW = 100
_NAMES = {"contribution": "contribution", "value": "coefficient"}


class _Spread(NamedTuple):
    """Counts, means and sums of squared deviations of columns; sums of two are of all their rows."""

    rows: Floats  # without NaN
    mean: Floats
    squares: Floats

    @classmethod
    def of(cls, values: Floats) -> _Spread:
        count = (~np.isnan(values)).sum(axis=0)
        mean = np.nansum(values, axis=0) / np.maximum(count, 1)
        return cls(count, mean, np.nansum((values - mean) ** 2, axis=0))

    def __add__(self, other: Any) -> _Spread:
        count = self.rows + other.rows
        weight, shift = other.rows / np.maximum(count, 1), other.mean - self.mean
        squares = self.squares + other.squares + shift**2 * self.rows * weight
        return _Spread(count, self.mean + weight * shift, squares)

    @property
    def variance(self) -> Floats:  # of a row; NaN where there is one row or none
        return self.squares / np.where(self.rows > 1, self.rows - 1, np.nan)


class _Output(NamedTuple):
    """Sums of an output: predictions (1), each kind of number (3d: numbers, sizes, errors), and warnings."""

    prediction: _Spread
    numbers: dict[str, _Spread]
    warnings: Counter[str]

    def __add__(self, other: Any) -> _Output:
        numbers = {kind: spread + other.numbers[kind] for kind, spread in self.numbers.items()}
        return _Output(self.prediction + other.prediction, numbers, self.warnings + other.warnings)


class _Run(NamedTuple):
    rows: int
    errors: int
    features: tuple[str, ...]
    outputs: dict[str, _Output]

    @classmethod
    def of(cls, frames: Iterable[Any]) -> _Run:
        errors, features, outputs = 0, tuple[str, ...](), dict[str, _Output]()
        for frame in frames:
            good = frame.filter(nw.col("error").is_null())
            errors += len(frame) - len(good)  # one line of each row
            features = features or features_in(good)
            for output in good["output"].unique(maintain_order=True).to_list():
                its = _output_of(good.filter(nw.col("output") == output), features)
                outputs[output] = outputs[output] + its if output in outputs else its
        explained = max((int(its.prediction.rows[0]) for its in outputs.values()), default=0)
        return cls(explained + errors, errors, features, outputs)


def _output_of(lines: Any, features: tuple[str, ...]) -> _Output:
    times = len(features) if "feature" in lines.columns else 1  # lines of a row
    numbers = {}
    for kind in _ORDER:
        values = numbers_of(lines, kind, features)
        if values is not None:
            errors = numbers_of(lines, ERRORS[kind], features)
            errors = np.zeros_like(values) if errors is None else errors
            numbers[kind] = _Spread.of(np.column_stack([values, np.abs(values), errors]))
    prediction = lines["prediction"].to_numpy()[::times, None]
    return _Output(_Spread.of(prediction), numbers, _codes(lines, len(features)))


class Drift(NamedTuple):
    """A mean or a share in two runs; `RunComparison` states what its fields mean."""

    quantity: str
    output: str
    name: str
    earlier: float
    later: float
    change: float
    error: float
    p_value: float
    size: float
    changed: bool = False

    @property
    def errors(self) -> float:
        """The change in units of its standard error; 0 if nothing changed."""
        if not self.error:
            return math.copysign(math.inf, self.change) if self.change else 0.0
        return self.change / self.error


@dataclass(frozen=True)
class RunComparison:
    """Which means and shares of two runs differ by more than the choice of their rows explains.

    Parameters
    ----------
    earlier, later
        The folders.
    rows, errors
        Rows of both, and how many of these have no explanation.
    level
        The probability that anything is reported as changed where nothing has: Holm's correction, which
        holds for all quantities together, whatever their dependence.
    changes
        Quantities; those that changed first, by size, then the others by p-value. See `to_frame`.
    notes
        In what the runs differ besides their rows (model, options, versions, background), and what limits
        the comparison.

    Examples
    --------
    >>> comparison = limes.scale.compare_runs("explained/monday", "explained/tuesday")  # doctest: +SKIP
    >>> comparison.to_frame().query("changed")[["quantity", "name", "change"]]  # doctest: +SKIP
    """

    earlier: str
    later: str
    rows: tuple[int, int]
    errors: tuple[int, int]
    level: float
    changes: tuple[Drift, ...]
    notes: tuple[str, ...]

    @property
    def changed(self) -> tuple[Drift, ...]:
        """The quantities that changed, largest first."""
        return tuple(change for change in self.changes if change.changed)

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a line a quantity, in order, as a frame of the library ``backend``.

        ``quantity`` is "mean prediction", "mean contribution", "mean |contribution|" (or of coefficients,
        where a run has no contributions), "rows with a warning" or "rows with errors"; ``output``; ``name``
        of the column, or the warning's code; ``earlier``, ``later`` and ``change``; ``error``, the standard
        error of the change; ``p_value``, corrected for the number of quantities, NaN where a run has too few
        rows; ``size``, the change in standard deviations of the earlier run's predictions, of a share over
        √(p (1 - p)) with the share p in both runs together; ``changed``, whether ``p_value <= level``.
        """
        columns = {name: [getattr(change, name) for change in self.changes] for name in Drift._fields}
        return nw.from_dict(columns, backend=backend).to_native()

    def to_json(self, path: str | Path | None = None) -> str:
        """Return all fields as JSON, unknown numbers as null, and write it to ``path`` if there is one."""
        changes = [
            {
                name: None if isinstance(cell, float) and not math.isfinite(cell) else cell
                for name, cell in its
            }
            for its in (change._asdict().items() for change in self.changes)
        ]
        return write_text(json.dumps({**vars(self), "changes": changes}, indent=1, allow_nan=False), path)


def compare_runs(earlier: Any, later: Any, *, level: float = LEVEL) -> RunComparison:
    """Compare the means of two finished runs of ``limes explain-table``, column by column.

    Parameters
    ----------
    earlier, later
        The output folders, or URLs of a store.
    level
        The probability of a false alarm in the whole comparison, by Holm's correction.

    Returns
    -------
    RunComparison
        Means of predictions, contributions and |contributions|, shares of warnings and of errors.

    Raises
    ------
    InputError
        A folder is not finished, or the level is no probability.

    Notes
    -----
    Rows are taken as independent samples of two nights: means are compared by Welch's t-test, and shares by
    the normal approximation, or Fisher's exact test where they are rare. Where models, options or backgrounds
    differ, the mean standard errors of both runs are added to the error.

    Examples
    --------
    >>> comparison = limes.scale.compare_runs("explained/monday", "explained/tuesday")  # doctest: +SKIP
    >>> [change.name for change in comparison.changed]  # doctest: +SKIP
    """
    require("pyarrow", "compare_runs", package="'limes[scale]'")
    from limes.scale._parts import unlike

    check_probability("level", level)
    records, parts = zip(*(run_and_parts(folder) for folder in (earlier, later)), strict=True)
    first, second = map(_Run.of, parts)
    notes = unlike(*records)
    numbers = [{name: cell for name, cell in record.items() if name != "output"} for record in records]
    changes = [*_changes(first, second, has_other_errors=bool(unlike(*numbers)))]
    shared = len(records[0]["input"].items() & records[1]["input"].items())
    if shared:
        notes.append(
            f"both runs explained {wording.count(shared, 'file')}: errors, of independent rows, are too large"
        )
    notes += _limits(first, second)
    return RunComparison(
        str(earlier),
        str(later),
        (first.rows, second.rows),
        (first.errors, second.errors),
        level,
        tuple(_in_order(_holm(changes, level))),
        tuple(notes),
    )


def _limits(first: _Run, second: _Run) -> Iterator[str]:
    for one, other, which in ((first, second, "earlier"), (second, first, "later")):
        if not one.outputs:
            yield f"the {which} run has no row with an explanation, so that no mean is compared"
        elif other.outputs and (alone := [*(one.outputs.keys() - other.outputs.keys())]):
            yield f"only the {which} run has outputs {listed(sorted(alone))}"
        if other.features and (alone := [name for name in one.features if name not in other.features]):
            yield f"only the {which} run has columns {listed(alone)}"


def _changes(first: _Run, second: _Run, *, has_other_errors: bool) -> Iterator[Drift]:
    for output in first.outputs:
        if output in second.outputs:
            yield from _changes_of_output(output, first, second, has_other_errors)
    yield from _share("rows with errors", "", "", (first.errors, first.rows), (second.errors, second.rows))


def _changes_of_output(output: str, first: _Run, second: _Run, has_other_errors: bool) -> Iterator[Drift]:
    a, b = first.outputs[output], second.outputs[output]
    deviations = np.sqrt([a.prediction.variance[0], b.prediction.variance[0]])
    unit = next((float(sd) for sd in deviations if sd > 0), math.nan)
    yield from _means_of("mean prediction", output, {"": (0, 0)}, a.prediction, b.prediction, unit)
    kind = next((kind for kind in _ORDER if kind in a.numbers and kind in b.numbers), "value")
    at = {
        name: (j, second.features.index(name))
        for j, name in enumerate(first.features)
        if name in second.features
    }
    x, y = a.numbers[kind], b.numbers[kind]
    d, e = len(first.features), len(second.features)
    for quantity, shift in ((f"mean {_NAMES[kind]}", 0), (f"mean |{_NAMES[kind]}|", 1)):
        columns = {name: (shift * d + i, shift * e + j) for name, (i, j) in at.items()}
        common = {
            name: math.hypot(x.mean[2 * d + i], y.mean[2 * e + j]) if has_other_errors else 0.0
            for name, (i, j) in at.items()
        }
        yield from _means_of(quantity, output, columns, x, y, unit, common)
    rows = int(a.prediction.rows[0]), int(b.prediction.rows[0])
    for code in sorted(a.warnings | b.warnings):
        counts = (a.warnings[code], rows[0]), (b.warnings[code], rows[1])
        yield from _share("rows with a warning", output, code, *counts)


def _means_of(
    quantity: str,
    output: str,
    columns: Mapping[str, tuple[int, int]],
    a: _Spread,
    b: _Spread,
    unit: float,
    common: Mapping[str, float] | None = None,
) -> Iterator[Drift]:
    """Welch's t-tests of means, each with the error that its rows may have in common."""
    from scipy.stats import t as student

    for name, (i, j) in columns.items():
        before, after = float(a.mean[i]), float(b.mean[j])
        u, v = float(a.variance[i] / max(a.rows[i], 1)), float(b.variance[j] / max(b.rows[j], 1))
        error = math.sqrt(u + v + (common[name] ** 2 if common else 0.0))
        change = after - before
        if abs(change) <= ROUNDING * (abs(before) + abs(after)) or abs(change) <= ROUNDING * unit:
            change = 0.0
        if math.isnan(error):
            p = math.nan
        elif error and change:
            freedom = (u + v) ** 2 / (u**2 / (a.rows[i] - 1) + v**2 / (b.rows[j] - 1)) if u + v else math.inf
            p = float(2 * student.sf(abs(change) / error, freedom))
        else:
            p = 0.0 if change else 1.0
        yield Drift(quantity, output, name, before, after, change, error, p, abs(change) / unit)


def _share(
    quantity: str, output: str, name: str, first: tuple[int, int], second: tuple[int, int]
) -> Iterator[Drift]:
    from scipy.stats import fisher_exact, norm

    (k, n), (m, o) = first, second
    if not (n and o):
        return
    before, after, both = k / n, m / o, (k + m) / (n + o)
    deviation = math.sqrt(both * (1 - both))
    error, change = deviation * math.sqrt(1 / n + 1 / o), after - before
    if min(k + m, n + o - k - m) < _FEW:
        p = float(fisher_exact([[k, n - k], [m, o - m]])[1])
    else:
        p = float(2 * norm.sf(abs(change) / error))
    size = abs(change) / deviation if deviation else 0.0
    yield Drift(quantity, output, name, before, after, change, error, p, size)


def _holm(changes: Sequence[Drift], level: float) -> Iterator[Drift]:
    """Correct p-values so that with probability 1 - level no quantity is falsely reported (Holm, 1979)."""
    tested = sorted((change for change in changes if not math.isnan(change.p_value)), key=lambda c: c.p_value)
    yield from (change for change in changes if math.isnan(change.p_value))
    largest = 0.0
    for i, change in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - i) * change.p_value))
        yield change._replace(p_value=largest, changed=largest <= level)


def _in_order(changes: Iterable[Drift]) -> list[Drift]:
    def key(change: Drift) -> tuple[bool, float, float]:
        size = math.inf if math.isnan(change.size) else change.size
        errors = 0.0 if math.isnan(change.errors) else abs(change.errors)
        return not change.changed, -size if change.changed else 0.0, -errors

    return sorted(changes, key=key)
