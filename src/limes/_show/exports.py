"""An explanation in other forms: a long data frame, an object of shap's, reasons as sentences."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import is_wide
from limes._checks import check_choice, did_you_mean, is_count, require
from limes._explanation.attribution import requested
from limes._explanation.fit import account_at
from limes._explanation.selection import by_feature, single_row
from limes._explanation.view import (
    MAX_FEATURES,
    Line,
    contributions,
    in_contributions,
    is_probability,
    output_position,
    output_title,
    view_row,
)
from limes._explanation.wording import CONFIDENCE, estimate, number
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._arrays import Floats, Ints, Objects
    from limes._explanation import Explanation
    from limes._explanation.attribution import Coefficients, Contributions
    from limes._explanation.fit import Effects

_BACKENDS = ("pandas", "polars", "pyarrow")


def to_frame(explanation: Explanation, backend: Any, contributions: Any) -> Any:
    account, its = _account(explanation, contributions), explanation.coefficients
    columns = {"value": its.values, "standard_error": its.standard_errors}
    if account is not None:
        columns |= {
            "contribution": account.values,
            "contribution_error": account.standard_errors,
            "alone": account.alone,
            "last": account.last,
            "base": account.base_values,
        }
    columns |= {"prediction": explanation.predictions, "fidelity": explanation.fidelity}
    return _long_frame(explanation, backend, columns)


def frame_of_attribution(reading: Contributions | Coefficients, backend: Any) -> Any:
    """A long frame of one reading alone."""
    columns = {"value": reading.values, "standard_error": reading.standard_errors}
    columns |= {"base": reading.base_values, "total": reading.total}
    return _long_frame(reading.explanation, backend, columns)


def _long_frame(explanation: Explanation, backend: Any, arrays: Mapping[str, Floats]) -> Any:
    """A line a row, feature and output, with these arrays of features, or of rows and outputs."""
    nw = _frames(backend)
    (n, *several), d = explanation.predictions.shape, len(explanation.feature_names)
    k = several[0] if several else 1
    lines = np.arange(n * d * k)
    rows, features, outputs = lines // (d * k), lines // k % d, lines % k
    ids = explanation.ids
    whole = all(type(label) is int for label in ids)
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


def _account(explanation: Explanation, wanted: Any) -> Contributions | None:
    """Contributions: those that are known or exact and quick for "auto", all for True, none for False."""
    if not isinstance(wanted, bool):
        check_choice("contributions", wanted, ("auto",))
    if wanted is True:
        return explanation.contributions
    if wanted is False:
        return None
    return account_at(explanation, range(len(explanation)))


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


def to_shap(explanation: Explanation) -> Any:
    shap = require("shap", "to_shap()")
    several, names = explanation.coefficients.values.ndim == 3, explanation.output_names
    titles = [output_title(explanation, k) for k in range(len(names))]
    account = requested(explanation, "contributions")
    if account is None and explanation.fit is not None:
        account = explanation.fit.exact_contributions()
    if account is not None:
        values, base = account.values.copy(), account.base_values.copy()
    else:
        warnings.warn(
            "to_shap() holds coefficients of LIME's surrogate, not Shapley values, as the explanation has no "
            "exact contributions, and others were not computed yet: read explanation.contributions first to "
            "have them. Else shap's plots call the coefficients' sum f(x), which is the surrogate's "
            "prediction, and the intercept E[f(X)]",
            UserWarning,
            stacklevel=3,
        )
        values, base = contributions(explanation)
        titles = [f"surrogate of {title}" for title in titles]
    return shap.Explanation(
        values=values,  # copies: shap writes into these arrays
        base_values=base,
        data=_shap_data(explanation.data),
        feature_names=list(explanation.feature_names),
        output_names=titles if several else titles[0],
    )


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
# Two sizes |β| are distinct if they differ by more than 1.96 standard errors of their difference, and a sign
# is certain if the coefficient is as far from 0. Exact coefficients are distinct unless they are equal.

Catalogue = Mapping[str, Any]


class Reason(str):
    """A sentence about one coefficient."""

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
        reason.certain = certain
        return reason


def reasons(
    explanation: Explanation,
    k: int,
    catalogue: Catalogue | None,
    row: int | str,
    output: str | int | None,
    sign: str,
    of: str,
    scale: str,
    shown: int = MAX_FEATURES,
) -> tuple[Reason, ...]:
    """Sentences about a row; contributions are written as in an account of ``shown`` lines, which adds up."""
    if not is_count(k):
        raise InputError(f"reasons(k={k!r}): k is the number of reasons; pass 1 or more")
    check_choice("sign", sign, tuple(_SIGNS))
    check_choice("of", of, ("coefficients", "contributions"))
    check_choice("scale", scale, tuple(_SCALES))
    if scale != "units" and not is_probability(explanation):
        raise InputError(f"scale={scale!r} is for probabilities: pass scale='units'")
    catalogue = by_feature("catalogue", catalogue or {}, explanation)
    _check_catalogue(catalogue)
    one = single_row(explanation, row)
    one = one[..., output_position(one, output)]
    written: dict[str, str] = {}
    if of == "contributions":
        (view,) = view_row(one, 0, shown, account=one.contributions).outputs
        texts, _ = view.account_texts()
        written = {line.feature: text for line, (text, _) in zip(view.lines, texts, strict=False)}
        one = in_contributions(one)
    title = output_title(one, 0)
    title = "the prediction" if title == "prediction" else title
    lines = [line for line in view_row(one, 0, len(one.feature_names)).outputs[0].lines if _SIGNS[sign](line)]
    return tuple(
        Reason.of(
            line,
            _sentence(line, title, catalogue, _effect(line, scale, written.get(line.feature))),
            certain=_is_certain(lines, place),
        )
        for place, line in enumerate(lines[:k])
    )


# Places by which the decimal point moves, and the words behind the number
_SCALES = {"units": (0, ""), "percentage points": (2, " percentage points")}
_FIELD = re.compile(r"\{([^{}]*)\}")
_FIELDS = ("value", "condition", "effect")

_SIGNS = {
    "both": lambda line: abs(line.value) > 0,  # one that is unknown is no reason
    "+": lambda line: line.value > 0,
    "-": lambda line: line.value < 0,
}


def _check_catalogue(catalogue: Catalogue) -> None:
    for name, entry in catalogue.items():
        texts = [entry] if isinstance(entry, str) else entry
        is_pair = isinstance(texts, tuple | list) and len(texts) == 2
        if not (isinstance(entry, str) or is_pair) or not all(isinstance(text, str) for text in texts):
            raise InputError(
                f"catalogue[{name!r}] is {entry!r}; pass a text, or a pair of texts: where it raises the "
                "prediction, and where it lowers it"
            )
        unknown = [field for text in texts for field in _FIELD.findall(text) if field not in _FIELDS]
        if unknown:
            raise InputError(
                f"catalogue[{name!r}] has the field {{{unknown[0]}}}{did_you_mean(unknown[0], _FIELDS)}; "
                f"fields are {', '.join(f'{{{field}}}' for field in _FIELDS)}"
            )


def _effect(line: Line, scale: str, written: str | None) -> str:
    """The size of what a line says, as it is ``written`` elsewhere, or by its error."""
    places, unit = _SCALES[scale]
    if written is not None and float(written):
        # a shift of the decimal point keeps the digits
        return f"{abs(Decimal(written).scaleb(places)):f}{unit}"
    size, error = 10.0**places * abs(line.value), 10.0**places * line.standard_error
    # as many digits as the error allows, and no more than people read
    return f"{estimate(size, error)[0] if error else number(size, 3)}{unit}"


def _sentence(line: Line, title: str, catalogue: Catalogue, effect: str) -> str:
    entry = catalogue.get(line.feature)
    if entry is None:
        verb = "raises" if line.value > 0 else "lowers"
        cause = f"each further unit of {line.feature}" if line.is_slope else line.condition
        return f"{cause} {verb} {title} by {effect}"
    text = entry if isinstance(entry, str) else entry[0 if line.value > 0 else 1]
    fields = {"condition": line.condition, "value": line.data, "effect": effect}
    # in one go: a value may look like a field
    return _FIELD.sub(lambda field: fields[field[1]], text)


def _is_certain(lines: list[Line], place: int) -> bool:
    """Whether a line is surely smaller than the one before, larger than the next, and not 0."""
    line = lines[place]
    neighbours = lines[max(place - 1, 0) : place] + lines[place + 1 : place + 2]
    apart = all(
        abs(abs(line.drawn) - abs(other.drawn)) > CONFIDENCE * np.hypot(line.drawn_error, other.drawn_error)
        for other in neighbours
    )
    return bool(apart and abs(line.value) > CONFIDENCE * line.standard_error)
