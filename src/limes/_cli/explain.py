"""``limes explain MODEL DATA --row 3`` (or ``--text``, ``--image``), ``diagnose``, ``demo``, and ``app``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limes._cli.files import (
    Background,
    Bandwidth,
    Bins,
    Drop,
    Exclude,
    FittedModel,
    Law,
    MaxCalls,
    Method,
    Output,
    Seed,
    Sparse,
    Trust,
    TrustPickle,
    Weights,
    check_exists,
    check_outputs,
    check_sparse,
    load_model,
    output_of,
    parse_bins,
    read_image,
    read_table,
    read_text,
    select_features,
    table_explainer,
)
from limes._explanation.wording import one_line
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limes._app.desk import Desk
    from limes._diagnostics.diagnosis import Diagnosis
    from limes._explanation import Explanation
    from limes.models._calling.networks import Preprocess

Html = Annotated[Path | None, typer.Option(help="Write a self-contained HTML page here.")]
Report = Annotated[
    Path | None, typer.Option(help="Write a page to click through here: a slider of bandwidths, effects.")
]
Json = Annotated[Path | None, typer.Option(help="Write the result as JSON here.")]


def explain(
    model: Annotated[
        Path,
        typer.Argument(
            help="A fitted model: .skops, .onnx, XGBoost's .json or .ubj, LightGBM's .txt, CatBoost's .cbm, "
            "or .joblib / .pkl with --trust-pickle."
        ),
    ],
    data: Annotated[
        Path | None, typer.Argument(help="A table, .csv or .parquet: the background, and the row.")
    ] = None,
    *,
    text: Annotated[str | None, typer.Option(help="A text to explain, in place of a table.")] = None,
    text_file: Annotated[Path | None, typer.Option(help="A file with the text, in UTF-8.")] = None,
    image: Annotated[Path | None, typer.Option(help="An image to explain, in place of a table.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Names of the classes of an image's model, one a line.")
    ] = None,
    skip_labels: Annotated[int, typer.Option(min=0, help="Lines of --labels before the first name.")] = 0,
    top: Annotated[int, typer.Option(min=1, help="How many classes of an image to explain.")] = 3,
    mean: Annotated[float, typer.Option(help="An ONNX model gets (pixels - mean) / scale ...")] = 0.0,
    scale: Annotated[float, typer.Option(help="... of pixels from 0 to 255.")] = 1.0,
    link: Annotated[str | None, typer.Option(help="softmax or sigmoid, if the model returns logits.")] = None,
    segments: Annotated[
        str, typer.Option(help="quickshift, slic, felzenszwalb, watershed or grid.")
    ] = "quickshift",
    fill: Annotated[str, typer.Option(help="mean, blur or inpaint.")] = "mean",
    row: Annotated[int, typer.Option(min=0, help="Which row of the table to explain, from 0.")] = 0,
    output: Annotated[
        str | None,
        typer.Option(help="margin, probability, or a class label; the default is the model's own."),
    ] = None,
    drop: Drop = None,
    background: Background = None,
    bins: Bins = "quartile",
    law: Law = "truncnorm",
    bandwidth: Annotated[
        float | None, typer.Option(help="Default: 0.75 √(number of columns); 0.25 for texts and images.")
    ] = None,
    weights: Weights = "bins",
    method: Method = "auto",
    max_calls: Annotated[
        int | None,
        typer.Option(
            help="Most answers of an unread model behind a row: 16384 that rows share, or 1000 of an image."
        ),
    ] = None,
    sparse: Sparse = None,
    exclude: Exclude = None,
    seed: Seed = 0,
    html: Html = None,
    report: Report = None,
    json: Json = None,
    trust: Trust = None,
    trust_pickle: TrustPickle = False,
) -> None:
    """Explain one row of a table, a text, or an image."""
    if [data, text, text_file, image].count(None) != 3:
        raise InputError("pass one thing to explain: a table, --text, --text-file or --image")
    if data is None and (row, drop, bins, law, weights) != (0, None, "quartile", "truncnorm", "bins"):
        raise InputError("--row, --drop, --bins, --law and --weights are for tables: leave them out")
    image_options = (labels, skip_labels, top, mean, scale, link, segments, fill)
    if image is None and image_options != (None, 0, 3, 0.0, 1.0, None, "quickshift", "mean"):
        raise InputError(
            "--labels, --skip-labels, --top, --mean, --scale, --link, --segments, --fill are for images: "
            "leave them out"
        )
    if sparse is not None:
        dense = (data is None, law != "truncnorm", weights != "bins", bandwidth, max_calls)
        check_sparse(dense != (False, False, False, None, None))
    elif exclude:
        raise InputError("--exclude goes with --sparse")
    check_outputs((html, report, json), (model, data, text_file, image, labels))
    target: Any = _read(data, text, text_file, image)
    fitted = load_model(model, trust=trust, trust_pickle=trust_pickle)
    options: dict[str, Any] = {"output": output_of(output, fitted), "method": method, "rng": seed}
    options |= {k: v for k, v in (("bandwidth", bandwidth), ("max_calls", max_calls)) if v is not None}
    if image is not None:
        options |= {"top": top, "link": link, "segments": segments, "fill": fill}
        options["labels"] = None if labels is None else read_text(labels).splitlines()[skip_labels:]
        explanation = _explain_image(fitted, target, mean, scale, options)
    elif data is None:
        explanation = _explain_text(fitted, target, options)
    else:
        if sparse is None:
            options |= {"law": law, "weights": weights}
        else:
            options |= {"k": sparse, "exclude": exclude or []}
        options |= {"bins": parse_bins(bins)}
        features = select_features(target, fitted, drop or [])
        learnt = None if background is None else select_features(read_table(background), fitted, drop or [])
        explanation = _explain_rows(fitted, features, [row], options, learnt)
    _show(explanation, html, json)
    if report is not None:
        explanation.to_report(report)
        typer.echo(f"written: {report}")


def _read(data: Path | None, text: str | None, text_file: Path | None, image: Path | None) -> Any:
    if data is not None:
        return read_table(data)
    if image is not None:
        check_exists(image)
        return read_image(image)
    return text if text_file is None else read_text(text_file)


def _explain_rows(
    fitted: Any, table: Any, rows: list[int], options: Mapping[str, Any], background: Any = None
) -> Explanation:
    import narwhals as nw

    outside = [row for row in rows if not 0 <= row < len(table)]
    if outside:
        raise InputError(f"--row {outside[0]}: the table has {len(table)} rows, counted from 0")
    frame: Any = nw.from_native(table, eager_only=True)
    explainer = table_explainer(fitted, table if background is None else background, options)
    chosen = frame[rows].to_native()
    explanation: Explanation
    if "k" in options:
        explanation = explainer(chosen)
        return replace(explanation, ids=tuple(rows))
    explanation = explainer(chosen, ids=rows)
    return explanation


def _explain_text(fitted: Any, text: str, options: Mapping[str, Any]) -> Explanation:
    from limes._explainers.text import TextExplainer

    return TextExplainer(fitted, **options)(text)


def _explain_image(
    fitted: Any, image: Any, mean: float, scale: float, options: Mapping[str, Any]
) -> Explanation:
    from limes._explainers.image import ImageExplainer

    preprocess = _preprocess_of(fitted, mean, scale) if hasattr(fitted, "get_inputs") else None
    if preprocess is not None and (mean, scale) == (0.0, 1.0):
        typer.secho(
            "limes: the model is called with pixels from 0 to 255 as they are; if it was trained on others, "
            "pass --mean and --scale",
            fg="yellow",
            err=True,
        )
    explanation: Explanation = ImageExplainer(fitted, preprocess=preprocess, **options)(image)
    return explanation


def _preprocess_of(session: Any, mean: float, scale: float) -> Preprocess:
    """Return layout and size from the model's input; pixels minus the mean, over the scale."""
    from limes.models._calling.networks import Preprocess, layout

    shape = session.get_inputs()[0].shape
    channels = layout(shape)
    sides = shape[2:] if channels == "first" else shape[1:3]
    fixed = len(sides) == 2 and all(isinstance(side, int) for side in sides)
    return Preprocess(mean=mean, scale=scale, channels=channels, size=tuple(sides) if fixed else None)


def diagnose(
    model: FittedModel,
    data: Annotated[
        Path | None, typer.Argument(help="A table, .csv or .parquet: the background, and the rows.")
    ] = None,
    *,
    text: Annotated[str | None, typer.Option(help="A text to diagnose, in place of a table.")] = None,
    row: Annotated[list[int] | None, typer.Option(help="Which rows, from 0; may be repeated.")] = None,
    output: Output = None,
    drop: Drop = None,
    bins: Bins = "quartile",
    law: Law = "truncnorm",
    bandwidth: Annotated[float | None, typer.Option(help="As for explain.")] = None,
    weights: Weights = "bins",
    method: Method = "auto",
    seed: Seed = 0,
    html: Html = None,
    json: Json = None,
    trust: Trust = None,
    trust_pickle: TrustPickle = False,
) -> None:
    """Report when the explanation of a row, or of a text, should not be trusted."""
    from limes._diagnostics.diagnosis import diagnose as run_diagnostics

    if (data is None) == (text is None):
        raise InputError("pass one thing to diagnose: a table, or --text")
    check_outputs((html, json), (model, data))
    fitted = load_model(model, trust=trust, trust_pickle=trust_pickle)
    options: dict[str, Any] = {"output": output_of(output, fitted), "method": method, "rng": seed}
    options |= {} if bandwidth is None else {"bandwidth": bandwidth}
    if data is None:
        explanation = _explain_text(fitted, str(text), options)
    else:
        options |= {"bins": parse_bins(bins), "law": law, "weights": weights}
        explanation = _explain_rows(
            fitted, select_features(read_table(data), fitted, drop or []), row or [0], options
        )
    _show(run_diagnostics(explanation).numbered(row or [0]), html, json)


def demo(
    *,
    html: Html = Path("limes-demo.html"),
    json: Json = None,
    png: Annotated[Path | None, typer.Option(help="Write a waterfall and effects here.")] = Path(
        "limes-demo.png"
    ),
) -> None:
    """Train a random forest on scikit-learn's diabetes data and explain one patient exactly."""
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestRegressor

    from limes._explainers.tabular import TabularExplainer

    patients, progression = load_diabetes(
        return_X_y=True, as_frame=find_spec("pandas") is not None, scaled=False
    )
    model = RandomForestRegressor(100, random_state=0).fit(patients, progression)
    typer.echo(
        "A random forest of 100 trees predicts how diabetes progresses. Patient 3, explained exactly:\n"
    )
    explanation = TabularExplainer(model, patients)(patients[3:4])
    _show(explanation, html, json)
    _show_ladder(explanation, png)


def _show_ladder(explanation: Explanation, png: Path | None) -> None:
    """Print what coefficients, whole effects and a pair capture of one row, and draw the first two."""
    import rich

    (pair,) = explanation.interactions(top=1)
    typer.echo(
        f"\nOf how the model varies around this patient the coefficients capture "
        f"{explanation.fidelity[0]:.0%}, the whole effects of the same columns "
        f"{explanation.additive_fidelity[0]:.0%}, and {' with '.join(pair.features)} {pair.share:.1%} more.\n"
    )
    rich.print(explanation.effects)
    if png is None:
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    explanation.plot.waterfall(ax=left)
    explanation.plot.effect(explanation.top(1).feature_names[0], ax=right)
    figure.savefig(png, dpi=100)
    typer.echo(f"written: {png}")


def _show(result: Explanation | Diagnosis, html: Path | None, json: Path | None) -> None:
    import rich

    rich.print(result)
    for path, write in ((html, result.to_html), (json, result.to_json)):
        if path is not None:
            write(path)
            typer.echo(f"written: {path}")


def what_if(
    model: FittedModel,
    table: Annotated[Path, typer.Argument(help="A table, .csv or .parquet: the background, and the rows.")],
    *,
    row: Annotated[int, typer.Option(min=0, help="Which row to start from, from 0.")] = 0,
    ids: Annotated[
        str | None, typer.Option("--id", help="A column with the rows' names, by which they are searched.")
    ] = None,
    output: Output = None,
    drop: Drop = None,
    background: Background = None,
    bins: Bins = "quartile",
    law: Law = "truncnorm",
    bandwidth: Bandwidth = None,
    weights: Weights = "bins",
    method: Method = "auto",
    max_calls: MaxCalls = None,
    facts: Annotated[int, typer.Option(min=1, help="Most facts of the short rule.")] = 4,
    exclude: Exclude = None,
    seed: Seed = 0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    trust: Trust = None,
    trust_pickle: TrustPickle = False,
) -> None:
    """Serve a page on this machine: move a row's values, see prediction and explanation change.

    The page is served to this machine alone, at an address that holds a secret; Ctrl-C ends it.
    """
    from limes._app.server import serve

    frame = read_table(table)
    names = _names(frame, ids)
    fitted = load_model(model, trust=trust, trust_pickle=trust_pickle)
    dropped = [*(drop or []), *([] if ids is None else [ids])]
    rows = select_features(frame, fitted, dropped)
    learnt = rows if background is None else _background(background, fitted, dropped)
    options = {"output": output_of(output, fitted), "bins": parse_bins(bins), "method": method, "rng": seed}
    of_values = {"law": law, "weights": weights, "bandwidth": bandwidth, "max_calls": max_calls}
    of_rules = {"k": facts, "exclude": exclude or []}
    desk = _desk(fitted, learnt, (options, of_values, of_rules), rows, names, row)
    serve(desk, port=port, browser=browser, announce=_announce)


def _background(path: Path, model: Any, dropped: Sequence[str]) -> Any:
    """Read the background, which need not have the columns that are dropped."""
    table = read_table(path)
    return select_features(table, model, [name for name in dropped if name in table.columns])


def _names(frame: Any, column: str | None) -> list[str]:
    """Return names of the rows: the cells of a column, else their positions."""
    if column is None:
        return [*map(str, range(len(frame)))]
    if column not in frame.columns:
        raise InputError(f"--id {column}: no such column; there are {frame.columns}")
    return [one_line(str(name)) for name in frame[column].to_list()]


def _desk(
    model: Any,
    background: Any,
    options: tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]],
    rows: Any,
    ids: Sequence[str],
    start: int,
) -> Desk:
    """Return the desk; it has explained the row to start from, so that errors come before the page."""
    import narwhals as nw

    from limes._app.desk import Desk

    shared, of_values, of_rules = options
    columns = len(nw.from_native(rows, eager_only=True).columns)

    def rules(output: str | int | None) -> Any:
        chosen = {
            "output": shared["output"] if output is None else output,
            "bins": shared["bins"] or "quartile",  # slopes have no conditions
            "k": min(of_rules["k"], columns),
        }
        return table_explainer(model, background, {**shared, **of_rules, **chosen})

    desk = Desk(table_explainer(model, background, {**shared, **of_values}), rows, ids, rules, start)
    desk.table()
    return desk


def _announce(address: str) -> None:
    typer.echo(
        f"limes app: {address}\nCtrl-C ends it. The address is secret: it opens the model and the table."
    )
