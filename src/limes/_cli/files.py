"""Files that the command line reads: models, tables, texts. No code in them runs without --trust-pickle."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import typer

from limes._checks import SHOWN, did_you_mean, listed, require, without_credentials
from limes._dialects import MISSING, TRIED, WRONG, Dialect, dialect_of, to_usual
from limes._explanation.wording import count, one_line
from limes._names import Names, text_of
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes.models._images import Preprocess

# An archive is a bomb if it is both this large in memory, in bytes, and this many times its size on disk
_PLAUSIBLE, _RATIO = 200 << 20, 100
# Types that skops does not list: arrays of nodes, which every tree of scikit-learn has, and what a
# ColumnTransformer has for a selection of columns by their dtype, as dtype_include=object
_TRUSTED = (
    "builtins.object",
    "numpy.dtype",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
)


def load_model(path: Path, *, trust: list[str] | None, trust_pickle: bool) -> Any:
    check_exists(path)
    if path.suffix not in _LOADERS:
        raise InputError(f"{path}: a model file ends in one of {sorted(_LOADERS)}")
    if path.suffix == ".skops":
        return _load_skops(path, trust or [])
    if _LOADERS[path.suffix] is _load_pickle and not trust_pickle:
        raise InputError(
            f"{path} is a pickle, and loading a pickle can run any code. If the file is your own, add "
            "--trust-pickle; better, save the model with skops.io.dump(model, 'model.skops')"
        )
    return _LOADERS[path.suffix](path)


def _load_skops(path: Path, trust: Sequence[str] = ()) -> Any:
    import skops.io

    from limes.models.readers import LIBRARIES  # imports scipy, which --help does without

    with suppress(BadZipFile, OSError), ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        if size > max(_PLAUSIBLE, _RATIO * path.stat().st_size):
            raise InputError(
                f"{path} would take {size / 1e9:.1f} GB of memory, hundreds of times its own size: models do "
                "not compress so well, so it is refused"
            )
    trusted = [*_TRUSTED, *trust]
    with _loading(path, "skops file"):
        unknown = [t for t in skops.io.get_untrusted_types(file=path) if t not in trusted]
    foreign = [name for name in unknown if name.split(".", 1)[0] not in {"sklearn", *LIBRARIES}]
    if foreign:  # no option to copy: os.system is a type of this kind
        names, others = (
            ", ".join(name for name in unknown if (name in foreign) is wanted) for wanted in (True, False)
        )
        beside = f". It also holds {others}, which need --trust too" if others else ""
        raise InputError(
            f"{path} holds {names}, of no library of models that limes reads. Loading it may run "
            "any code: read what these types are, and pass --trust with the name of each only if the file is "
            f"your own{beside}"
        )
    if unknown:
        options = " ".join(f"--trust {t}" for t in unknown)
        raise InputError(f"{path} holds types that skops does not know: if you trust them, add {options}")
    with _loading(path):
        return skops.io.load(path, trusted=trusted)


def _load_pickle(path: Path) -> Any:
    import joblib

    with _loading(path):
        return joblib.load(path)


def _load_onnx(path: Path) -> Any:
    runtime = require("onnxruntime", "an ONNX model")
    with _loading(path):
        return runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def _load_xgboost(path: Path) -> Any:
    xgboost = require("xgboost", f"reading {path}")
    with _loading(path, "model of XGBoost"):
        booster = xgboost.Booster(model_file=str(path))
        objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
        if not objective.startswith(("binary:", "multi:")):
            return booster
        model = xgboost.XGBClassifier()  # its probabilities have names
        model.load_model(str(path))
        return model


def _load_lightgbm(path: Path) -> Any:
    lightgbm = require("lightgbm", f"reading {path}")
    with _loading(path, "model of LightGBM"):
        return lightgbm.Booster(model_file=str(path))


def _load_catboost(path: Path) -> Any:
    catboost = require("catboost", f"reading {path}")
    with _loading(path, "model of CatBoost"):
        model = catboost.CatBoost().load_model(str(path))
        return catboost.CatBoostClassifier().load_model(str(path)) if len(model.classes_) else model


@contextmanager
def _loading(path: Path, kind: str = "") -> Iterator[None]:
    """Make whatever loading raises an error that names the file, and the kind that it is not."""
    from limes.models._calling.border import FAILURES, Border, failure_text, text_of

    try:
        with Border():
            yield
    except FAILURES as error:
        failure = failure_text(error).removeprefix("raised ")
        if kind:
            reason = text_of(error).split("\n", 1)[0]
            raise InputError(f"{path} is not a {kind}: {reason}") from error
        raise InputError(f"{path} could not be loaded: {failure}") from error


_LOADERS: Mapping[str, Callable[[Path], Any]] = {
    ".skops": _load_skops,
    ".onnx": _load_onnx,
    ".json": _load_xgboost,
    ".ubj": _load_xgboost,
    ".txt": _load_lightgbm,
    ".cbm": _load_catboost,
    ".joblib": _load_pickle,
    ".pkl": _load_pickle,
    ".pickle": _load_pickle,
}


def read_table(path: Path, texts: Sequence[str] = ()) -> Any:
    """A table of narwhals; columns ``texts`` of a CSV file, if it has them, are read as they are written."""
    import narwhals as nw

    check_exists(path)
    readers: Mapping[str, Callable[..., Any]] = {
        ".csv": partial(_read_csv, texts=texts),
        ".csv.gz": partial(_read_csv, texts=texts),
        ".parquet": nw.read_parquet,
    }
    kind = next((ending for ending in readers if path.name.endswith(ending)), None)
    if kind is None:
        raise InputError(f"{path}: a table ends in one of {sorted(readers)}")
    backend = next((name for name in ("pandas", "polars", "pyarrow") if find_spec(name)), None)
    if backend is None:
        raise InputError("reading a table needs a dataframe library: pip install pandas")
    try:
        return readers[kind](str(path), backend=backend)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} could not be read with {backend}: {error}") from error


def _read_csv(path: str, *, backend: str, texts: Sequence[str] = ()) -> Any:
    """A table of CSV, whatever it separates cells by, and in UTF-8, UTF-16 or Windows-1252."""
    import narwhals as nw

    with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
        content = file.read()
    dialect = dialect_of(content)
    options: dict[str, Any]
    if dialect.is_usual:
        options = _with_texts(backend, texts)
        return nw.read_csv(path, backend=backend, **options)  # type: ignore[arg-type]
    note_of_guess(path, dialect)
    source = BytesIO(to_usual(content, dialect))
    if backend == "pandas":
        options = {"sep": dialect.separator, "decimal": dialect.decimal}
    elif backend == "polars":
        options = {"separator": dialect.separator, "decimal_comma": dialect.decimal == ","}
    else:
        pa_csv = import_module("pyarrow.csv")
        options = {
            "parse_options": pa_csv.ParseOptions(delimiter=dialect.separator),
        }
    options |= _with_texts(backend, texts, dialect.decimal)
    library = import_module("pyarrow.csv" if backend == "pyarrow" else backend)
    return nw.from_native(library.read_csv(source, **options), eager_only=True)


def _with_texts(backend: str, texts: Sequence[str], decimal: str = ".") -> dict[str, Any]:
    """Options of a reader of CSV files that keep columns as texts, 007 and all, with the same gaps."""
    if backend == "pandas":
        return {"dtype": dict.fromkeys(texts, str)} if texts else {}
    if backend == "polars":
        kind = import_module("polars").String
        return {"null_values": [*MISSING], "schema_overrides": dict.fromkeys(texts, kind)}
    types = dict.fromkeys(texts, import_module("pyarrow").string())
    options = {"null_values": MISSING, "strings_can_be_null": True, "decimal_point": decimal}
    return {"convert_options": import_module("pyarrow.csv").ConvertOptions(column_types=types, **options)}


# Notes that this command has printed
_noted = set[str]()


def forget_notes() -> None:
    """Begin another command of the same process."""
    _noted.clear()


def note(text: str) -> None:
    """Print a remark on what was read, once in a command: a table and its background may have the same."""
    if text not in _noted:
        _noted.add(text)
        typer.secho(f"limes: {text}", fg="yellow", err=True)


def note_of_guess(path: str | Path, dialect: Dialect) -> None:
    if dialect.is_guess:
        text = (
            "is not in UTF-8: read as Windows-1252 (cp1252), which Excel writes. If letters are wrong, save "
            "it as CSV UTF-8"
        )
        note(f"{without_credentials(str(path))} {text}")


def read_text(path: Path) -> str:
    check_exists(path)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text in UTF-8: {error}") from error


def feature_names(columns: Sequence[str], model: Any, drop: list[str]) -> list[str]:
    """The columns that are features: those the model names, else all but the dropped ones."""
    names_of_table = Names(columns)
    missing = [name for name in drop if not names_of_table.called(name)]
    if missing:
        raise InputError(f"--drop {missing[0]}: no such column; there are {list(columns)}")
    dropped = {place for name in drop for place in names_of_table.called(name)}
    names = features_of(model, columns)
    if not names:
        return [name for place, name in enumerate(columns) if place not in dropped]
    places = [names_of_table.called(name) for name in names]
    absent = [name for name, its in zip(names, places, strict=True) if not its]
    if absent:
        texts = [*map(text_of, columns)]
        near = ", ".join(repr(name) + did_you_mean(name, texts) for name in absent[:SHOWN])
        raise InputError(
            f"the model was fitted on columns that are not in the table: {near}; it has {listed(texts)}"
        )
    return [columns[its[0]] for its in places]


def refuse_dropped(drop: Iterable[str], model: Any, columns: Sequence[Any]) -> None:
    """Raise InputError if a column of ``--drop`` is one that the model takes."""
    features = Names(features_of(model, columns))
    for name in drop:
        if features.called(name):
            raise InputError(
                f"--drop {name}: the model was fitted on this column, and needs it: leave --drop out"
            )


def selected(table: Any, names: Sequence[Any]) -> Any:
    """These columns of a table of narwhals, whose names need not be texts, as a native frame."""
    columns = [*table.columns]
    return table[:, [columns.index(name) for name in names]].to_native()


def read_background(path: Path, model: Any, drop: list[str], types: ColumnTypes | None = None) -> Any:
    """The features of a table from which bins are learnt."""
    types = types or ColumnTypes()
    background = types.cast(read_table(path, types.texts))  # it need not have the columns that are dropped
    names_of_table = Names(background.columns)
    names = feature_names(background.columns, model, [name for name in drop if names_of_table.called(name)])
    background, faults = with_numbers(path, background, names, model, types)
    return selected(background[good_rows(path, len(background), faults)] if faults else background, names)


def features_of(model: Any, columns: Sequence[Any] = ()) -> Sequence[str]:
    """Names of the columns that a model takes, as a table has them; () for one that knows no names."""
    from limes.models._columns import are_numbered, fitted_names, mangled  # imports numpy, as --help does not

    names, stored = fitted_names(model), {mangled(text_of(name)): text_of(name) for name in columns}
    if are_numbered(names) and not all(name in stored for name in names):
        return ()
    return [stored.get(mangled(name), name) for name in names]


def parse_bins(text: str) -> str | int | None:
    if text == "none":
        return None
    if text == "entropy":
        raise InputError("--bins entropy needs the answers of the rows: use limes.TabularExplainer in Python")
    return int(text) if text.isdecimal() else text


def output_of(text: str | None, model: Any) -> str | int | None:
    # for a model without classes a number is the position of an output
    if text is None or not text.isdecimal() or getattr(model, "classes_", None) is not None:
        return text
    return int(text)


class OutputFile(NamedTuple):
    """An output file: its name as the user wrote it, and its path from any working directory."""

    name: Path
    path: Path


def absolute(*paths: Path | None) -> list[Any]:
    """Paths from any working directory: models may change it, when they are loaded or called."""
    return [None if path is None else path.absolute() for path in paths]


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None]) -> list[OutputFile | None]:
    """Return the files to write, or raise InputError if one cannot be written, or is an input file."""
    sources, files = [path.resolve() for path in inputs if path is not None], list[OutputFile | None]()
    for path in outputs:
        files.append(None if path is None else OutputFile(path, path.absolute()))
        if path is None:
            continue
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(f"{path} cannot be written: pass the name of a file in a folder that exists")
        if path.resolve() in sources:
            raise InputError(f"{path} is read by this command: pass another name to write to")
    return files


# Schemes have two letters or more: C:/ is a drive
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]")


def check_exists(path: Path) -> None:
    if url := _URL.match(str(path)):
        raise InputError(
            f"{without_credentials(str(path))}: models, and tables of one row, are read from this machine, "
            f"from no {url[1]} URL: copy the file here"
        )
    if not path.is_file():
        raise InputError(f"{path}: no such file")


def table_explainer(model: Any, background: Any, options: Mapping[str, Any]) -> Any:
    """The explainer of a table: of rules where ``k`` is among the options."""
    import narwhals as nw

    from limes._explainers.tabular import TabularExplainer
    from limes._rules.domain import Domain
    from limes._rules.explainer import SparseExplainer
    from limes._rules.literals import Literals

    background = as_trained(model, background)
    chosen = columns_of(options.get("categorical") or [], nw.from_native(background, eager_only=True).columns)
    of_columns = {"categorical": chosen} if chosen else {}
    if "k" not in options:
        return TabularExplainer(model, background, **{**options, **of_columns})
    of_rules = {name: value for name, value in options.items() if name not in ("bins", "categorical")}
    if options.get("objective") == "certain":  # its facts are values, of which bins would make intervals
        return SparseExplainer(model, domain=Domain.fit(background, categorical=chosen or None), **of_rules)
    literals = Literals.fit(background, options["bins"], categorical=chosen or None)
    return SparseExplainer(model, literals=literals, **of_rules)


def columns_of(options: Iterable[str], columns: Sequence[str]) -> list[str]:
    """Columns that repeated options name, each one column or several with commas between them."""
    return [
        name
        for text in options
        for name in ([text] if text in columns else [part.strip() for part in text.split(",")])
    ]


@dataclass(frozen=True)
class ColumnTypes:
    """Types that the user states for columns: ``--dtype COLUMN=TYPE``."""

    by_name: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Iterable[str] | None) -> ColumnTypes:
        by_name: dict[str, str] = {}
        for option in options or ():
            name, equals, kind = option.rpartition("=")
            if not (equals and name and kind in _TYPES):
                raise InputError(f"--dtype {option}: pass COLUMN=TYPE, with a type of {sorted(_TYPES)}")
            by_name[name] = kind
        return cls(by_name)

    @property
    def texts(self) -> list[str]:
        return [name for name, kind in self.by_name.items() if kind == "text"]

    def check(self, columns: Sequence[str]) -> None:
        """Raise InputError for a column that the table does not have."""
        names = Names(columns)
        for name in self.by_name:
            if not names.called(name):
                texts = [*map(str, columns)]
                raise InputError(
                    f"--dtype {name}: no such column{did_you_mean(name, texts)}; there are {listed(texts)}"
                )

    def cast(self, frame: Any) -> Any:
        """A table of narwhals with its columns cast; it need not have all of them."""
        names = Names(frame.columns)
        for name, kind in self.by_name.items():
            for j in names.called(name):
                column = frame[:, j]
                cells = [_TYPES[kind](value, column.name) for value in column.to_list()]
                frame = frame.with_columns(_series(column, cells, kind))
        return frame


def with_numbers(path: Path, frame: Any, names: Sequence[str], model: Any, types: ColumnTypes) -> Any:
    """A table of narwhals and its cells that are no numbers, in words by their rows, as explain-table has it.

    A column of CSV with few such cells is one of numbers, and they are missing. Columns that the model takes
    for categories, and those whose types the user states, are left as they are.
    """
    from limes.models._encoders import encoded_columns

    faults: dict[int, str] = {}
    if not path.name.endswith((".csv", ".csv.gz")):
        return frame, faults
    encoded, stated = encoded_columns(model, names), Names(types.by_name)
    for j, categories in encoded.items():
        if any(map(_is_missing, frame[:, [*frame.columns].index(names[j])].to_list())):
            note_of_missing(without_credentials(path.name), names[j], categories)
    for name in (name for j, name in enumerate(names) if j not in encoded and not stated.called(name)):
        column = frame[:, list(frame.columns).index(name)]
        cells = column.to_list()
        if not any(isinstance(cell, str) for cell in cells):
            continue
        tried = [number_of(cell) for cell in [cell for cell in cells if not _is_missing(cell)][:TRIED]]
        if tried.count(None) <= WRONG * len(tried):
            numbers = [None if _is_missing(cell) else number_of(cell) for cell in cells]
            for row, (cell, number) in enumerate(zip(cells, numbers, strict=True)):
                if number is None and not _is_missing(cell):
                    faults.setdefault(row, f"column {name!r}: {cell!r} is no number")
            frame = frame.with_columns(_series(column, numbers, "number"))
    return frame, faults


def refused_rows(model: Any, table: Any, faults: Container[int] = ()) -> dict[int, str]:
    """Rows of a native frame with a category that the model's encoder does not have, and refuses, in words.

    The model is asked about one row of each such category, and about no other row, nor about rows with
    ``faults``.
    """
    import narwhals as nw

    from limes.models._encoders import encoded_columns

    frame, predict = nw.from_native(table, eager_only=True), getattr(model, "predict", None)
    refused: dict[int, str] = {}
    for j, stored in encoded_columns(model, frame.columns).items():
        rows, categories = defaultdict[Any, list[int]](list), {*map(_category, stored)}
        for row, value in enumerate(frame[:, j].to_list() if stored and callable(predict) else ()):
            if row not in faults and _category(value) not in categories:
                rows[_category(value)].append(row)
        for value, its in rows.items():
            if failure := _failure(predict, frame[its[:1]].to_native()):
                what = "a missing value" if value is None else repr(value)
                text = f"column {frame.columns[j]!r}: the model refuses {what}: it {failure}"
                refused |= dict.fromkeys(its, text)
    return refused


def _category(value: Any) -> Any:
    return None if _is_missing(value) else value


def _failure(predict: Any, table: Any) -> str:
    """The failure of a model that does not answer, in words; "" if it answers."""
    from limes.models._calling.border import FAILURES, Border, failure_text

    try:
        with Border():
            predict(table)
    except FAILURES as error:
        return failure_text(error)
    return ""


def without_refused(model: Any, background: Any) -> Any:
    """A background, a native frame, without the rows that the model refuses, which are reported."""
    import narwhals as nw

    background = as_trained(model, background)
    faults = refused_rows(model, background)
    if not faults:
        return background
    frame, first = nw.from_native(background, eager_only=True), one_line(next(iter(faults.values())))
    if len(faults) == len(frame):
        raise InputError(f"the model refuses every row of the background: {first}")
    verb, more = ("is", "") if len(faults) == 1 else ("are", "; and others")
    note(f"{count(len(faults), 'row')} of the background {verb} left out: {first}{more}")
    return frame[[row for row in range(len(frame)) if row not in faults]].to_native()


def number_of(cell: Any) -> float | None:
    """The number that is written in a cell of CSV; None without one."""
    if isinstance(cell, str) and "_" in cell:  # which float() reads
        return None
    with suppress(TypeError, ValueError):
        return float(cell)
    return None


def good_rows(path: Path, rows: int, faults: Mapping[int, str]) -> list[int]:
    """The rows without a fault; those with one are reported."""
    report_omitted(path, faults)
    return [row for row in range(rows) if row not in faults]


def report_omitted(path: Path, faults: Mapping[int, str]) -> None:
    """Report the rows that no background has, as they could not be read."""
    if faults:
        first = min(faults)
        verb = "is" if len(faults) == 1 else "are"
        note(
            f"{count(len(faults), 'row')} of {without_credentials(path.name)} {verb} left out: "
            f"row {first}, {one_line(faults[first])}{'; and others' if len(faults) > 1 else ''}"
        )


def _series(like: Any, cells: Sequence[Any], kind: str) -> Any:
    """A column of one type, named as another one."""
    import narwhals as nw

    types = {"text": nw.String, "number": nw.Float64, "bool": nw.Boolean}
    has_gaps = kind == "bool" and None in cells and like.implementation.is_pandas_like()
    dtype: Any = nw.Object if has_gaps else types[kind]  # those of pandas are true or false
    return nw.new_series(like.name, cells, dtype, backend=like.implementation)


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _text(value: Any, name: str) -> str | None:
    return None if _is_missing(value) else value if isinstance(value, str) else _as_text(value, {}, name)


def _number(value: Any, name: str) -> float | None:
    if _is_missing(value) or value == "":
        return None
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"--dtype {name}=number: {value!r} is no number") from error


def _yes_or_no(value: Any, name: str) -> bool | None:
    if _is_missing(value) or value == "":
        return None
    key = str(value).strip().lower().removesuffix(".0")
    if key not in _WORDS:
        raise InputError(f"--dtype {name}=bool: {value!r} is neither true nor false")
    return _WORDS[key]


_WORDS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
_TYPES: Mapping[str, Callable[[Any, str], Any]] = {"text": _text, "number": _number, "bool": _yes_or_no}


def as_trained(model: Any, table: Any) -> Any:
    """The table with the values that the model's encoders have, where a file's reader made others of them.

    A file without types states neither that the code 007 is a text, nor that True is one: a column becomes
    what the categories of its encoder are, texts, numbers, or true and false. A number becomes the only text
    that is this number. A cast is reported.
    """
    import narwhals as nw

    from limes.models._encoders import encoded_columns

    frame = nw.from_native(table, eager_only=True)
    for j, stored in encoded_columns(model, frame.columns).items():
        categories, column = [value for value in stored if not _is_missing(value)], frame[:, j]
        kinds = {*map(_kind, categories)}
        kind = kinds.pop() if len(kinds) == 1 else ""
        cells = _CASTS[kind](column, categories) if kind else None  # dates and others are left as they are
        if cells is not None:
            note_of_cast(column.name, kind, categories[0])
            frame = frame.with_columns(_series(column, cells, kind))
    return frame.to_native()


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if type(value).__name__ in ("bool", "bool_"):
        return "bool"
    return "number" if isinstance(value, int | float) else ""


def _to_texts(column: Any, texts: Sequence[str]) -> list[str | None] | None:
    if column.dtype.is_numeric():
        by_number: dict[float, list[str]] = {}
        for text in texts:
            with suppress(ValueError):
                by_number.setdefault(float(text), []).append(text)
        return [_as_text(value, by_number, column.name) for value in column.to_list()]
    cells = column.to_list()
    flags = {type(value) for value in cells if not _is_missing(value)}
    if {kind.__name__ for kind in flags} - {"bool", "bool_"} or not flags:
        return None
    written = {text.lower(): text for text in texts}
    return [None if _is_missing(value) else written.get(str(value).lower(), str(value)) for value in cells]


def _to_numbers(column: Any, numbers: Sequence[float]) -> list[float | None] | None:  # noqa: ARG001
    cells = [None if _is_missing(value) else value for value in column.to_list()]
    if column.dtype.is_numeric() or not all(isinstance(value, str | bool | None) for value in cells):
        return None
    try:
        return [None if value is None else float(value) for value in cells]
    except ValueError:  # it holds other texts, too: the model itself says what it does with them
        return None


def _to_flags(column: Any, flags: Sequence[bool]) -> list[bool | None] | None:  # noqa: ARG001
    cells = column.to_list()
    if all(_is_missing(value) or type(value).__name__ in ("bool", "bool_") for value in cells):
        return None
    keys = [None if _is_missing(value) else str(value).lower().removesuffix(".0") for value in cells]
    if not all(key is None or key in _WORDS for key in keys):
        return None
    return [None if key is None else _WORDS[key] for key in keys]


_CASTS: Mapping[str, Callable[[Any, Any], Any]] = {
    "text": _to_texts,
    "number": _to_numbers,
    "bool": _to_flags,
}
_KINDS = {"text": "texts", "number": "numbers", "bool": "true and false"}


def note_of_cast(column: Any, kind: str, category: Any) -> None:
    note(
        f"column {one_line(str(column))!r} is read as {_KINDS[kind]}: the model's encoder has those, such as "
        f"{one_line(repr(category))}"
    )


def note_of_missing(where: str, column: Any, categories: Iterable[Any]) -> None:
    """State that a category of the model reads as missing in a CSV file."""
    lost = [value for value in categories if isinstance(value, str) and value in MISSING]
    if lost:
        note(
            f"{where}: cells {lost[0]!r} of column {one_line(str(column))!r} are read as missing, and the "
            "model's encoder has that category: store the table as .parquet to keep it"
        )


def _as_text(value: Any, by_number: Mapping[float, Sequence[str]], name: str) -> str | None:
    if _is_missing(value):
        return None
    texts = by_number.get(float(value), ())
    if len(texts) > 1:
        raise InputError(
            f"column {name!r} holds the number {value:g}, and the model was trained on the texts "
            f"{listed(texts)}: pass --dtype {name}=text, or store the table as .parquet, with the column as "
            "text"
        )
    return texts[0] if texts else f"{value:.17g}"


def read_image(path: Path) -> Any:
    """Return an image file as an array: grey (H, W), or RGB (H, W, 3), upright."""
    import numpy as np

    from limes._explainers.photographs import read_photograph
    from limes.models._images import pixels_of

    picture = read_photograph(path)
    pixels = pixels_of(picture)
    if pixels.ndim == 2 and picture.mode != "L":
        return np.repeat(pixels[..., None], 3, axis=2)
    return pixels[..., :3] if pixels.ndim == 3 else pixels  # without transparency


def preprocess_of(session: Any, mean: float, scale: float) -> Preprocess:
    """Return layout and size from the model's input; pixels minus the mean, over the scale."""
    from limes.models._images import Preprocess, layout

    shape = session.get_inputs()[0].shape
    channels = layout(shape)
    sides = shape[2:] if channels == "first" else shape[1:3]
    fixed = len(sides) == 2 and all(isinstance(side, int) for side in sides)
    return Preprocess(mean=mean, scale=scale, channels=channels, size=tuple(sides) if fixed else None)
