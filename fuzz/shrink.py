"""Make a failing case as small as it still fails, and write it as a script."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from fuzz.options import Options
from fuzz.script import Call, Setup, source_of
from fuzz.tables import TableCase
from fuzz.texts import TextCase
from fuzz.verdict import Verdict

# Arguments without which a model prints, writes files, or is another one each time
_KEPT = {
    "random_state",
    "random_seed",
    "verbose",
    "logging_level",
    "allow_writing_files",
    "thread_count",
    "n_jobs",
}
_PRINTED = "explanation.coefficients.values.tolist(), explanation.coefficients.intercepts.tolist()"
_SIMPLE_COLUMNS = ("r.normal(size=n)", "r.integers(0, 3, n)")
_SIMPLE_TARGETS = ("10.0 * (C[0] > 0)", "(C[0] > 0).astype(int)", "10.0 * (C[0] == 0) + 50")


@dataclass(frozen=True)
class Failure:
    """One row that a case fails on."""

    case: Any
    options: Any
    rows: Any
    verdict: Verdict

    @property
    def weight(self) -> int:
        """How much there is of it: characters of the script, and rows of the background."""
        return (
            len("".join(self.case.setup.lines()))
            + len(repr(self.options.keywords()))
            + len(repr(self.rows))
            + self.case.setup.n
        )


def shrink(case: Any, options: Any, rows: Any, verdict: Verdict, *, seconds: float = 40.0) -> Failure:
    """Try smaller cases until none fails, or time is up; the first that fails in the same way goes on."""
    row = max(verdict.row, 0)
    best = Failure(case, options, rows[row : row + 1], verdict)
    again = _failing(case, options, best.rows, verdict.kind)
    best = best if again is None else again
    stop = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < stop:
        progress = False
        for candidate in _smaller(best):
            if time.monotonic() > stop:
                break
            result = _failing(*candidate, best.verdict.kind)
            if result is not None and result.weight < best.weight:
                best, progress = result, True
                break
    return best


def _failing(case: Any, options: Any, rows: Any, kind: str) -> Failure | None:
    try:
        verdict = case.run().check(options, rows)
    except Exception:  # noqa: BLE001 - a candidate that its library refuses is no candidate
        return None
    return Failure(case, options, rows, verdict) if verdict.kind == kind else None


def _smaller(failure: Failure) -> Iterator[tuple[Any, Any, Any]]:
    case, options, rows = failure.case, failure.options, failure.rows
    for smaller in _options(options, case):
        yield case, smaller, rows
    if isinstance(case, TableCase):
        yield from _fewer_columns(case, options, rows)
    if isinstance(case, TextCase):
        words = rows[0].split()
        for j in range(len(words)):
            yield case, options, [" ".join(words[:j] + words[j + 1 :])]
    unnamed = isinstance(options, Options) and not options.named
    for setup in _setups(case.setup):
        # a model that no longer says which columns are categories would be another case
        if not (unnamed and _categories(setup) != _categories(case.setup)):
            yield replace(case, setup=setup), options, rows
    if isinstance(case, TableCase):
        for row in _rows(rows):
            yield case, options, row


def _categories(setup: Setup) -> list[bool]:
    text = f"{source_of(setup.model)} {setup.fit}"
    return [
        marker in text for marker in ("feature_types", "categorical_feature", "Encoder", "enable_categorical")
    ]


def _options(options: Any, case: Any) -> Iterator[Any]:
    """One option less each."""
    for field in fields(options):
        if field.name in ("categorical", "named", "output", "segments"):
            continue
        if field.name == "law" and field.default not in case.menu.laws:  # the oracle knows no other
            continue
        if getattr(options, field.name) != field.default:
            yield replace(options, **{field.name: field.default})


def _fewer_columns(case: TableCase, options: Options, rows: Any) -> Iterator[tuple[Any, Any, Any]]:
    d = len(case.setup.columns)
    for j in range(max(case.menu.categorical, default=-1) + 1, d):
        if d == 1 or rows.shape[1] != d:
            return
        setup = case.setup.without(j)
        types = setup.model.kwargs.get("feature_types")
        if types:
            kinds = [*types[:j], *types[j + 1 :]]
            setup = replace(
                setup, model=replace(setup.model, kwargs={**setup.model.kwargs, "feature_types": kinds})
            )
        yield replace(case, setup=setup), options.without(j), np.delete(rows, j, axis=1)


def _setups(setup: Setup) -> Iterator[Setup]:
    for n in (10, setup.n // 2, setup.n * 3 // 4):
        if 4 <= n < setup.n:
            yield replace(setup, n=n)
    for model in _models(setup.model):
        yield replace(setup, model=model)
    for simple in _SIMPLE_TARGETS:
        if len(simple) < len(setup.target):
            yield replace(setup, target=simple)
    for j, column in enumerate(setup.columns):
        for simple in _SIMPLE_COLUMNS:
            if len(simple) < len(column):
                columns = (*setup.columns[:j], simple, *setup.columns[j + 1 :])
                yield replace(setup, columns=columns)


def _models(model: Call) -> Iterator[Call]:
    """A model with an argument less, a smaller number, or a part in its place."""
    for key, value in model.kwargs.items():
        others = {k: v for k, v in model.kwargs.items() if k != key}
        if key not in _KEPT:
            yield replace(model, kwargs=others)
        for smaller in _values(value) if key not in _KEPT else ():
            yield replace(model, kwargs={**model.kwargs, key: smaller})
    for i, value in enumerate(model.args):
        before, after = model.args[:i], model.args[i + 1 :]
        if isinstance(value, Call):
            yield value
            for smaller in _models(value):
                yield replace(model, args=(*before, smaller, *after))
        if len(model.args) > 1:
            yield replace(model, args=(*before, *after))


def _values(value: Any) -> Iterator[Any]:
    """Smaller values of an argument."""
    if isinstance(value, Call):
        yield from _models(value)
    elif isinstance(value, int) and not isinstance(value, bool) and value > 1:
        yield from sorted({1, value // 2, value - 1})


def _rows(rows: Any) -> Iterator[Any]:
    """Rounder values."""
    for j in range(rows.shape[1]):
        value = rows[0, j]
        for simple in (0.0, np.round(value), np.round(value, 1)):
            if len(repr(float(simple))) < len(repr(float(value))):
                changed = rows.copy()
                changed[0, j] = simple
                yield changed


def script_of(failure: Failure) -> str:
    """The failure as a script that shows it."""
    case, options = failure.case, failure.options
    lines = ["import limes", *case.setup.lines()]
    names, row = None, ""
    if isinstance(case, TableCase):
        background = case.run().background
        names = None if isinstance(background.like, np.ndarray) else list(background.like.columns)
        row, kind = source_of([background.row(failure.rows[0])]), "Tabular"
        if names is not None:
            row = f"pd.DataFrame({row}, columns={names})"
    elif isinstance(case, TextCase):
        row, kind = repr(failure.rows[0]), "Text"
    else:
        image = failure.rows[0]
        row, kind = f"np.array({image.tolist()}, dtype='{image.dtype}')", "Image"
    keywords = ", ".join(f"{key}={_argument(value)}" for key, value in options.keywords(names).items())
    data = "model, X" if kind == "Tabular" else "model"
    comma = ", " if keywords else ""
    lines.append(f"explanation = limes.{kind}Explainer({data}{comma}{keywords})({row})")
    lines.append(f"print(explanation.method, {getattr(case, 'prints', _PRINTED)})")
    lines.append(f"# result: {_short(failure.verdict.result)}")
    lines.append(
        f"# true:  {_short(failure.verdict.expected)}  (coefficients or contributions, then the constant)"
    )
    lines.append(f"# {failure.verdict.kind}: {failure.verdict.detail}")
    return "\n".join(lines) + "\n"


def _argument(value: Any) -> str:
    return (
        f"np.array({value})"
        if isinstance(value, list) and value and isinstance(value[0], list) and _whole(value)
        else source_of(value)
    )


def _whole(value: Any) -> bool:
    return all(isinstance(cell, int) for row in value for cell in row)


def _short(numbers: Any) -> str:
    return repr([[float(f"{x:.10g}") for x in row] for row in numbers])
