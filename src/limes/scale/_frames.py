"""A frame of rows in, a frame of explanations out: the only code that engines run.

Every row is in the result, with its explanation or with its error. A row's explanation depends on the row
alone, so a frame may be cut anywhere: the results of its pieces, concatenated, equal the frame's to the last
bit.

Columns are built whole, without a loop over lines. A column of texts is stored as its few distinct texts and
a code a line, since all texts of an explanation are names.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import SHOWN, check_choice, did_you_mean, listed
from limes._explanation.certain import coefficients_of
from limes._explanation.drawing import Described
from limes._explanation.fit import additive_at
from limes._explanation.view import with_outputs
from limes._explanation.wording import shorten
from limes._names import Names, names_of_frame, refuse_repeats, text_of
from limes._threads import one_blas_thread_in_models
from limes._warnings import of_outputs
from limes.exceptions import CellError, InputError, LimesError

if TYPE_CHECKING:
    from limes._explanation import Explanation
    from limes._explanation.attribution import Contributions
    from limes._explanation.fit import Fit

# Where some row cannot be explained, rows are tried in blocks of this many before they are halved
_BLOCK = 512
# Rows whose contributions are computed together, with what the table does not hold of them
_TOGETHER = 4096
# Characters of a reported error, and characters of the original text that are read
_LONGEST, _CUT = 200, 1000

_FLOAT, _TEXT = nw.Float64(), nw.String()
_METHODS = ("exact", "sampled")
_FIT = {"fidelity": _FLOAT, "additive_fidelity": _FLOAT}
_LAST = {"method": _TEXT, "warnings": _TEXT, "error": _TEXT}
# Numbers of a column, by their names in the long layout; the wide one puts `WIDE` before the column's name.
# With "contribution_error" there, columns "x" and "error_x" would give two columns of one name
_OF_COEFFICIENTS = ("value", "standard_error")
_OF_ACCOUNT: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "exact": ("contribution",),
    "all": ("contribution", "contribution_error"),
}
ERRORS = {"contribution": "contribution_error", "value": "standard_error"}
WIDE = {
    "contribution": "contribution",
    "contribution_error": "error_contribution",
    "value": "value",
    "standard_error": "se",
}


# limes.TabularExplainer, or limes.SparseExplainer of a table's columns
Explainer: TypeAlias = Any
# What is asked for, and what a table then has: no contributions, exact ones, or all with their errors
Wanted: TypeAlias = Literal["auto"] | bool
Account: TypeAlias = Literal["none", "exact", "all"]
Outputs: TypeAlias = Literal["shown", "all"]


def explain_frame(
    explainer: Explainer,
    frame: Any,
    layout: str = "wide",
    *,
    keys: Sequence[str] | None = None,
    contributions: Wanted = "auto",
    outputs: Outputs = "shown",
    fit: bool = True,
) -> Any:
    """Explain every row of a frame; rows that fail carry an error message, the rest are explained.

    Parameters
    ----------
    explainer
        A :class:`limes.TabularExplainer`, or a :class:`limes.SparseExplainer` of a table's columns.
    frame
        A pandas, polars or pyarrow table with the explainer's columns, in any order; others are ignored.
    layout
        "wide": a line a row and output. "long": a line a row, output and feature. A row with an error has one
        line in either.
    keys
        Columns of the frame that identify rows, copied to the result. None: a column ``row``, counted from 0.
    contributions
        "auto": the explainer's own option, and if that is "auto" exact contributions of models that have
        these within about two milliseconds a row, without their errors, which are 0. True: contributions of
        all models, sampled where they are not exact, with their errors; a model that is not read is asked as
        often again as for its coefficients. False: none.
    outputs
        "shown": of the probabilities of two classes those of the second, else all. "all".
    fit
        Whether the result has ``fidelity`` and ``additive_fidelity``, and ``warnings`` the codes that follow
        from these, "combinations" and "hidden effect".

    Returns
    -------
    frame
        A frame of the same library, rows in order; in pandas each line has the index of its row. Columns:

        ============================== ======== ==========================================================
        keys, or ``row``                        as in the frame, or int64
        ``output``                     text     name of the output; null where there is an error
        ``prediction``                 float64  of the model at the row, in the output's units
        ``surrogate``                  float64  prediction of the surrogate at the row
        ``fidelity``                   float64  R² of the surrogate
        ``additive_fidelity``          float64  R² of whole effects; null where they have no closed form
        ``base``                       float64  the model's average around the row: base and contributions
                                                add up to the prediction
        ``intercept``                  float64  of the surrogate, in the output's units
        ``rule``                       text     of sparse explanations only
        ``contribution_<name>``        float64  contribution of a column: wide only
        ``error_contribution_<name>``  float64  its standard error: wide only, with ``contributions=True``
        ``value_<name>``               float64  coefficient of a column: wide only
        ``se_<name>``                  float64  its standard error, 0 where exact: wide only
        ``feature``                    text     long only; so are ``condition`` (text), ``contribution``,
                                                ``contribution_error``, ``value`` and ``standard_error``
                                                (float64)
        ``method``                     text     "exact" or "sampled"
        ``warnings``                   text     codes of ``row_warnings``, such as "other side, outside";
                                                empty without a warning, null where there is an error
        ``error``                      text     why the row has no explanation, else null
        ============================== ======== ==========================================================

        Numbers of a row with an error are null (NaN in pandas), and so are contributions that are not exact
        with "auto".

    Raises
    ------
    InputError
        The frame, not a row, is wrong: it lacks a column, or a key has the name of a column of the result.
        Or contributions are asked for of rules, which have none.

    Examples
    --------
    >>> import limes, pandas as pd
    >>> table = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    >>> explainer = limes.TabularExplainer(lambda X: X["a"] - X["b"], table, bins=None)
    >>> result = limes.scale.explain_frame(explainer, table.assign(b=[1.0, 0.0, float("inf"), 0.0]))
    >>> result["value_a"].round(6).tolist()
    [1.0, 1.0, nan, 1.0]
    >>> result["error"].notna().tolist()
    [False, False, True, False]
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor().fit(table, [0.0, 2.0, 2.0, 5.0])
    >>> result = limes.scale.explain_frame(limes.TabularExplainer(tree, table), table)
    >>> (result["base"] + result["contribution_a"] + result["contribution_b"]).round(6).tolist()
    [0.0, 2.0, 2.0, 5.0]
    """
    explainer, frame = in_order(explainer, frame, "limes.scale.explain_frame(explainer, frame)")
    if not hasattr(explainer, "feature_names"):
        raise InputError(
            f"explain_frame(explainer, frame) needs an explainer of tables, got {type(explainer).__name__}"
        )
    check_choice("outputs", outputs, ("shown", "all"))
    account = account_of(explainer, contributions)
    schema = schema_of(explainer, layout, account, fit=fit)
    try:
        table = nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError:
        refuse_repeats(names_of_frame(frame))
        raise
    except TypeError as error:
        raise InputError(
            f"explain_frame takes a pandas, polars or pyarrow table, got {type(frame).__module__}."
            f"{type(frame).__name__}: collect a lazy frame first; for Dask use limes.scale.dask.explain, for "
            "Spark limes.scale.spark.explain"
        ) from error
    check_keys(keys or (), schema)
    columns = Names(frame.columns if table.implementation.is_pandas_like() else table.columns)
    copied, features = (
        places("the table", columns, chosen) for chosen in (keys or (), features_of(explainer))
    )
    with one_blas_thread_in_models():
        rows = table[:, features]
        pieces = [*_explained(rows, explainer.reproducible, account, outputs)]
    good = [(positions, outcome) for positions, outcome in pieces if not isinstance(outcome, str)]
    errors = {int(positions[0]): outcome for positions, outcome in pieces if isinstance(outcome, str)}
    groups = [_explained_lines(good, layout, fit=fit)] if good else []
    if errors or not good:
        texts = _Texts([*errors.values()], np.arange(len(errors)))
        groups.append(_Lines(np.array([*errors], dtype=np.int64), {"error": texts}))
    positions, lines = _in_order(groups, schema, table.implementation)
    if keys is None:
        keyed = nw.from_dict({"row": positions}, {"row": nw.Int64()}, backend=table.implementation)
    else:
        keyed = nw.maybe_reset_index(table[:, copied][positions])
    result = nw.concat([keyed, lines], how="horizontal").to_native()
    index = nw.maybe_get_index(table)
    if index is not None:  # else joining the result to its table would pair other rows
        result.index = index.take(positions)
    return result


def in_order(explainer: Any, table: Any, call: str) -> tuple[Explainer, Any]:
    """Return an explainer and a table, which were once passed the other way round."""
    if not isinstance(table, Described):
        return explainer, table
    warnings.warn(f"pass the explainer first: {call}", DeprecationWarning, stacklevel=3)
    return table, explainer


def error_text(text: str) -> str:
    """Shorten an error to a line of 200 characters: a cell may hold a megabyte."""
    ends = text if len(text) <= _CUT else f"{text[: _CUT // 2]}…{text[-_CUT // 2 :]}"
    return shorten(ends, _LONGEST)


# The kind of error of a row that could not be read
UNREADABLE = "unreadable"


def error_kind(text: str) -> str:
    """The class of a row's error, as a table states it, or "unreadable"."""
    stated = re.match(r"(\w+): ", text)
    return stated[1] if stated else UNREADABLE


def account_of(explainer: Explainer, contributions: Wanted) -> Account:
    """Which contributions a table has that is explained with this option."""
    if not isinstance(contributions, bool):
        check_choice("contributions", contributions, ("auto",))
    if explainer._has_rules:  # noqa: SLF001
        if contributions is True:
            raise InputError("contributions=True: a rule has no contributions; use a TabularExplainer")
        return "none"
    wanted = explainer._wanted_contributions if contributions == "auto" else contributions  # noqa: SLF001
    if wanted == "auto":
        return "exact" if explainer._has_quick_contributions else "none"  # noqa: SLF001
    return "all" if wanted else "none"


def schema_of(explainer: Explainer, layout: str, account: Account, *, fit: bool) -> dict[str, Any]:
    """Columns of the result and their types, without the keys."""
    kinds = [*_OF_ACCOUNT[account], *_OF_COEFFICIENTS]
    if check_choice("layout", layout, ("wide", "long")) == "wide":
        names = [f"{WIDE[kind]}_{name}" for kind in kinds for name in explainer.feature_names]
        cells: dict[str, Any] = dict.fromkeys(names, _FLOAT)
    else:
        cells = {"feature": _TEXT, "condition": _TEXT, **dict.fromkeys(kinds, _FLOAT)}
    base = {} if account == "none" else {"base": _FLOAT}
    rule = {"rule": _TEXT} if explainer._has_rules else {}  # noqa: SLF001
    first = {"output": _TEXT, "prediction": _FLOAT, "surrogate": _FLOAT, **(_FIT if fit else {})}
    return {**first, **base, "intercept": _FLOAT, **rule, **cells, **_LAST}


def numbers_of(lines: Any, kind: str, features: Sequence[str]) -> Floats | None:
    """Numbers of a kind of lines without an error, in either layout, (rows and outputs, d); None without."""
    if "feature" in lines.columns:
        names = [kind] if kind in lines.columns else []
    else:
        names = [name for f in features if (name := f"{WIDE[kind]}_{f}") in lines.columns]
    if not names:
        return None
    return np.column_stack([lines[name].to_numpy() for name in names]).reshape(-1, len(features))


def features_of(explainer: Explainer) -> list[Any]:
    """The names of an explainer's columns: those of the user's table, where it knows them."""
    keys: Mapping[str, Any] = getattr(explainer, "_column_keys", {})
    return [keys.get(name, name) for name in explainer.feature_names]


def check_columns(where: Any, columns: Sequence[Any], needed: Sequence[Any]) -> None:
    places(where, Names(columns), needed)


def places(where: Any, columns: Names, needed: Sequence[Any]) -> list[int]:
    """Positions of the columns that are needed, each by its name, or raise InputError."""
    positions = [columns.called(name) for name in needed]
    missing = [name for name, its in zip(needed, positions, strict=True) if not its]
    if missing:
        texts = [*map(text_of, columns.names)]
        names = ", ".join(repr(name) + did_you_mean(name, texts) for name in missing[:SHOWN])
        raise InputError(f"{where} has no column {names}; it has {listed(texts)}")
    return [its[0] for its in positions]


def check_keys(keys: Sequence[str], result: Mapping[str, Any]) -> None:
    if isinstance(keys, str):
        raise InputError(f"keys={keys!r}: pass a list of columns, [{keys!r}]")
    if len(set(keys)) < len(keys):
        raise InputError(f"keys={[*keys]}: name each column once")
    for key in keys:
        if key in result:
            raise InputError(f"the key {key!r} has the name of a column of the result: rename it")


class _Explained(NamedTuple):
    """An explanation with contributions (n, d, k), their errors, and bases (n, k), as far as it has them."""

    explanation: Explanation
    base: Floats | None = None
    contribution: Floats | None = None
    contribution_error: Floats | None = None

    @classmethod
    def of(cls, explanation: Explanation, account: Account) -> _Explained:
        if account == "none":
            return cls(explanation)
        if account == "all":
            its = explanation.contributions
            numbers = (its.base_values, its.values, its.standard_errors)
            return cls(explanation, *(with_outputs(each, explanation) for each in numbers))
        values = with_outputs(explanation.coefficients.values, explanation)
        base, contribution = np.full_like(values[:, 0], np.nan), np.full_like(values, np.nan)
        assert explanation.fit is not None  # noqa: S101 - models that are read keep their fits
        for start in range(0, len(values), _TOGETHER):
            for at, its in _exact(explanation.fit, np.arange(start, min(start + _TOGETHER, len(values)))):
                base[at] = with_outputs(its.base_values, explanation)
                contribution[at] = with_outputs(its.values, explanation)
        return cls(explanation, base, contribution)


def _exact(fit: Fit, at: Ints) -> Iterator[tuple[Ints, Contributions]]:
    """Yield exact contributions of rows at these positions, without the rows that have none."""
    its = replace(fit, rows=fit.rows[at]).exact_contributions()
    if its is not None:
        yield at, its
    elif at.size > 1:
        for half in np.array_split(at, 2):
            yield from _exact(fit, half)


def _explained(
    rows: Any, explainer: Explainer, account: Account, outputs: Outputs
) -> Iterator[tuple[Ints, _Explained | str]]:
    """Yield positions of rows that were explained together, or of one row and its error."""
    # all rows are tried at once; a CellError names all rows at fault, so the rest is one more try; after any
    # other error blocks are tried, and halved down to the row
    stack = [np.arange(len(rows))] if len(rows) else []
    while stack:
        positions = stack.pop()
        first, end = int(positions[0]), int(positions[-1]) + 1
        some = rows[first:end] if end - first == len(positions) else rows[positions]
        try:
            explanation = explainer(nw.maybe_reset_index(some).to_native(), progress=False)
            if outputs == "shown" and len(explanation.output_names) == 2:
                explanation = explanation[..., explainer._shown_outputs]  # noqa: SLF001
            yield positions, _Explained.of(explanation, account)
        except CellError as error:
            for position, reason in error.rows.items():
                yield positions[[position]], error_text(f"InputError: {reason}")
            rest = np.delete(positions, [*error.rows])
            stack += [rest] if rest.size else []
        except LimesError as error:
            if len(positions) == 1:
                yield positions, error_text(f"{type(error).__name__}: {error}")
            else:
                step = _BLOCK if len(positions) > _BLOCK else (len(positions) + 1) // 2
                stack += [positions[i : i + step] for i in range(0, len(positions), step)][::-1]


class _Texts(NamedTuple):
    """A column of texts: line i holds ``distinct[codes[i]]``."""

    distinct: Sequence[str]
    codes: Ints


class _Lines(NamedTuple):
    """The row of each line, and columns; columns that are missing are null."""

    rows: Ints
    columns: Mapping[str, Floats | _Texts]

    def frame(self, schema: Mapping[str, Any], backend: Any) -> Any:
        cells: dict[str, Any] = {**self.columns}
        for name, column in cells.items():
            if isinstance(column, _Texts):
                distinct = nw.new_series(name, column.distinct, _TEXT, backend=backend)
                cells[name] = nw.maybe_reset_index(distinct[column.codes])
        frame = nw.from_dict(cells, {name: schema[name] for name in cells}, backend=backend)
        nothing = np.zeros(len(self.rows), dtype=np.int64)
        # added as series, not cast by a schema: pandas 2 casts null texts to "None"
        nulls = [
            nw.maybe_reset_index(nw.new_series(name, [None], kind, backend=backend)[nothing])
            for name, kind in schema.items()
            if name not in cells
        ]
        return frame.with_columns(nulls).select([*schema])


def _explained_lines(pieces: Sequence[tuple[Ints, _Explained]], layout: str, *, fit: bool) -> _Lines:
    """The lines of rows, by their positions (n,) in the frame."""
    explanations = [piece.explanation for _, piece in pieces]
    first, readings = explanations[0], [(coefficients_of(each), each) for each in explanations]

    def joined(name: str) -> Floats:
        return np.concatenate([with_outputs(getattr(its, name), each) for its, each in readings])

    accounts = {
        name: np.concatenate([getattr(piece, name) for _, piece in pieces])
        for name in ("base", *_OF_ACCOUNT["all"])
        if getattr(pieces[0][1], name) is not None
    }
    values = joined("values")
    predictions = np.concatenate([with_outputs(each.predictions, each) for each in explanations])
    n, d, k = values.shape
    times = 1 if layout == "wide" else d  # lines of a row and output
    methods = [_METHODS.index(method) for each in explanations for method in each.row_methods]
    columns: dict[str, Floats | _Texts] = {
        "output": _Texts(first.output_names, np.tile(np.repeat(np.arange(k), times), n)),
        "prediction": np.repeat(predictions.ravel(), times),
        "surrogate": np.repeat(joined("surrogate_predictions").ravel(), times),
        "warnings": _codes(explanations, times, fit=fit),
        "intercept": np.repeat(joined("intercepts").ravel(), times),
        "method": _Texts(_METHODS, np.repeat(methods, k * times)),
    }
    if fit:
        additive = np.concatenate([additive_at(each)[0] for each in explanations])
        columns["fidelity"] = np.repeat(joined("fidelity").ravel(), times)
        columns["additive_fidelity"] = np.repeat(additive.ravel(), times)
    if "base" in accounts:
        columns["base"] = np.repeat(accounts.pop("base").ravel(), times)
    rules = [text for each in explanations if each.certificates for text in each.rules()]
    if rules:
        columns["rule"] = _Texts(rules, np.repeat(np.arange(n), k * times))
    cells = {**accounts, "value": values, "standard_error": joined("standard_errors")}
    if layout == "wide":
        for kind, numbers in cells.items():
            names = enumerate(first.feature_names)
            columns |= {f"{WIDE[kind]}_{name}": numbers[:, j].ravel() for j, name in names}
    else:
        texts, codes = _conditions([texts for each in explanations for texts in each.conditions])
        columns |= {
            "feature": _Texts(first.feature_names, np.tile(np.arange(d), n * k)),
            "condition": _Texts(texts, np.repeat(codes[:, None], k, axis=1).ravel()),
            **{kind: numbers.transpose(0, 2, 1).ravel() for kind, numbers in cells.items()},
        }
    positions = np.concatenate([positions for positions, _ in pieces])
    return _Lines(np.repeat(positions, k * times), columns)


def _codes(explanations: Sequence[Explanation], times: int, *, fit: bool) -> _Texts:
    """The codes of each row's and output's warnings, in their order; of effects only with a ``fit``."""
    distinct: dict[str, int] = {}
    codes = [
        distinct.setdefault(
            ", ".join(dict.fromkeys(w.code for w in of_outputs(record, {output}))), len(distinct)
        )
        for each in explanations
        for record in (each.row_warnings if fit else vars(each)["row_warnings"])
        for output in each.output_names
    ]
    return _Texts([*distinct], np.repeat(np.array(codes, dtype=np.int64), times))


def _conditions(rows: Sequence[tuple[str, ...]]) -> tuple[list[str], Ints]:
    """Distinct texts, and codes (n, d); most rows share their conditions with another row."""
    patterns: dict[tuple[str, ...], int] = {}
    pattern_of_row = [patterns.setdefault(row, len(patterns)) for row in rows]
    texts: dict[str, int] = {}
    codes = [[texts.setdefault(text, len(texts)) for text in row] for row in patterns]
    return [*texts], np.array(codes, dtype=np.int64)[pattern_of_row]


def _in_order(groups: Sequence[_Lines], schema: Mapping[str, Any], backend: Any) -> tuple[Ints, Any]:
    positions = np.concatenate([group.rows for group in groups])
    lines = nw.concat([group.frame(schema, backend) for group in groups])
    if (np.diff(positions) >= 0).all():
        return positions, lines
    order = np.argsort(positions, kind="stable")
    return positions[order], nw.maybe_reset_index(lines[order])
