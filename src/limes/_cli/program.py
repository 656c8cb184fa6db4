"""The commands of ``limes``, and how their errors and exits become exit codes."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from limes import __version__
from limes._checks import did_you_mean, listed, require, without_credentials
from limes._cli import files
from limes._cli.advice import on_command_line
from limes._cli.options import (
    Background,
    Exclude,
    FittedModel,
    Html,
    Id,
    Json,
    MaxCalls,
    Objective,
    Row,
    SharedOptions,
    Sparse,
    with_shared_options,
)
from limes._cli.tables import (
    SHOWN_COLUMNS,
    TableFile,
    background_of_run,
    column_called,
    features_of_run,
    hash_of,
    naming_rows,
    open_table,
    print_comparison,
    print_means,
    print_row_change,
    print_run,
    row_called,
    rows_and_background,
    texts_of_run,
)
from limes._cli.watching import TERMINATED, Terminated, ending_in_order, rows_are_supervised
from limes._explanation.attribution import changed
from limes._explanation.drawing import Printable
from limes._explanation.wording import count, one_line
from limes.exceptions import InputError, LimesError, ModelError

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from limes._diagnostics.diagnosis import Diagnosis
    from limes._explanation import Explanation

_STOPPED, _DRIFT, _SOME_ERRORS, _WRONG = 130, 4, 3, 1
# What streams do with characters that they cannot encode; others raise in the middle of a text
_LENIENT = ("backslashreplace", "replace", "xmlcharrefreplace", "namereplace", "ignore")


class _Commands(TyperGroup):
    """Make an exit from inside of a model an error; the exits of commands are ``typer.Exit``."""

    def invoke(self, ctx: Any) -> Any:
        files.forget_notes()
        try:
            return super().invoke(ctx)
        except SystemExit as error:
            if isinstance(error.__context__, BrokenPipeError):
                raise  # whoever read what is printed has enough, as ``head`` has
            raise ModelError(f"the model, or a library of it, called sys.exit({error.code!r})") from error


app = typer.Typer(
    cls=_Commands,
    help="Explain single predictions: what LIME converges to, exactly where the model can be read.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
@with_shared_options
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
    link: Annotated[
        str, typer.Option(help="softmax or sigmoid of logits; auto is the softmax of a network's; or none.")
    ] = "auto",
    segments: Annotated[
        str, typer.Option(help="quickshift, slic, felzenszwalb, watershed or grid.")
    ] = "quickshift",
    fill: Annotated[str, typer.Option(help="mean, blur or inpaint.")] = "mean",
    hierarchy: Annotated[
        bool | None,
        typer.Option(help="Of a text sentences, then words (default: of long ones); of an image rectangles."),
    ] = None,
    row: Row = "0",
    ids: Id = None,
    background: Annotated[
        Path | None,
        typer.Option(
            help="A table from which bins are learnt; default: the table itself, of more than 20,000 rows "
            "every 2nd, 4th, 8th, ... from the first, so that 10,000 to 20,000 are left."
        ),
    ] = None,
    max_calls: Annotated[
        int | None,
        typer.Option(
            help="Most answers of an unread model behind a row: 4096 by default, or 1000 of an image."
        ),
    ] = None,
    sparse: Sparse = None,
    exclude: Exclude = None,
    objective: Objective = "fidelity",
    html: Html = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Write a page to click through here: a slider of bandwidths, effects."),
    ] = None,
    json: Json = None,
    **options: Any,
) -> None:
    """Explain one row of a table, a text, or an image."""
    if [data, text, text_file, image].count(None) != 3:
        raise InputError("pass one thing to explain: a table, --text, --text-file or --image")
    how = SharedOptions(**options)
    of_tables = (how.categorical, how.dtype, how.drop, how.bins, how.law, how.weights)
    if data is None and (row, ids, *of_tables) != (
        "0",
        None,
        None,
        None,
        None,
        SharedOptions.bins,
        SharedOptions.law,
        SharedOptions.weights,
    ):
        raise InputError(
            "--row, --id, --categorical, --dtype, --drop, --bins, --law and --weights are for tables: leave "
            "them out"
        )
    if data is not None and hierarchy:
        raise InputError("--hierarchy is for texts and images: leave it out")
    image_options = (labels, skip_labels, top, mean, scale, link, segments, fill)
    if image is None and image_options != (None, 0, 3, 0.0, 1.0, "auto", "quickshift", "mean"):
        raise InputError(
            "--labels, --skip-labels, --top, --mean, --scale, --link, --segments, --fill are for images: "
            "leave them out"
        )
    has_table = data is not None
    by_facts = how.is_by_facts(sparse, exclude, objective, max_calls, is_table=has_table, of_one=True)
    outputs = files.check_outputs((html, report, json), (model, data, text_file, image, labels))
    model, data, background, labels = files.absolute(model, data, background, labels)
    target: Any = _read(data, text, text_file, image, how, ids)
    fitted = how.load(model)
    if image is not None:
        chosen = how.of_inputs(fitted, max_calls) | {"hierarchy": bool(hierarchy)}
        chosen |= {"top": top, "link": None if link == "none" else link, "segments": segments, "fill": fill}
        chosen["labels"] = None if labels is None else files.read_text(labels).splitlines()[skip_labels:]
        explanation = _explain_image(fitted, target, mean, scale, chosen)
    elif data is None:
        chosen = how.of_inputs(fitted, max_calls)
        chosen |= {"hierarchy": "auto" if hierarchy is None else hierarchy}
        explanation = _explain_text(fitted, target, chosen)
    else:
        chosen = (
            how.of_rules(fitted, sparse, exclude, objective) if by_facts else how.of_tables(fitted, max_calls)
        )
        explanation = _explain_rows(fitted, target, background, [row], ids, how, chosen)
    page, report_page, document = outputs
    _show(explanation, page, document)
    if report_page is not None:
        explanation.to_report(report_page.path)
        typer.echo(f"written: {report_page.name}")


def _read(
    data: Path | None,
    text: str | None,
    text_file: Path | None,
    image: Path | None,
    how: SharedOptions,
    ids: str | None,
) -> Any:
    if data is not None:
        return open_table(data, how.types, ids)
    if image is not None:
        files.check_exists(image)
        return files.read_image(image)
    return text if text_file is None else files.read_text(text_file)


def _explain_rows(
    fitted: Any,
    table: TableFile,
    background: Path | None,
    rows: list[str],
    ids: str | None,
    how: SharedOptions,
    options: Mapping[str, Any],
) -> Explanation:
    called = [row_called(table, row, ids) for row in rows]
    labels = [label for _, label in called]
    chosen, learnt = rows_and_background(
        fitted, table, background, [place for place, _ in called], ids, how.drop or [], how.types
    )
    explainer = files.table_explainer(fitted, learnt, options)
    explanation: Explanation
    with naming_rows(labels):
        if "k" in options:  # explanations by rules take no ids
            explanation = changed(explainer(chosen), ids=tuple(labels))
        else:
            explanation = explainer(chosen, ids=labels)
    return explanation


def _explain_text(fitted: Any, text: str, options: Mapping[str, Any]) -> Explanation:
    from limes._explainers.text import TextExplainer

    return TextExplainer(fitted, **options)(text)


def _explain_image(
    fitted: Any, image: Any, mean: float, scale: float, options: Mapping[str, Any]
) -> Explanation:
    from limes._explainers.image import ImageExplainer

    preprocess = files.preprocess_of(fitted, mean, scale) if hasattr(fitted, "get_inputs") else None
    if preprocess is not None and (mean, scale) == (0.0, 1.0):
        files.note(
            "the model is called with pixels from 0 to 255 as they are; if it was trained on others, pass "
            "--mean and --scale"
        )
    explanation: Explanation = ImageExplainer(fitted, preprocess=preprocess, **options)(image)
    return explanation


@dataclass(frozen=True)
class _OnCommandLine:
    """A result as it is printed, with options in the place of calls."""

    result: Explanation | Diagnosis
    with_input: bool = True  # whether a text or series is drawn above its table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        kind = type(self.result) if self.with_input else Printable
        for drawn in kind.__rich_console__(self.result, console, options):
            for part in getattr(drawn, "renderables", (drawn,)):
                if isinstance(part, Text) and (text := on_command_line(part.plain)) != part.plain:
                    part.plain = text
                yield part


def _show(
    result: Explanation | Diagnosis, html: files.OutputFile | None, json: files.OutputFile | None
) -> None:
    import rich

    levels = getattr(result, "levels", (result,))
    for level in levels:  # the coarse one first; what was explained is drawn once
        rich.print(_OnCommandLine(level, with_input=level is levels[-1]))
    for output, write in ((html, result.to_html), (json, result.to_json)):
        if output is not None:
            write(output.path)
            typer.echo(f"written: {output.name}")


@app.command("explain-prompt")
def explain_prompt(
    file: Annotated[
        Path,
        typer.Argument(
            help="JSON: a prompt, which is a list of texts and of {sources, by}; or chat messages, explain "
            "and by; and perhaps an answer, or several to choose among, and the model."
        ),
    ],
    *,
    model: Annotated[
        Path | None,
        typer.Option(
            help="The folder of a causal language model, as transformers saves it, or a .gguf file; default: "
            "the file's."
        ),
    ] = None,
    answer: Annotated[
        str | None, typer.Option(help="The answer to explain; default: the file's, or what is written.")
    ] = None,
    by: Annotated[str, typer.Option(help="Parts of the answer: sentence, token, or answer.")] = "sentence",
    max_calls: Annotated[int, typer.Option(min=1, help="Most prompts that the model answers.")] = 64,
    fill: Annotated[str, typer.Option(help="As for PromptExplainer: in the place of what is left out.")] = "",
    cost: Annotated[bool, typer.Option("--cost", help="Say what it costs, and ask nothing.")] = False,
    html: Html = None,
    json: Json = None,
) -> None:
    """Explain which parts of a prompt made a language model answer so."""
    from limes._cli.prompts import load_explainer, read_prompt

    outputs = files.check_outputs((html, json), (file,))
    prompt, stored, named = read_prompt(file)
    its = model or named
    if its is None:
        raise InputError(f"pass --model, or name a model in {file}")
    explainer = load_explainer(its, max_calls=max_calls, fill=fill)
    wanted = stored if answer is None else answer
    if cost:
        typer.echo(str(explainer.cost(prompt, wanted)))
    else:
        _show(explainer(prompt, wanted, by=by), *outputs)


@app.command()
@with_shared_options
def decide(
    model: FittedModel,
    table: Annotated[Path, typer.Argument(help="A table, .csv or .parquet, with the row.")],
    *,
    row: Row = "0",
    ids: Id = None,
    above: Annotated[
        float | None, typer.Option(help="The outcome is good above this prediction: 0.5 is 50 %.")
    ] = None,
    below: Annotated[
        float | None, typer.Option(help="The same where lower is better: good below it.")
    ] = None,
    background: Annotated[
        Path | None,
        typer.Option(
            help="The training table, whose values are what is usual; default: the table itself, of which "
            "other rows then say what is usual."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the letter as a page here.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Print the page here, by Chromium or Chrome.")] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write the record here: the explanation, with its errors.")
    ] = None,
    decision: Annotated[str, typer.Option(help="A sentence on what was decided, such as Declined.")] = "",
    title: Annotated[str | None, typer.Option(help="Title of the letter.")] = None,
    reasons: Annotated[int, typer.Option(min=1, help="How many reasons.")] = 4,
    catalogue: Annotated[
        Path | None,
        typer.Option(help='Sentences for reasons, JSON: {"debt": "Debt is {value}, which costs {effect}."}.'),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--fixed",
            "--exclude",
            help="A column that stays as it is in what would have changed the outcome, or several: a,b; may "
            "be repeated. Reasons and the account have it all the same.",
        ),
    ] = None,
    max_calls: MaxCalls = None,
    **options: Any,
) -> None:
    """Write a letter about one decision: why it was made, and what would have changed it.

    Reasons are values that moved this prediction to its side of the
    threshold, in percentage points of a probability.

    Without --html and --pdf the letter is printed here. Its numbers have no
    errors beside them: these are in the record, --json.
    """
    from limes._cli.letters import Inputs, catalogue_of, print_page, write_letter

    if (above is None) == (below is None):
        raise InputError("pass the threshold that decides: --above 0.5, or --below where lower is better")
    how = SharedOptions(**options)
    how.check_law("limes decide")
    outputs = files.check_outputs((html, pdf, json), (model, table, background, catalogue))
    browser = None if pdf is None else print_page()  # a missing one is reported before minutes of work
    sentences = catalogue_of(catalogue)
    paths = Inputs.of(model, table, background)
    opened, fitted = open_table(paths.table, how.types, ids), how.load(paths.model)
    (place, label) = row_called(opened, row, ids)
    write_letter(
        fitted,
        paths,
        rows_and_background(fitted, opened, paths.background, [place], ids, how.drop or [], how.types),
        label,
        above=above,
        below=below,
        explaining=how.of_tables(fitted, max_calls),
        changing=how.of_rules(fitted, 1, exclude, "fidelity"),
        outputs=outputs,
        browser=browser,
        decision=decision,
        title=title,
        reasons=reasons,
        catalogue=sentences,
    )


@app.command()
@with_shared_options
def diagnose(
    model: FittedModel,
    data: Annotated[
        Path | None,
        typer.Argument(help="A table, .csv or .parquet: the background, as for explain, and the rows."),
    ] = None,
    *,
    text: Annotated[str | None, typer.Option(help="A text to diagnose, in place of a table.")] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(help="Which rows, counted from 0, or their names in the column --id; may be repeated."),
    ] = None,
    ids: Id = None,
    html: Html = None,
    json: Json = None,
    **options: Any,
) -> None:
    """Report when the explanation of a row, or of a text, should not be trusted."""
    from limes._diagnostics.diagnosis import diagnose as run_diagnostics

    if (data is None) == (text is None):
        raise InputError("pass one thing to diagnose: a table, or --text")
    outputs, numbers = files.check_outputs((html, json), (model, data)), [0]
    model, data = files.absolute(model, data)
    how = SharedOptions(**options)
    fitted = how.load(model)
    if data is None:
        explanation = _explain_text(fitted, str(text), how.of_inputs(fitted))
    else:
        chosen = how.of_tables(fitted)
        table = open_table(data, how.types, ids)
        explanation = _explain_rows(fitted, table, None, row or ["0"], ids, how, chosen)
        numbers = [row_called(table, its, ids)[0] for its in row or ["0"]]
    _show(run_diagnostics(explanation).numbered(numbers), *outputs)


@app.command("explain-table")
@with_shared_options
def explain_table(
    model: FittedModel,
    table: Annotated[str, typer.Argument(metavar="IN", help="A .parquet or .csv file, folder or pattern.")],
    out: Annotated[str, typer.Argument(help="A folder: new, or of the same command, which resumes.")],
    *,
    background: Annotated[
        Path | None, typer.Option(help="Table from which bins are learnt; default: evenly spaced rows of IN.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="The features: a,b,c. Default: those the model names, else all but keys."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            "--key",
            help="A column with the rows' names, to copy beside the row's number; may be repeated.",
        ),
    ] = None,
    layout: Annotated[str, typer.Option(help="wide: a line a row. long: a line a row and column.")] = "wide",
    contributions: Annotated[
        bool | None,
        typer.Option(
            "--contributions/--no-contributions",
            help="Columns that add up to the prediction, or none (--no-contributions). Default: where they "
            "are exact within 2 ms a row.",
            show_default=False,
        ),
    ] = None,
    fit: Annotated[
        bool,
        typer.Option(
            "--fit/--no-fit",
            help="R² of LIME's surrogate and of whole effects, and the warnings that follow from these.",
        ),
    ] = True,
    engine: Annotated[str, typer.Option(help="local, dask or spark.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a running cluster; default: workers on this machine.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    rows_per_part: Annotated[int, typer.Option(min=1, help="Rows of a file of OUT.")] = 50_000,
    max_errors: Annotated[
        str, typer.Option(help="Stop if a larger share of the table has no explanation: 0.01 or 1%.")
    ] = "0.5",
    timeout: Annotated[
        float | None, typer.Option(help="Seconds that a part may take; then its rows that hang are errors.")
    ] = None,
    memory_per_worker: Annotated[
        str | None,
        typer.Option(help="Memory that a worker may take, such as 2GB; then rows that need more are errors."),
    ] = None,
    max_calls: MaxCalls = None,
    sparse: Sparse = None,
    exclude: Exclude = None,
    objective: Objective = "fidelity",
    since: Annotated[
        str | None,
        typer.Option(help="Folder of a finished run: explain only files that are new since, number rows on."),
    ] = None,
    summary: Annotated[
        str | None,
        typer.Option(help="Write counts, errors, warnings, means, versions here as JSON when all is done."),
    ] = None,
    **options: Any,
) -> None:
    """Explain every row of a table into Parquet files; the same command resumes an interrupted run.

    Exit codes: 0 every row is explained, 3 some rows have errors, 1 the run failed, 130 Ctrl-C, 143 SIGTERM.
    """
    require("pyarrow", "limes explain-table", package="'limes[scale]'")
    from limes.scale._parts import ROWS, Increment
    from limes.scale._sources import Source
    from limes.scale._stores import place_of
    from limes.scale._summary import run_summary, summary_place, versions_of, write_summary
    from limes.scale._tables import Cluster, check_memory, explain_files

    began = monotonic()
    if scheduler is not None and engine == "local":
        raise InputError("--scheduler goes with --engine dask or --engine spark")
    source = Source.of(table)
    model, background = files.absolute(model, background)  # models may change the working directory
    folder, earlier = place_of(out).absolute(), None if since is None else place_of(since).absolute()
    place = None if summary is None else summary_place(summary, out, source, (model, background))
    written = None if place is None else place.absolute()
    how = SharedOptions(**options)
    how.check_law("limes explain-table")
    are_all = how.output == "all"
    how = replace(how, output=None) if are_all else how
    fitted = how.load(model)
    files.note_of_guess(table, source.dialect)
    files.refuse_dropped(how.drop or [], fitted, source.schema.names)
    names = features_of_run(columns, fitted, source, [*(key or []), *(how.drop or [])])
    source = replace(source, texts=texts_of_run(fitted, names, how.types, source))
    learnt_from = source
    if earlier is not None and background is None:
        learnt_from = Increment.of(source, earlier, folder).beginning(source)
    rows = background_of_run(background, learnt_from, names, how.types, fitted)
    if how.is_by_facts(sparse, exclude, objective, max_calls):
        chosen = how.of_rules(fitted, sparse, exclude, objective)
    else:
        chosen = how.of_tables(fitted, max_calls)
    explainer = files.table_explainer(fitted, rows, chosen)
    # what determines the explanations: the output folder compares a later run with it
    run: dict[str, Any] = {
        "versions": versions_of(fitted),
        "model": hash_of(model),
        "background": ROWS if background is None else hash_of(background),
        "columns": names,
        "options": chosen,
    }
    memory = None if memory_per_worker is None else check_memory(memory_per_worker)
    cluster = Cluster(workers, scheduler, timeout, memory=memory)
    if engine == "local" and workers == 1 and not cluster.has_limits:
        cluster = replace(cluster, supervised=rows_are_supervised())
    try:
        with ending_in_order():
            tally = explain_files(
                source,
                explainer,
                folder,
                run=run,
                layout=layout,
                keys=key or [],
                contributions="auto" if contributions is None else contributions,
                outputs="all" if are_all else "shown",
                fit=fit,
                rows_per_part=rows_per_part,
                engine=engine,
                cluster=cluster,
                max_errors=max_errors,
                since=earlier,
            )
    except (KeyboardInterrupt, Terminated) as stop:
        typer.secho("limes: stopped; the same command resumes from the finished parts", err=True)
        raise typer.Exit(TERMINATED if isinstance(stop, Terminated) else _STOPPED) from None
    print_run(tally, explainer, out, chose=contributions is not None)
    if written is not None:
        seconds = monotonic() - began
        result = run_summary(
            folder, tally, method=explainer.method, seconds=seconds, versions=run["versions"]
        )
        write_summary(written, result)
        typer.echo(f"written: {place}")
    if tally.errors:
        raise typer.Exit(_SOME_ERRORS)


@app.command()
def summary(
    out: Annotated[str, typer.Argument(help="A folder of explain-table.")],
    *,
    output: Annotated[
        str | None,
        typer.Option(help="A class, or what is predicted. Default: all; of two classes the second."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many columns to show.")] = SHOWN_COLUMNS,
) -> None:
    """Show what matters in a table of explanations: mean contributions of its columns, largest first.

    The run must be finished: exit code 1 if it is not, or if a part was lost, changed or added.
    """
    require("pyarrow", "limes summary", package="'limes[scale]'")
    from limes.scale._summary import means_of, parts_of

    outputs = means_of(parts_of(out))
    if not outputs:
        typer.echo(f"{out}: no rows with an explanation")
        return
    names = [its.output for its in outputs]
    if output is not None and output not in names:
        raise InputError(
            f"--output {output}: no such output{did_you_mean(output, names)}; it has {listed(names)}"
        )
    usual = names[1:] if len(names) == 2 else names
    for its in outputs:
        if its.output in (usual if output is None else [output]):
            print_means(its, top)


@app.command()
def compare(
    earlier: Annotated[str, typer.Argument(help="A folder of explain-table, finished.")],
    later: Annotated[str, typer.Argument(help="Another one.")],
    *,
    level: Annotated[
        float, typer.Option(min=0, max=1, help="Probability of a false alarm in the whole comparison.")
    ] = 0.01,
    least: Annotated[
        float, typer.Option(min=0, help="Smallest change that --fail-on-drift minds, in sd of predictions.")
    ] = 0.0,
    top: Annotated[int, typer.Option(min=1, help="How many lines to show.")] = SHOWN_COLUMNS,
    json: Annotated[str | None, typer.Option(help="Write all changes as JSON here.")] = None,
    fail_on_drift: Annotated[
        bool, typer.Option("--fail-on-drift", help="Exit code 4 if something changed, by --least or more.")
    ] = False,
    account: Annotated[
        str | None, typer.Option(help="A row's key: what of the change of its prediction is which column.")
    ] = None,
) -> None:
    """Compare two runs: which mean contributions, predictions, shares of warnings and errors changed.

    With --account one row instead: its later base and contributions, less the earlier ones.

    Exit codes: 0, with --fail-on-drift 4 if something changed; 1 if a folder could not be compared.
    """
    require("pyarrow", "limes compare", package="'limes[scale]'")
    from limes.scale import compare_runs, row_changes
    from limes.scale._stores import place_of
    from limes.scale._summary import write_summary

    place = None if json is None else place_of(json)
    if account is not None:
        changes = row_changes(earlier, later, account)
        for its in changes:
            print_row_change(its, top)
        if place is not None:
            write_summary(place, f"[{','.join(its.to_json() for its in changes)}]")
            typer.echo(f"written: {place}")
        return
    result = compare_runs(earlier, later, level=level)
    print_comparison(result, top)
    if place is not None:
        write_summary(place, result.to_json())
        typer.echo(f"written: {place}")
    if fail_on_drift and any(not change.size < least for change in result.changed):
        raise typer.Exit(_DRIFT)


@app.command()
def verify(
    out: Annotated[str, typer.Argument(help="A folder of explain-table.")],
    *,
    table: Annotated[str | None, typer.Option("--input", help="The table that was explained.")] = None,
) -> None:
    """Check a folder of explanations: its parts, their checksums and rows, and the input if it is passed.

    Exit codes: 0 if everything is as it was written, 1 if not.
    """
    require("pyarrow", "limes verify", package="'limes[scale]'")
    from limes.scale._parts import verify as check
    from limes.scale._sources import Source

    result = check(out, None if table is None else Source.of(table))
    for problem in result.problems:
        typer.secho(one_line(problem), fg="red", err=True)
    typer.echo(
        f"{out}: {count(result.parts, 'part')}, {count(result.rows, 'row')}, {result.errors:,} with errors"
    )
    if result.problems:
        raise typer.Exit(_WRONG)


@app.command("app")
@with_shared_options
def what_if(
    model: FittedModel,
    table: Annotated[Path, typer.Argument(help="A table, .csv or .parquet: the background, and the rows.")],
    *,
    row: Annotated[
        str, typer.Option(help="Which row to start from, counted from 0; or its name in the column --id.")
    ] = "0",
    ids: Annotated[
        str | None, typer.Option("--id", help="A column with the rows' names, by which they are searched.")
    ] = None,
    background: Background = None,
    max_calls: MaxCalls = None,
    facts: Annotated[int, typer.Option(min=1, help="Most facts of the short rule.")] = 4,
    exclude: Exclude = None,
    objective: Objective = "fidelity",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    **options: Any,
) -> None:
    """Serve a page on this machine: move a row's values, see prediction and explanation change.

    The page is served to this machine alone, at an address that holds a secret; Ctrl-C ends it.
    """
    import narwhals as nw

    from limes._app.server import serve
    from limes._app.session import WhatIfSession

    model, background = files.absolute(model, background)
    how = SharedOptions(**options)
    how.check_law("limes app")
    texts = how.types.texts if ids is None else [*how.types.texts, ids]
    frame = files.read_table(table, texts)
    how.types.check(frame.columns)
    frame = how.types.cast(frame)
    names = [*map(str, range(len(frame)))]  # of the rows
    if ids is not None:
        names = [one_line(str(name)) for name in frame[column_called(frame.columns, ids)].to_list()]
    start = names.index(row) if row in names else int(row) if row.isdecimal() else None
    if start is None:
        raise InputError(f"--row {row}: no row has this name, by --id COLUMN, and it is no position from 0")
    fitted = how.load(model)
    files.refuse_dropped(how.drop or [], fitted, frame.columns)
    dropped = [*(how.drop or []), *([] if ids is None else [ids])]
    features = files.feature_names(frame.columns, fitted, dropped)
    frame, faults = files.with_numbers(table, frame, features, fitted, how.types)
    rows = files.as_trained(fitted, files.selected(frame, features))
    faults |= files.refused_rows(fitted, rows, faults)
    if start in faults:
        raise InputError(f"--row {start} of {table} could not be read: {faults[start]}")
    if faults:  # the page lists the others
        good = files.good_rows(table, len(frame), faults)
        rows, names = nw.from_native(rows, eager_only=True)[good].to_native(), [names[i] for i in good]
        start = bisect_left(good, start)
    learnt = rows
    if background is not None:
        learnt = files.without_refused(fitted, files.read_background(background, fitted, dropped, how.types))
    columns = len(features)

    def rules(output: str | int | None) -> Any:
        chosen = how.of_rules(fitted, min(facts, columns), exclude, objective)
        chosen["bins"] = chosen["bins"] or "quartile"  # slopes have no conditions
        return files.table_explainer(
            fitted, learnt, chosen if output is None else {**chosen, "output": output}
        )

    explainer = files.table_explainer(fitted, learnt, how.of_tables(fitted, max_calls))
    desk = WhatIfSession(explainer, rows, names, rules, start)
    desk.table()  # explains the row to start from, so that errors come before the page

    def announce(address: str) -> None:
        text = "Ctrl-C ends it. The address is secret: it opens the model and the table."
        typer.echo(f"limes app: {address}\n{text}")

    serve(desk, port=port, browser=browser, announce=announce)


# The row of the demonstration: called malignant by the forest, and benign
_TUMOUR = 13
_NEXT = """
Open the pages in a browser. Then, with a model and a table of yours:

  limes explain model.skops table.csv --row 3 --html page.html   explain row 3
  limes app model.skops table.csv                                move values, and see what changes
  limes explain-table model.skops table.parquet explained        explain every row"""


@app.command()
def demo(
    *,
    html: Html = Path("limes-demo.html"),
    report: Annotated[
        Path | None, typer.Option(help="Write the report of all rows, to search and sort, here.")
    ] = Path("limes-demo-report.html"),
    json: Json = None,
    png: Annotated[Path | None, typer.Option(help="Write a waterfall here.")] = Path("limes-demo.png"),
) -> None:
    """Train a random forest on scikit-learn's tumours and explain its predictions exactly."""
    import rich
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    from limes._explainers.tabular import TabularExplainer
    from limes._rules.explainer import SparseExplainer
    from limes._rules.literals import Literals

    tumours = load_breast_cancer(as_frame=find_spec("pandas") is not None)
    table, rows, classes, _ = train_test_split(
        tumours.data, tumours.target_names[tumours.target], random_state=0
    )
    model = RandomForestClassifier(100, random_state=0).fit(table, classes)
    start = monotonic()
    explanations = TabularExplainer(model, table, output="malignant")(rows)
    typer.echo(
        f"A random forest of 100 trees explained exactly at {len(explanations)} tumours, in "
        f"{monotonic() - start:.1f} s. One that it calls malignant, and that is benign:\n"
    )
    explanation = explanations[_TUMOUR]
    rich.print(explanation)
    typer.echo("\nWhat would change the answer?\n")
    facts = SparseExplainer(model, literals=Literals.fit(table), output="malignant")
    rich.print(facts.contrast(rows[_TUMOUR : _TUMOUR + 1], below=0.5))

    def draw(path: Path) -> None:
        figure = Figure(figsize=(9.0, 4.6), layout="constrained")
        FigureCanvasAgg(figure)
        explanation.plot.waterfall(ax=figure.subplots())
        figure.savefig(path, dpi=130)

    def write_report(path: Path) -> None:
        explanations.to_report(path, title=f"{len(explanations)} tumours")

    typer.echo("")
    for path, write, content in (
        (html, explanation.to_html, "this tumour's page"),
        (report, write_report, "all tumours, to search, sort and click through"),
        (png, draw, "the picture of README.md"),
        (json, explanation.to_json, "the same for programs"),
    ):
        if path is not None:
            write(path)
            typer.echo(f"written: {path}  {content}")
    typer.echo(_NEXT)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"limes {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run() -> int:
    """Run the command line and return its exit code; errors of limes are printed without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors not in _LENIENT:
            stream.reconfigure(errors="backslashreplace")  # cp1252 has no β, nor what a column may be called
    try:
        app()
    except LimesError as error:
        text = on_command_line(str(error))
        # names and cells are data, and so are paths
        typer.secho(f"limes: {one_line(without_credentials(text))}", fg="red", err=True)
        return 1
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
