"""An explanation in other forms: a long data frame, an object of shap's, reasons as sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import ROUNDING, is_wide
from limes._checks import check_choice, did_you_mean, is_count, require
from limes._explanation.explanation import READINGS
from limes._explanation.rules import check_weights, is_certain
from limes._explanation.selection import by_feature, single_row
from limes._explanation.view import (
    Line,
    OutputView,
    contributions,
    is_probability,
    named_account,
    output_position,
    output_title,
    view_row,
    whose_surrogate,
)
from limes._explanation.wording import CONFIDENCE, cell, estimate, number, one_line
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._arrays import Floats, Ints, Objects
    from limes._explanation import Explanation
    from limes._explanation.attribution import Coefficients, Contributions
    from limes._explanation.fit import Effects

_BACKENDS = ("pandas", "polars", "pyarrow")
# What a frame may hold
FRAMES = (*READINGS, "pairs")


def to_frame(explanation: Explanation, backend: Any, of: str) -> Any:
    """A long frame of one reading, with the predictions; or of the pairs of contributions."""
    if backend in FRAMES:
        backend, of = "pandas", backend
    check_choice("of", of, FRAMES)
    if of == "pairs":
        return _frame_of_pairs(explanation, backend)
    if is_certain(explanation):
        return _frame_of_facts(explanation, backend)
    reading = getattr(explanation, of)
    columns = {"value": reading.values, "standard_error": reading.standard_errors}
    if of == "contributions":
        columns |= {"alone": reading.alone, "last": reading.last, "base": reading.base_values}
        return _long_frame(explanation, backend, {**columns, "prediction": explanation.predictions})
    columns |= {"prediction": explanation.predictions, "fidelity": reading.fidelity}
    return _long_frame(explanation, backend, columns)


def frame_of_attribution(reading: Contributions | Coefficients, backend: Any) -> Any:
    """A long frame of one reading alone; of contributions also of their pairs."""
    if backend == "pairs" and reading.kind == "contributions":
        return _frame_of_pairs(reading.explanation, "pandas")
    columns = {"value": reading.values, "standard_error": reading.standard_errors}
    columns |= {"base": reading.base_values, "total": reading.total}
    return _long_frame(reading.explanation, backend, columns)


def _are_whole(ids: Sequence[Any]) -> bool:
    """Whether all names of rows are whole numbers of 64 bits; others are texts, as larger ones are."""
    return all(type(label) is int and -(2**63) <= label < 2**63 for label in ids)


def _frame_of_pairs(explanation: Explanation, backend: Any) -> Any:
    """A line a row, feature, other feature and output."""
    nw, account = _frames(backend), explanation.contributions
    several, names = explanation.predictions.ndim == 2, explanation.feature_names
    values, errors = (each if several else each[..., None] for each in (account.pairs, account.pair_errors))
    shape = values.shape
    rows, features, others, outputs = (axis.reshape(-1) for axis in np.indices(shape))
    whole = _are_whole(explanation.ids)
    ids = [label if whole else _encodable(str(label)) for label in explanation.ids]
    columns = {
        "row": (nw.Int64(), rows),
        "id": (nw.Int64() if whole else nw.String(), [ids[i] for i in rows.tolist()]),
        **dict.fromkeys(("feature", "other", "output"), (nw.Int64(), outputs)),
        "value": (nw.Float64(), np.ascontiguousarray(values).reshape(-1)),
        "standard_error": (nw.Float64(), np.ascontiguousarray(errors).reshape(-1)),
    }
    schema = {name: kind for name, (kind, _) in columns.items()}
    frame = nw.from_dict({name: cells for name, (_, cells) in columns.items()}, schema, backend=backend)
    repeated = {
        "feature": (names, features),
        "other": (names, others),
        "output": (explanation.output_names, outputs),
    }
    return _with_categories(frame.to_native(), backend, repeated)


def _frame_of_facts(explanation: Explanation, backend: Any) -> Any:
    """A line a row and fact that holds for certain, with the answer to a row that has all others."""
    nw, ids, lines = _frames(backend), explanation.ids, list[tuple[Any, ...]]()
    for row, its in enumerate(explanation.certificates):
        without = {
            name: answer
            for names, answer in zip(its.counterexample_facts, its.counterexample_answers, strict=True)
            for name in names
        }
        label, prediction = ids[row], float(explanation.predictions[row])
        for name, fact in zip(its.columns, its.facts, strict=True):
            value = explanation.data[row, explanation.feature_names.index(name)]
            text = None if value is None else _encodable(str(value))
            line = (row, label, name, fact, text, explanation.output_names[0], prediction)
            lines.append((*line, without.get(name, np.nan), its.proved))
    whole = _are_whole(ids)
    if not whole:
        lines = [(row, _encodable(str(label)), *rest) for row, label, *rest in lines]
    schema = {
        "row": nw.Int64(),
        "id": nw.Int64() if whole else nw.String(),
        **dict.fromkeys(("feature", "condition", "data", "output"), nw.String()),
        **dict.fromkeys(("prediction", "without"), nw.Float64()),
        "proved": nw.Boolean(),
    }
    cells = [list(column) for column in zip(*lines, strict=True)] or [[] for _ in schema]
    frame = nw.from_dict(dict(zip(schema, cells, strict=True)), schema, backend=backend)
    repeated = {
        name: _numbered(_encodable(text) or "" for text in cells[place])
        for place, name in ((2, "feature"), (3, "condition"), (5, "output"))
    }
    return _with_categories(frame.to_native(), backend, repeated)


def _long_frame(explanation: Explanation, backend: Any, arrays: Mapping[str, Floats]) -> Any:
    """A line a row, feature and output, with these arrays of features, or of rows and outputs."""
    nw = _frames(backend)
    (n, *several), d = explanation.predictions.shape, len(explanation.feature_names)
    k = several[0] if several else 1
    lines = np.arange(n * d * k)
    rows, features, outputs = lines // (d * k), lines // k % d, lines % k
    ids = explanation.ids
    whole = _are_whole(ids)
    names = ids if whole else [_encodable(str(label)) for label in ids]
    cells, texts = explanation.data.ravel().tolist(), list[str | None]()
    if explanation.data.dtype.kind == "f":  # no missing ones, nor other than plain letters
        texts += map(str, cells)
    else:
        texts += (None if cell is None else _encodable(str(cell)) for cell in cells)

    def numbers(array: Floats) -> Floats:
        array = array if several else array[..., None]
        whole_rows = array if array.ndim == 3 else array[:, None]
        return np.ascontiguousarray(np.broadcast_to(whole_rows, (n, d, k))).reshape(-1)

    # few different texts, of which a line has the number
    conditions, places = _numbered(chain.from_iterable(explanation.conditions))
    repeated = {
        "feature": (explanation.feature_names, features),
        "condition": (conditions, np.repeat(places, k)),
        "output": (explanation.output_names, outputs),
    }
    columns: dict[str, tuple[Any, Any]] = {
        "row": (nw.Int64(), rows),
        "id": (nw.Int64() if whole else nw.String(), _each(names, d * k)),
        "feature": (nw.Int64(), features),
        "condition": (nw.Int64(), repeated["condition"][1]),
        "data": (nw.String(), _each(texts, k)),
        "output": (nw.Int64(), outputs),
        **{name: (nw.Float64(), numbers(array)) for name, array in arrays.items()},
    }
    schema = {name: kind for name, (kind, _) in columns.items()}
    frame = nw.from_dict({name: cells for name, (_, cells) in columns.items()}, schema, backend=backend)
    return _with_categories(frame.to_native(), backend, repeated)


def _each(values: Sequence[Any], times: int) -> list[Any]:
    """Every value several times."""
    return [*values] if times == 1 else [value for value in values for _ in range(times)]


def _numbered(texts: Iterable[str]) -> tuple[list[str], Ints]:
    """The different texts, in the order of their first use, and of each one its number."""
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(text, len(numbers)) for text in texts]
    return [*numbers], np.array(places, dtype=np.int64)


def _with_categories(frame: Any, backend: str, columns: Mapping[str, tuple[Sequence[str], Ints]]) -> Any:
    """Replace columns by texts and the number of each line's, which a frame stores once each."""
    for name, (texts, places) in columns.items():
        # as categories differ from each other, as equal names need not
        distinct, first = _numbered(_encodable(text) or "" for text in texts)
        codes = first[places] if len(texts) else places
        if backend == "pandas":
            import pandas as pd

            frame[name] = pd.Categorical.from_codes(codes, distinct)
        elif backend == "polars":
            import polars as pl

            series = pl.Series(name, distinct, dtype=pl.String).gather(codes).cast(pl.Categorical)
            frame = frame.with_columns(series)
        else:
            import pyarrow as pa

            numbers = pa.array(codes, pa.int32())
            column = pa.DictionaryArray.from_arrays(numbers, pa.array(distinct, pa.string()))
            frame = frame.set_column(frame.schema.get_field_index(name), name, column)
    return frame


def frame_of_effects(effects: Effects, backend: Any) -> Any:
    nw = _frames(backend)
    names = ("row", "output", "feature", "cell", "value", "standard_error", "mass", "current")
    lines: list[tuple[Any, ...]] = []
    for effect in effects:
        arrays = (a.tolist() for a in (effect.values, effect.standard_errors, effect.masses))
        for b, numbers in enumerate(zip(effect.cells, *arrays, strict=True)):
            lines.append((effect.row, effect.output, effect.feature, *numbers, b == effect.current))
    columns = {name: [line[k] for line in lines] for k, name in enumerate(names)}
    return nw.from_dict(columns, backend=backend).to_native()


def _frames(backend: Any) -> Any:
    """Return the library that makes data frames of this backend."""
    if backend not in _BACKENDS:
        raise InputError(f"backend={backend!r} is not known; use one of {_BACKENDS}")
    require(backend, f"to_frame(backend={backend!r})")
    import narwhals

    return narwhals


def _encodable(text: str | None) -> str | None:
    """Replace lone surrogates, which no column of texts can hold, by question marks."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def to_shap(explanation: Explanation, of: str, base: str | None, *, interactions: bool) -> Any:
    check_weights(explanation, "to_shap")
    shap = require("shap", "to_shap()")
    check_choice("of", of, READINGS)
    if interactions and (of != "contributions" or base is not None):
        raise InputError("to_shap(interactions=True) is of contributions from each row's own base")
    if base is not None:
        check_choice("base", base, ("common",))
    several, names = explanation.predictions.ndim == 2, explanation.output_names
    titles = [output_title(explanation, k) for k in range(len(names))]
    if of == "contributions":
        account = _of_one_base(explanation) if base == "common" else explanation.contributions
        values = (account.pairs if interactions else account.values).copy()
        base_values = account.base_values.copy()
        if base == "common":
            base_values = base_values[0]
    else:
        if base is not None:
            raise InputError("to_shap(base='common') is of contributions: each surrogate has its intercept")
        values, base_values = contributions(explanation)
        titles = [f"{whose_surrogate(explanation)} surrogate of {title}" for title in titles]
    return shap.Explanation(
        values=values,  # copies: shap writes into these arrays
        base_values=base_values,
        data=_shap_data(explanation.data),
        feature_names=list(explanation.feature_names),
        output_names=titles if several else titles[0],
    )


def _of_one_base(explanation: Explanation) -> Contributions:
    """Contributions that count from one base at all rows: those of an infinite bandwidth."""
    bases = explanation.contributions.base_values
    if len(bases) and (np.abs(bases - bases[:1]) <= ROUNDING * np.abs(bases[:1])).all():
        return explanation.contributions
    explainer = explanation.explainer
    if not hasattr(explainer, "_with_design") or explanation.feature_names != explainer.feature_names:
        raise InputError(
            "to_shap(base='common') needs an explanation that comes from a TabularExplainer, with all its "
            "features: pass bandwidth=float('inf') to the explainer, and explain the rows again"
        )
    options = explainer._design_options | {"bandwidth": float("inf")}  # noqa: SLF001
    again = explainer._with_design(**options).contributions(explanation.data)  # noqa: SLF001
    names, several = explanation.output_names, explanation.predictions.ndim == 2
    if again.predictions.ndim == 2:
        again = again[..., list(names) if several else names[0]]
    account: Contributions = again.contributions
    return account


def _shap_data(cells: Objects) -> Floats | Objects:
    wide = np.array([is_wide(cell) for cell in cells.ravel()]).reshape(cells.shape)
    try:
        numbers = cells.astype(float)  # shap colours by value, for which it needs numbers
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is not None and not wide.any():
        return numbers
    # shap formats every cell that is not a text as a number
    texts = cells.astype(object)
    texts[wide] = [str(cell) for cell in texts[wide]]
    texts[np.array([cell is None for cell in cells.ravel()]).reshape(cells.shape)] = "missing"
    return texts


# -- reasons -------------------------------------------------------------------------------------------------
# Two sizes are distinct if they differ by more than 1.96 standard errors of their difference, and a sign is
# certain if the number is as far from 0. Exact numbers are distinct unless they are equal.

Catalogue = Mapping[str, Any]


class Reason(str):
    """A sentence about one contribution, or coefficient."""

    __slots__ = ("certain", "condition", "data", "feature", "standard_error", "value")

    feature: str
    condition: str
    data: str  # the row's value
    value: float
    standard_error: float
    certain: bool  # whether its place among the reasons, and its sign, are certain

    @classmethod
    def of(cls, line: Line, sentence: str, *, certain: bool) -> Reason:
        reason = cls(sentence if certain else f"{sentence} (order not certain)")
        for name in ("feature", "condition", "data", "value", "standard_error"):
            setattr(reason, name, getattr(line, name))
        reason.condition = line.condition if line.share is None else line.holds
        reason.certain = certain
        return reason


def reasons(
    explanation: Explanation,
    k: int,
    catalogue: Catalogue | None,
    row: int | str | None,
    output: str | int | None,
    sign: str,
    of: str,
    scale: str | None,
) -> tuple[Reason, ...]:
    """Sentences about a row; contributions are written as in its account, which adds up."""
    if not is_count(k):
        raise InputError(f"reasons(k={k!r}): k is the number of reasons; pass 1 or more")
    check_weights(explanation, "reasons")
    check_choice("sign", sign, tuple(_SIGNS))
    if scale is None:
        is_share = of == "contributions" and is_probability(explanation)
        scale = "percentage points" if is_share else "units"
    check_choice("scale", scale, tuple(_SCALES))
    if scale != "units" and not is_probability(explanation):
        raise InputError(f"scale={scale!r} is for probabilities: pass scale='units'")
    catalogue = by_feature("catalogue", catalogue or {}, explanation)
    _check_catalogue(catalogue)
    one = single_row(explanation, row, "explanation.reasons()")
    one = one[..., output_position(one, output)]
    account = named_account(one, of)
    (view,) = view_row(one, 0, len(one.feature_names), account=account).outputs
    written: dict[str, str] = {}
    if account is not None:
        texts, _ = view.account_texts()
        written = {line.feature: text for line, (text, _) in zip(view.lines, texts, strict=False)}
    is_share = account is not None and scale != "units"
    title = f"the chance of {view.label}" if is_share and view.label else view.title
    title = "the prediction" if title == "prediction" else title
    lines = [line for line in view.lines if _SIGNS[sign](line)]
    data = dict(zip(map(one_line, one.feature_names), one.data[0], strict=True))
    return tuple(
        Reason.of(
            line,
            _sentence(
                line,
                title,
                catalogue,
                _effect(line, scale, view, written.get(line.feature)),
                data.get(line.feature),
            ),
            certain=_is_certain(lines, place),
        )
        for place, line in enumerate(lines[:k])
    )


# Places by which the decimal point moves, and the words behind the number
_SCALES = {"units": (0, ""), "percentage points": (2, " percentage points")}
# A field, and how Python formats it: {value}, {value:,.0f}
_FIELD = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")
_FIELDS = ("value", "condition", "effect")
# Texts of an entry that has one for a missing value
_WITH_MISSING = 3

_SIGNS = {
    "both": lambda line: abs(line.value) > 0,  # one that is unknown is no reason
    "+": lambda line: line.value > 0,
    "-": lambda line: line.value < 0,
}


def _check_catalogue(catalogue: Catalogue) -> None:
    for name, entry in catalogue.items():
        texts = [entry] if isinstance(entry, str) else entry
        is_pair = isinstance(texts, tuple | list) and len(texts) in (2, _WITH_MISSING)
        if not (isinstance(entry, str) or is_pair) or not all(isinstance(text, str) for text in texts):
            raise InputError(
                f"catalogue[{name!r}] is {entry!r}; pass a text, or a pair of texts: where it raises the "
                "prediction, and where it lowers it; or a third, too, where it is missing"
            )
        for field, form in chain.from_iterable(map(_FIELD.findall, texts)):
            if field not in _FIELDS:
                raise InputError(
                    f"catalogue[{name!r}] has the field {{{field}}}{did_you_mean(field, _FIELDS)}; "
                    f"fields are {', '.join(f'{{{field}}}' for field in _FIELDS)}"
                )
            if form and field != "value":
                raise InputError(
                    f"catalogue[{name!r}] has {{{field}:{form}}}: {{value}} alone takes a format, such as "
                    "{value:,.0f}"
                )


def _effect(line: Line, scale: str, view: OutputView, written: str | None) -> str:
    """The size of what a line says, as it is ``written`` elsewhere, or by its error."""
    places, unit = _SCALES[scale]
    if written is not None and float(written):
        # a shift of the decimal point keeps the digits; probabilities are written in hundredths
        return f"{abs(Decimal(written).scaleb(places - 2 * view.is_probability)):f}{unit}"
    size, error = 10.0**places * abs(line.value), 10.0**places * line.standard_error
    # as many digits as the error allows, and no more than people read
    return f"{estimate(size, error)[0] if error else number(size, 3)}{unit}"


def _sentence(line: Line, title: str, catalogue: Catalogue, effect: str, datum: Any) -> str:
    entry = catalogue.get(line.feature)
    text = None if entry is None else _text_of(entry, line)
    if text is None:
        verb = "raises" if line.value > 0 else "lowers"
        cause = line.condition if line.share is None else line.holds
        cause = f"each further unit of {line.feature}" if line.is_slope else cause
        return f"{cause} {verb} {title} by {effect}"
    condition = line.condition if line.share is None else line.holds
    fields = {"condition": condition, "value": line.data, "effect": effect}
    is_formatted = line.data != cell(None)
    # in one go: a value may look like a field
    return _FIELD.sub(
        lambda field: _formatted(line, datum, field[2]) if field[2] and is_formatted else fields[field[1]],
        text,
    )


def _formatted(line: Line, datum: Any, form: str) -> str:
    """The row's value in a format of Python's."""
    try:
        return format(datum.item() if isinstance(datum, np.generic) else datum, form)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"catalogue[{line.feature!r}] formats the value {line.data!r} by {{value:{form}}}: {error}"
        ) from None


def _text_of(entry: str | Sequence[str], line: Line) -> str | None:
    """The text of a catalogue for a line; of a missing value the third, or one that has the value in it."""
    text = entry if isinstance(entry, str) else entry[0 if line.value > 0 else 1]
    if line.data != cell(None):
        return text
    if not isinstance(entry, str) and len(entry) == _WITH_MISSING:
        return entry[2]
    # a sentence about values is not true of one that is missing
    return text if {"value", "condition"} & {field for field, _ in _FIELD.findall(text)} else None


def _is_certain(lines: list[Line], place: int) -> bool:
    """Whether a line is surely smaller than the one before, larger than the next, and not 0."""
    line = lines[place]
    neighbours = lines[max(place - 1, 0) : place] + lines[place + 1 : place + 2]
    apart = all(
        abs(abs(line.drawn) - abs(other.drawn)) > CONFIDENCE * np.hypot(line.drawn_error, other.drawn_error)
        for other in neighbours
    )
    return bool(apart and abs(line.value) > CONFIDENCE * line.standard_error)
