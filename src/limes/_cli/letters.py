"""A letter about one decision: what a file of a table, a model and a threshold say about one row."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from shutil import get_terminal_size, which
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from limes._cli import files
from limes._cli.tables import naming_rows
from limes._explanation.attribution import changed
from limes._explanation.wording import count, number, one_line
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._explanation import Explanation

# Fewer rows say too little of what is usual to pass for a training table; of more some are asked
_FEW_ROWS, _MOST_ASKED = 1000, 1000
# Digits of a SHA-256 that tell files apart
_SHORT = 16
# Characters of a line of the letter in a terminal
_WIDEST = 100
_BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "msedge"),
)
# Seconds that printing a page may take: a browser starts in two
_PATIENCE = 120


@dataclass(frozen=True)
class Inputs:
    """Files that a letter is written from, by their paths from any working directory."""

    model: Path
    table: Path
    background: Path | None
    names: tuple[Path, Path, Path | None]  # as the user wrote them

    @classmethod
    def of(cls, model: Path, table: Path, background: Path | None) -> Inputs:
        paths = files.absolute(model, table, background)
        return cls(paths[0], paths[1], paths[2], (model, table, background))


def write_letter(
    model: Any,
    inputs: Inputs,
    frames: tuple[Any, Any],
    label: str | int,
    *,
    above: float | None,
    below: float | None,
    explaining: Mapping[str, Any],
    changing: Mapping[str, Any],
    outputs: Sequence[files.OutputFile | None],
    browser: Callable[[str, Path], None] | None,
    **words: Any,
) -> None:
    """Explain a row, search for what would have changed its outcome, and write or print the letter."""
    from limes._show.decision import letter_of, page_of

    (row, background), threshold = frames, float(above if above is not None else below or 0.0)
    background = files.as_trained(model, background)
    explainer = files.table_explainer(model, background, explaining)
    with naming_rows([label]):
        explanation: Explanation = explainer(row, ids=[label])
    output = _output(explanation, explaining["output"])
    one = explanation[..., output]
    prediction = float(one.predictions.ravel()[0])
    remark = "" if inputs.background is not None else _own_background(explainer, output, threshold)
    if remark:
        typer.secho(f"limes: {remark}: pass the training table, --background", fg="yellow", err=True)
    still = files.columns_of(changing["exclude"], list(one.feature_names))
    facts = {**one.provenance, **_facts(inputs, len(background), label)}
    facts |= {"unchanged in the contrast": ", ".join(still)} if still else {}
    one = changed(one, provenance=facts)
    # a prediction at the threshold is not beyond it
    is_good = prediction > threshold if above is not None else prediction < threshold
    # what would have changed the outcome leads to the other side
    goal = {"above" if (above is not None) != is_good else "below": threshold}
    rules = files.table_explainer(model, background, {**changing, "exclude": still})
    letter, _ = letter_of(
        one,
        threshold=threshold,
        sign="+" if is_good == (above is not None) else "-",
        contrast=rules.contrast(row, **goal),
        **words,
    )
    if remark:
        letter = replace(letter, limits=(*letter.limits, f"{remark[0].upper()}{remark[1:]}."))
    page, paper, record = outputs
    text = page_of(letter, one)
    if page is not None:
        page.path.write_text(text, encoding="utf-8")
    if paper is not None and browser is not None:
        browser(text, paper.path)
    if record is not None:
        one.to_json(record.path)
    if page is None and paper is None:
        typer.echo(letter.text(min(get_terminal_size().columns, _WIDEST)))
    for file in filter(None, outputs):
        typer.echo(f"written: {file.name}")


def _output(explanation: Explanation, named: Any) -> str | int | None:
    """The output that is decided on: the one that is named, or the only one, or the second of two classes."""
    names = explanation.output_names
    if named is None and len(names) > 2:
        raise InputError(f"the model predicts {', '.join(map(one_line, names))}: pass the one, --output")
    return names[-1]


def _facts(inputs: Inputs, rows: int, label: str | int) -> dict[str, str]:
    """Facts by which a letter can be written again."""
    model, table, background = inputs.names
    learnt_from = f"{table}, the table itself" if background is None else str(background)
    digest = sha256(inputs.model.read_bytes()).hexdigest()[:_SHORT]
    return {
        "background": f"{learnt_from}, {count(rows, 'row')}",
        "model file": f"{model}, SHA-256 {digest}…",
        "row": f"{label} of {table}",
        "date": datetime.now(UTC).date().isoformat(),
    }


def _own_background(explainer: Any, output: Any, threshold: float) -> str:
    """Why the table of the row is no measure of what is usual; "" if it may be one."""
    table, bound = explainer._background.matrix, explainer._model.bound  # noqa: SLF001 - asked as rows are
    reasons = [f"of {count(len(table), 'row')}"] if len(table) < _FEW_ROWS else []
    answers = bound.predict_all(table[:: max(1, len(table) // _MOST_ASKED)])
    if answers.ndim > 1:
        answers = answers[:, list(bound.outputs).index(output)]
    sides = {bool(answer > threshold) for answer in answers.tolist()}
    if len(sides) == 1:
        side = "above" if sides.pop() else "not above"
        reasons.append(f"with predictions all {side} {number(threshold)}")
    if not reasons:
        return ""
    return f"what is usual is learnt from the table of the row itself, {' and '.join(reasons)}"


def catalogue_of(path: Path | None) -> Mapping[str, Any] | None:
    """Sentences for reasons, from a file of JSON."""
    if path is None:
        return None
    try:
        content = json.loads(files.read_text(path))
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f'{path}: pass an object, {{"column": "sentence"}}')
    return content


def print_page() -> Callable[[str, Path], None]:
    """Return what prints a page on paper by a browser, or raise InputError without one."""
    browser = next(filter(None, map(which, _BROWSERS)), None)
    if browser is None:
        raise InputError(
            "--pdf prints by Chromium or Chrome, and neither is on the PATH: install one; or write the page "
            "with --html, open it in any browser and print it there"
        )

    def printed(page: str, path: Path) -> None:
        with TemporaryDirectory(prefix="limes-") as folder:
            source, paper = Path(folder, "letter.html"), Path(folder, "letter.pdf")
            source.write_text(page, encoding="utf-8")
            command = [
                *(browser, "--headless", "--disable-gpu", "--disable-extensions", "--no-first-run"),
                *("--disable-background-networking", f"--user-data-dir={Path(folder, 'profile')}"),
                # the page has no script, and its policy forbids any; as root no sandbox can be made
                *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
                *("--no-pdf-header-footer", f"--print-to-pdf={paper}", source.as_uri()),
            ]
            try:
                run = subprocess.run(  # noqa: S603 - the browser of the PATH, and no shell
                    command, check=False, capture_output=True, timeout=_PATIENCE
                )
                failure = run.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            except (OSError, subprocess.TimeoutExpired) as error:
                failure = str(error)
            content = paper.read_bytes() if paper.is_file() else b""
            if not content.startswith(b"%PDF"):
                raise InputError(
                    f"{browser} printed no page ({one_line(failure)}): write it with --html, open it in any "
                    "browser and print it there"
                )
            path.write_bytes(content)

    return printed
