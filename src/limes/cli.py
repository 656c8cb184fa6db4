"""The command line: ``limes explain MODEL DATA --row 3``, ``... --text "..."``, ``... --image photo.jpg``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limes.exceptions import InputError, LimesError

if TYPE_CHECKING:
    from limes.explanation import Explanation

app = typer.Typer(
    help="Explain single predictions: what LIME converges to, exactly where the model can be read.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Html = Annotated[Path | None, typer.Option(help="Write a self-contained HTML page here.")]
Json = Annotated[Path | None, typer.Option(help="Write the explanation as JSON here.")]


def main() -> None:
    """Run the command line; errors that limes raises on purpose are shown without a traceback."""
    try:
        app()
    except LimesError as error:
        typer.secho(f"limes: {error}", fg="red", err=True)
        raise SystemExit(1) from None


@app.command()
def explain(
    model: Annotated[
        Path, typer.Argument(help="A fitted model: .skops, .onnx, or .joblib / .pkl with --trust-pickle.")
    ],
    data: Annotated[
        Path | None, typer.Argument(help="A table, .csv or .parquet: the background, and the row.")
    ] = None,
    *,
    text: Annotated[str | None, typer.Option(help="A text to explain, in place of a table.")] = None,
    text_file: Annotated[Path | None, typer.Option(help="A file with the text, in UTF-8.")] = None,
    image: Annotated[Path | None, typer.Option(help="A photograph to explain, not a table.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Of an image's model: names of its answers, one a line.")
    ] = None,
    skip_labels: Annotated[int, typer.Option(min=0, help="Lines of --labels before the first name.")] = 0,
    top: Annotated[int, typer.Option(min=1, help="How many answers of an image's model to explain.")] = 3,
    mean: Annotated[float, typer.Option(help="An ONNX model is given (pixels - mean) / scale ...")] = 0.0,
    scale: Annotated[float, typer.Option(help="... of pixels from 0 to 255.")] = 1.0,
    link: Annotated[str | None, typer.Option(help="softmax or sigmoid, where a model gives logits.")] = None,
    segments: Annotated[
        str, typer.Option(help="quickshift, slic, felzenszwalb, watershed or grid.")
    ] = "quickshift",
    fill: Annotated[str, typer.Option(help="mean, blur or inpaint.")] = "mean",
    row: Annotated[int, typer.Option(min=0, help="Which row of the table to explain, from 0.")] = 0,
    output: Annotated[
        str | None,
        typer.Option(help="margin, probability, or a class label; the default is the model's own."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column that is no feature (the target); may be repeated.")
    ] = None,
    bins: Annotated[
        str, typer.Option(help="quartile, decile, a number of bins, or none for slopes.")
    ] = "quartile",
    bandwidth: Annotated[
        float | None, typer.Option(help="Default: 0.75 √(number of columns); 0.25 for texts and images.")
    ] = None,
    weights: Annotated[str, typer.Option(help="bins or euclidean.")] = "bins",
    method: Annotated[str, typer.Option(help="auto, exact or sampled.")] = "auto",
    max_calls: Annotated[
        int | None,
        typer.Option(help="How often a model that cannot be read may be asked; 4096, or 1000 for an image."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sampler.")] = 0,
    html: Html = None,
    json: Json = None,
    trust: Annotated[
        list[str] | None, typer.Option(help="A type that a .skops file may hold; may be repeated.")
    ] = None,
    trust_pickle: Annotated[
        bool, typer.Option("--trust-pickle", help="Load a pickle. It can run any code: only your own files.")
    ] = False,
) -> None:
    """Explain one row of a table, a text, or an image."""
    if [data, text, text_file, image].count(None) != 3:
        raise InputError("give one thing to explain: a table, --text, --text-file or --image")
    if data is None and (row, drop, bins, weights) != (0, None, "quartile", "bins"):
        raise InputError("--row, --drop, --bins and --weights are about tables: leave them out")
    about_images = (labels, skip_labels, top, mean, scale, link, segments, fill)
    if image is None and about_images != (None, 0, 3, 0.0, 1.0, None, "quickshift", "mean"):
        raise InputError(
            "--labels, --skip-labels, --top, --mean, --scale, --link, --segments and --fill are about images: "
            "leave them out"
        )
    given: Any = _given(data, text, text_file, image)
    fitted = load_model(model, trust=trust or [], trust_pickle=trust_pickle)
    options: dict[str, Any] = {"output": output, "method": method, "rng": seed}
    options |= {k: v for k, v in (("bandwidth", bandwidth), ("max_calls", max_calls)) if v is not None}
    if image is not None:
        options |= {"top": top, "link": link, "segments": segments, "fill": fill}
        options["labels"] = None if labels is None else read_text(labels).splitlines()[skip_labels:]
        explanation = _of_image(fitted, given, mean, scale, options)
    elif data is None:
        explanation = _of_text(fitted, given, options)
    else:
        options |= {"bins": _bins(bins), "weights": weights}
        explanation = _of_row(fitted, features(given, fitted, drop or []), row, options)
    _show(explanation, html, json)


def _given(data: Path | None, text: str | None, text_file: Path | None, image: Path | None) -> Any:
    """What is to be explained."""
    if data is not None:
        return read_table(data)
    if image is not None:
        from limes.explainers.image_files import read_image

        _exists(image)
        return read_image(image)
    return text if text_file is None else read_text(text_file)


def _of_row(fitted: Any, table: Any, row: int, options: Mapping[str, Any]) -> Explanation:
    from limes.explainers.tabular import TabularExplainer

    if row >= len(table):
        raise InputError(f"--row {row}: the table has {len(table)} rows, counted from 0")
    return TabularExplainer(fitted, table, **options)(table[row : row + 1])


def _of_text(fitted: Any, text: str, options: Mapping[str, Any]) -> Explanation:
    from limes.explainers.text import TextExplainer

    return TextExplainer(fitted, **options)(text)


def _of_image(fitted: Any, image: Any, mean: float, scale: float, options: Mapping[str, Any]) -> Explanation:
    from limes.explainers.image import ImageExplainer
    from limes.explainers.image_files import preprocess_of

    preprocess = preprocess_of(fitted, mean, scale) if hasattr(fitted, "get_inputs") else None
    if preprocess is not None and (mean, scale) == (0.0, 1.0):
        typer.secho(
            "limes: the model is given pixels from 0 to 255 as they are; if it was trained on others, say "
            "--mean and --scale",
            fg="yellow",
            err=True,
        )
    return ImageExplainer(fitted, preprocess=preprocess, **options)(image)


@app.command()
def demo(*, html: Html = Path("limes-demo.html"), json: Json = None) -> None:
    """Train a random forest on scikit-learn's diabetes data and explain one patient exactly."""
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestRegressor

    from limes.explainers.tabular import TabularExplainer

    patients, progression = load_diabetes(
        return_X_y=True, as_frame=find_spec("pandas") is not None, scaled=False
    )
    model = RandomForestRegressor(100, random_state=0).fit(patients, progression)
    typer.echo(
        "A random forest of 100 trees predicts how diabetes progresses. Patient 3, explained exactly:\n"
    )
    _show(TabularExplainer(model, patients)(patients[3:4]), html, json)


def load_model(path: Path, *, trust: list[str], trust_pickle: bool) -> Any:
    """Load a fitted model from a file without running code from it, unless told to.

    Raises
    ------
    InputError
        If the file is not there, its kind is not known, or it would need to be trusted.
    """
    _exists(path)
    if path.suffix not in _LOADERS:
        raise InputError(f"{path}: a model file ends in one of {sorted(_LOADERS)}")
    return _LOADERS[path.suffix](path, trust, trust_pickle)


def _load_skops(path: Path, trust: list[str], trust_pickle: bool) -> Any:  # noqa: ARG001
    import skops.io

    try:
        unknown = [t for t in skops.io.get_untrusted_types(file=path) if t not in trust]
    except Exception as error:
        raise InputError(f"{path} is not a skops file: {error}") from error
    if unknown:
        options = " ".join(f"--trust {t}" for t in unknown)
        raise InputError(f"{path} holds types that skops does not know: if you trust them, add {options}")
    return skops.io.load(path, trusted=trust)


def _load_pickle(path: Path, trust: list[str], trust_pickle: bool) -> Any:  # noqa: ARG001
    if not trust_pickle:
        raise InputError(
            f"{path} is a pickle, and loading a pickle can run any code. If the file is your own, add "
            "--trust-pickle; better, save the model with skops.io.dump(model, 'model.skops')"
        )
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:
        raise InputError(f"{path} could not be loaded: {type(error).__name__}: {error}") from error


def _load_onnx(path: Path, trust: list[str], trust_pickle: bool) -> Any:  # noqa: ARG001
    from limes.explainers.image_files import session_of

    return session_of(path)


_LOADERS: Mapping[str, Callable[[Path, list[str], bool], Any]] = {
    ".skops": _load_skops,
    ".onnx": _load_onnx,
    ".joblib": _load_pickle,
    ".pkl": _load_pickle,
    ".pickle": _load_pickle,
}


def read_table(path: Path) -> Any:
    """Read a .csv or .parquet file with the dataframe library that is installed (a narwhals frame).

    Raises
    ------
    InputError
        If the file is not there or not readable, or no dataframe library is installed.
    """
    import narwhals as nw

    _exists(path)
    readers: Mapping[str, Callable[..., Any]] = {".csv": nw.read_csv, ".parquet": nw.read_parquet}
    if path.suffix not in readers:
        raise InputError(f"{path}: a table ends in one of {sorted(readers)}")
    backend = next((name for name in ("pandas", "polars", "pyarrow") if find_spec(name)), None)
    if backend is None:
        raise InputError("reading a table needs a dataframe library: pip install pandas")
    try:
        return readers[path.suffix](str(path), backend=backend)
    except Exception as error:
        raise InputError(f"{path} could not be read with {backend}: {error}") from error


def read_text(path: Path) -> str:
    """Read a text in UTF-8.

    Raises
    ------
    InputError
        If the file is not there, or is no text in UTF-8.
    """
    _exists(path)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no text in UTF-8: {error}") from error


def features(table: Any, model: Any, drop: list[str]) -> Any:
    """The columns that are features: those the model names, else all but the dropped ones."""
    missing = [name for name in drop if name not in table.columns]
    if missing:
        raise InputError(f"--drop {missing[0]}: no such column; there are {table.columns}")
    wanted = list(getattr(model, "feature_names_in_", [c for c in table.columns if c not in drop]))
    lost = [name for name in wanted if name not in table.columns]
    if lost:
        raise InputError(f"the model was fitted on columns that the table has not: {lost}")
    return table.select(wanted).to_native()


def _exists(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")


def _bins(text: str) -> str | int | None:
    if text == "none":
        return None
    return int(text) if text.isdecimal() else text


def _show(explanation: Explanation, html: Path | None, json: Path | None) -> None:
    import rich

    rich.print(explanation)
    for path, write in ((html, explanation.to_html), (json, explanation.to_json)):
        if path is not None:
            write(path)
            typer.echo(f"written: {path}")
