r"""The page of a report: names and texts as JSON, packed numbers, and one script, allowed by its hash.

Nothing of the user's is markup: texts travel as JSON with ``<``, ``>``, ``&`` and the two line separators of
Unicode escaped, and the script writes them by ``textContent`` alone.

Arrays are stored features or outputs first, rows last, since neighbouring rows are alike: the coefficient of
row i, feature j and the k-th shown output is number (k·d + j)·n + i of ``values``. All numbers are text:
typed arrays, one after another, deflated, in base64.

=============== ============================================================================================
numbers         float32, seven digits; float64 where float32's range holds not all of an array
codes           the smallest of uint8, uint16 and uint32
curves          whole numbers, int16 or int32, times a step and a basis: see `_compressed`
shares          int16 times a step, and a scale for each row and output: x ≈ scale · step · integer, so that
                |x - x̂| ≤ scale · step / 2, with step = 1 / 4096 and scale the row's largest; -32768 is NaN
texts           each distinct one once, as JSON, and a code a place
=============== ============================================================================================

An array is stored in planes, all first bytes, all second ones, ...: neighbours are alike, and deflate takes
half. JSON holds a reference in its place, ``{"at": offset, "type": "f4", "size": count}``, offsets and counts
of little-endian numbers; ``templates/report/data.js`` reads them back.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Floats
from limes._diagnostics.bandwidth import placed_grid
from limes._diagnostics.context import ExactSource
from limes._diagnostics.diagnosis import Diagnosis, diagnose
from limes._explanation import Explanation
from limes._explanation.attribution import Coefficients, requested
from limes._explanation.certain import coefficients_of
from limes._explanation.fit import account_at, leading, pairs_at
from limes._explanation.parts import sentences_of_parts
from limes._explanation.rules import certificate_sentences, is_certain
from limes._explanation.view import (
    account_line,
    certain_at,
    coloured,
    fit_remark,
    heading_of,
    headlined_rule,
    in_differences,
    in_their_place,
    is_probability,
    meaning,
    method_line,
    output_title,
    pair_sentence,
    row_label,
    shown_outputs,
    shows_conditions,
    slope_deviations,
    slope_facts,
    usual_is,
    view_row,
    warnings_of,
    what_holds,
    where_base_is,
    with_outputs,
)
from limes._explanation.wording import cell, is_missing, one_line
from limes._show.diagnostics import by_kind
from limes._show.html import facts_of, photo_of, render, template_text, tinted_image, title_of
from limes._show.inputs import drawn_parts, pieces
from limes._show.series import drawn_lanes
from limes._threads import one_blas_thread, progress_bar
from limes.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limes._explanation.attribution import Contributions
    from limes._warnings import RowWarning

# In the order in which they are run
_SCRIPTS = ("data", "wording", "drawing", "items", "row", "compare", "overview", "list", "report")
# Lines of scripts that are comments: pages do without
_COMMENT = re.compile(r"^ *(//.*|/\*.*\*/)\n", re.MULTILINE)
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def page(
    explanation: Explanation,
    other: Explanation | None,
    *,
    models: Sequence[str],
    diagnosis: bool | Diagnosis,
    bandwidths: bool | None,
    effects: bool | None,
    title: str | None,
    progress: bool,
) -> str:
    explanations = [explanation] if other is None else [explanation, other]
    for option, value in (("bandwidths", bandwidths), ("effects", effects)):
        if value is not None and not isinstance(value, bool):
            raise InputError(f"{option} must be True, False or None, got {value!r}")
    if title is not None and not isinstance(title, str):
        raise InputError(f"title must be a text, got {title!r}")
    pair = isinstance(models, tuple | list) and len(models) == 2
    if not pair or not all(isinstance(name, str) for name in models) or models[0] == models[1]:
        raise InputError(f"models={models!r}: pass two different names, of this model and of the other")
    _check(explanations)
    explanations = [in_differences(each) for each in explanations]
    packer = Packer()
    contents = []
    for each, name in zip(explanations, models, strict=False):
        result = _diagnosis(each, diagnosis if each is explanation else bool(diagnosis), progress)
        contents.append(_Content(each, packer, progress).content(name, result, bandwidths, effects))
        if bandwidths and "missing" in contents[-1]["curves"]:
            raise InputError(f"bandwidths=True: {contents[-1]['curves']['missing']}")
    head = None if title is None else one_line(title)
    return _rendered({"title": head, "explanations": contents}, packer)


def _rendered(content: dict[str, Any], packer: Packer) -> str:
    from markupsafe import Markup

    script, style = _script(), render("report/report.css", {}).strip()
    return render(
        "report/report.html",
        {
            "title": content["title"] or content["explanations"][0]["title"],
            "script": Markup(script),  # noqa: S704 - limes' own files
            "style": Markup(style),  # noqa: S704
            "script_hash": _hash(script),
            "style_hash": _hash(style),
            "content": Markup(_escaped_json(content)),  # noqa: S704
            "numbers": packer.text(),
        },
    )


def _escaped_json(content: Any) -> str:
    """Return JSON that HTML parsers cannot read as markup."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


@cache
def _script() -> str:
    # its files within one function, so that they leave no names behind
    body = _COMMENT.sub("", "\n".join(template_text(f"report/{name}.js") for name in _SCRIPTS))
    return f"(() => {{\n'use strict';\n{body}\n}})();"


def _hash(text: str) -> str:
    """Return the hash by which a Content-Security-Policy identifies a text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _diagnosis(explanation: Explanation, wanted: bool | Diagnosis, progress: bool) -> Diagnosis | None:
    if isinstance(wanted, Diagnosis):
        if len(wanted) != len(explanation):
            raise InputError(
                f"diagnosis has {len(wanted):,} rows, the explanation {len(explanation):,}: "
                "pass limes.diagnose(explanation)"
            )
        return wanted
    if not isinstance(wanted, bool):
        raise InputError(f"diagnosis={wanted!r}: pass True, or what limes.diagnose(explanation) returned")
    return diagnose(explanation, progress=progress) if wanted else None


def _check(explanations: Sequence[Explanation]) -> None:
    first, *others = explanations
    if not len(first):
        raise InputError("the explanation has no rows: there is nothing to report")
    for other in others:
        if not isinstance(other, Explanation):
            raise InputError(f"other is of type {type(other).__name__}: pass an explanation by another model")
        if other.ids != first.ids:
            initial = repr(other.ids[0]) if len(other) else "missing"
            raise InputError(
                f"other explains other rows ({len(other):,}, the first is {initial}; here "
                f"{len(first):,}, the first is {first.ids[0]!r}): explain the same rows with both models, "
                "with the same ids="
            )
        if other.output_names != first.output_names:
            raise InputError(
                f"other has the outputs {list(other.output_names)}, this explanation "
                f"{list(first.output_names)}: compare explanations of the same outputs"
            )


# -- the content of one explanation -------------------------------------------------------------------------

# Largest numbers of rows with effects and bandwidths, unless asked for: of models that need seconds for
# thousands of rows, and of others
MOST_ROWS, MOST_SLOW_ROWS = 10_000, 50
# Largest number of numbers of effects, unless asked for; largest number of names of cells
_MOST_EFFECTS, _MOST_CELL_TEXTS = 1_000_000, 20_000
_BLOCK = 500
# Most rows whose pairs are in the page, a sentence each, and seconds that these may take
_MOST_PAIRED, _PAIR_SECONDS = 500, 5.0
# A column with more distinct values is stored as numbers, if it has nothing else
_FEW_VALUES = 256
# float32 and float64 hold whole numbers up to these
_WHOLE_32, _WHOLE_64 = 2**24, 2**53


def _certain(explanation: Explanation, row: int) -> dict[str, Any]:
    """Return the facts of a row that hold for certain, as the page shows them."""
    view = certain_at(explanation, row)
    assert view is not None  # noqa: S101 - of facts that hold for certain
    return {
        "answer": view.answer,
        "heads": view.columns,
        "lines": [(line.fact, *line.without) for line in view.lines],
        "sentences": view.sentences,
        "columns": explanation.certificates[row].columns,
    }


@dataclass(frozen=True, eq=False)
class _Content:
    """One explanation as the page stores it; its arrays are in the packer."""

    explanation: Explanation
    packer: Packer
    progress: bool

    def content(
        self, name: str, diagnosis: Diagnosis | None, bandwidths: bool | None, effects: bool | None
    ) -> dict[str, Any]:
        e = self.explanation
        outputs, account = shown_outputs(e), self._computed
        few = len(e) <= (MOST_ROWS if e.fit is not None and e.fit.is_quick else MOST_SLOW_ROWS)
        rules = [(headlined_rule(one), tuple(certificate_sentences(one))) for one in e.certificates]
        return {
            "name": one_line(name),
            "title": title_of(e),
            "method": method_line(e) if account is None else account_line(e, account),
            "limeMethod": method_line(e),
            "meaning": meaning(e),
            "sampled": e.method == "sampled",
            "facts": facts_of(e),
            "rows": len(e),
            "ids": self._ids(),
            "features": [one_line(feature) for feature in e.feature_names],
            "outputs": [output_title(e, k) for k in outputs],
            **self._numbers(outputs),
            **self._slopes(),
            "remarks": self._remarks(outputs) if self._has_lime else None,
            "labels": [output_title(e, k)[2:-1] if is_probability(e) else "" for k in outputs],
            "account": None if account is None else self._account(outputs, account),
            "warnings": self._warnings(e.row_warnings if account is None else e.contributions.row_warnings),
            "lime": self._has_lime,
            "limeWarnings": self._warnings(self._lime_warnings),
            "conditions": [self.packer.coded(column, one_line) for column in zip(*e.conditions, strict=True)],
            "data": [self._column(j) for j in range(len(e.feature_names))],
            "effects": self._effects(outputs, few if effects is None else effects, limited=effects is None)
            if self._has_lime
            else None,
            "curves": self._curves(outputs, (self._has_lime and few) if bandwidths is None else bandwidths),
            "rules": rules,
            "certain": [_certain(e, i) for i in range(len(e))] if is_certain(e) else None,
            "findings": None if diagnosis is None else self._findings(diagnosis),
            "item": self._item(outputs),
        }

    def _ids(self) -> Any:
        """Return numbers of rows without other names, else texts."""
        ids = self.explanation.ids
        if all(type(label) is int and abs(label) < _WHOLE_64 for label in ids):
            return {"numbers": self.packer.add(np.array(ids, dtype=np.float64), "f8")}
        return {"texts": [row_label(self.explanation, i) for i in range(len(ids))]}

    def _numbers(self, outputs: list[int]) -> dict[str, Any]:
        e, its = self.explanation, self._coefficients

        def rows_last(array: Any) -> Any:
            chosen = with_outputs(array, e)[..., outputs]
            return self.packer.numbers(np.moveaxis(chosen, (0, -1), (-1, 0)))

        return {
            "values": rows_last(its.values),
            "errors": rows_last(its.standard_errors) if np.nan_to_num(its.standard_errors).any() else None,
            "intercepts": rows_last(its.intercepts),
            "predictions": rows_last(e.predictions),
            "surrogates": rows_last(its.surrogate_predictions),
            "fidelity": rows_last(its.fidelity),
            "fidelityErrors": rows_last(its.fidelity_errors) if its.fidelity_errors.any() else None,
        }

    @cached_property
    def _computed(self) -> Contributions | None:
        """The contributions of all rows; None where coefficients speak first, or the model has none."""
        if leading(self.explanation) == "coefficients":
            return None
        try:
            return self.explanation.contributions
        except InputError:  # a warning of the rows says why
            return None

    @property
    def _has_lime(self) -> bool:
        """Whether coefficients were asked for: the page shows no others."""
        return self._computed is None or requested(self.explanation, "coefficients") is not None

    @property
    def _lime_warnings(self) -> Sequence[Sequence[RowWarning]]:
        e = self.explanation
        if is_certain(e):
            return e.row_warnings
        return e.coefficients.row_warnings if self._has_lime else [()] * len(e)

    @cached_property
    def _coefficients(self) -> Coefficients:
        """The numbers of features; NaN of facts that hold for certain, which have none."""
        e = self.explanation
        if not self._has_lime and self._computed is not None:
            e = in_their_place(e, self._computed)
        return coefficients_of(e)

    def _warnings(self, rows: Sequence[Sequence[RowWarning]]) -> Any:
        return self.packer.coded_lists([warnings_of(self.explanation, record) for record in rows])

    def _account(self, outputs: list[int], account: Contributions) -> dict[str, Any]:
        e, packer = self.explanation, self.packer

        def rows_last(name: str) -> Floats:
            array = with_outputs(getattr(account, name), e)
            return np.moveaxis(array[..., outputs], (0, -1), (-1, 0))

        values, errors = rows_last("values"), rows_last("standard_errors")
        return {
            "where": where_base_is(e),
            "heading": heading_of(where_base_is(e)),
            "usual": usual_is(e),
            "shown": [
                packer.coded(what_holds(e, i, j) for i in range(len(e))) for j in range(values.shape[1])
            ]
            if shows_conditions(e)
            else None,
            "base": packer.numbers(rows_last("base_values")),
            "baseErrors": packer.numbers(of_base) if (of_base := rows_last("base_errors")).any() else None,
            "values": packer.numbers(values),
            "errors": packer.numbers(errors) if errors.any() else None,
            "calls": packer.codes(account.calls) if account.calls.any() else None,
            "pairs": self._pairs(outputs, account),
        }

    def _pairs(self, outputs: list[int], account: Contributions) -> Any:
        """Which features act together, a sentence an output and row; None of many rows, or where unknown."""
        e = self.explanation
        pairs = pairs_at(e, range(len(e)), _PAIR_SECONDS) if len(e) <= _MOST_PAIRED else None
        if pairs is None:
            texts = [" ".join(sentences_of_parts(e, k)) for k in outputs] if len(e) == 1 else []
            return self.packer.coded(texts) if any(texts) else None
        values = with_outputs(account.values, e)
        return self.packer.coded(
            pair_sentence(e, pairs[i], values[i], k) for k in outputs for i in range(len(e))
        )

    def _slopes(self) -> dict[str, Any]:
        """Return deviations and means of columns that have slopes, NaN for others; None where none has."""
        facts = slope_facts(self.explanation)
        if not facts:
            return {"deviations": None, "means": None}
        means = [facts[name]["mean"] if name in facts else np.nan for name in self.explanation.feature_names]
        deviations = self.packer.numbers(slope_deviations(self.explanation))
        return {"deviations": deviations, "means": self.packer.numbers(means)}

    def _remarks(self, outputs: list[int]) -> dict[str, Any]:
        e = self.explanation
        fidelity, errors = (
            with_outputs(array, e)[:, outputs].T.ravel().tolist()
            for array in (self._coefficients.fidelity, self._coefficients.fidelity_errors)
        )
        return self.packer.coded(fit_remark(r2, error) for r2, error in zip(fidelity, errors, strict=True))

    def _column(self, j: int) -> dict[str, Any]:
        """Return the values of a column: as numbers, or as texts, each once."""
        column = self.explanation.data[:, j].tolist()
        values = [None if is_missing(value) else value for value in column]
        present = [value for value in values if value is not None]
        numeric = all(
            type(value) is float or (type(value) is int and abs(value) < _WHOLE_64) for value in present
        )
        slope = self.explanation.feature_names[j] in slope_facts(self.explanation)
        if numeric and (slope or len(set(present)) > _FEW_VALUES):
            floats = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
            whole = max((abs(v) for v in present if isinstance(v, int) or v.is_integer()), default=0)
            add = partial(self.packer.add, kind="f8") if whole >= _WHOLE_32 else self.packer.numbers
            return {"numbers": add(floats)}
        # 1 and True are equal, but are written differently
        pairs = ((type(value).__name__, value) for value in values)
        return self.packer.coded(pairs, lambda pair: cell(pair[1]))

    def _effects(self, outputs: list[int], wanted: bool, *, limited: bool) -> Any:
        """Return the whole effect of every column, cell by cell; None where columns have none."""
        e, packer = self.explanation, self.packer
        if e.fit is None or not e.fit.has_curves:
            return None
        n, d = e.data.shape
        counts = [len(effect.cells) for effect in e[:1, :, outputs].effects[:d]]
        if not wanted or (limited and n * len(outputs) * sum(counts) > _MOST_EFFECTS):
            return {"missing": "The report was written without the whole effects of columns."}
        values = np.full((len(outputs), sum(counts), n), np.nan)
        errors, current = np.zeros_like(values), np.zeros((d, n), dtype=np.int64)
        texts: list[list[tuple[str, ...]]] = [[] for _ in range(d)]
        places = np.cumsum([0, *counts])
        with progress_bar(n, "effects", unit="rows", shown=self.progress) as bar:
            for start in range(0, n, _BLOCK):
                block = e[start : start + _BLOCK, :, outputs].effects
                for position, effect in enumerate(block):
                    row, rest = divmod(position, d * len(outputs))
                    k, j = divmod(rest, d)
                    cells = slice(places[j], places[j] + counts[j])
                    values[k, cells, start + row] = effect.values
                    errors[k, cells, start + row] = effect.standard_errors
                    current[j, start + row] = effect.current
                    if k == 0:
                        texts[j].append(effect.cells)
                bar.update(len(block) // (d * len(outputs)))
        # as shares of the row's largest; NaN has an infinite error
        scale = np.abs(np.nan_to_num(values)).max(axis=1, keepdims=True)
        finite = np.where(np.isfinite(errors), errors, np.nan)
        limits = np.clip(np.nan_to_num(finite), 0.0, 4.0 * scale)
        # texts of slopes' cells may be too many
        few = sum(len(cells) for column in texts for cells in set(column)) <= _MOST_CELL_TEXTS
        return {
            "counts": counts,
            "current": packer.codes(current),
            "cells": [packer.coded(column, lambda cells: [*map(one_line, cells)]) for column in texts]
            if few
            else None,
            "scales": packer.numbers(scale),
            "values": packer.shares(values, scale),
            "errors": packer.shares(limits, scale) if (finite > 0).any() else None,
        }

    def _curves(self, outputs: list[int], wanted: bool) -> dict[str, Any]:
        """Return coefficients at other bandwidths, or why they are missing."""
        fixed = "Its bandwidth cannot be moved:"
        if not wanted:
            return {"missing": f"{fixed} the report was written without other bandwidths."}
        if self.explanation.certificates:
            return {"missing": "A rule has no bandwidth."}
        try:
            bandwidths, current, values = _at_bandwidths(self.explanation, outputs, self.progress)
        except InputError as error:
            return {"missing": f"{fixed} {error}"}
        basis, step, weights, scales, largest_error = _compressed(values)
        return {
            "bandwidths": self.packer.add(bandwidths, "f8"),
            "current": current,
            "rank": len(basis),
            "basis": self.packer.add(basis, "f8"),
            "step": step,
            "weights": self.packer.integers(weights.transpose(3, 2, 1, 0)),
            "scales": self.packer.numbers(scales.T),
            "error": largest_error,
        }

    def _findings(self, diagnosis: Diagnosis) -> dict[str, Any]:
        advice: dict[str, int] = {}
        rows = [
            [
                (
                    finding.severity,
                    finding.title,
                    one_line(f"{finding.sentence} {also}"),
                    advice.setdefault(one_line(finding.advice), len(advice)),
                )
                for finding, also in by_kind(row.findings)
            ]
            for row in diagnosis.rows
        ]
        verdicts = [(one_line(row.verdict), row.explanation.title) for row in diagnosis.rows]
        coded = {"verdicts": self.packer.coded(verdicts), "found": self.packer.coded_lists(rows)}
        return {**coded, "advice": list(advice)}

    def _item(self, outputs: list[int]) -> dict[str, Any] | None:
        e = self.explanation
        if len(e) != 1:
            return None
        # colours are those of contributions, as on the page
        e = coloured(e, 0, view_row(e, 0, 0, account=account_at(e, [0])))
        drawings = [self._drawing(name, one, outputs) for name, one in drawn_parts(e)]
        drawn = [one for one in drawings if one["text"] or one["photo"] or any(one["lanes"])]
        return {"drawings": drawn} if drawn else None

    def _drawing(self, part: str, e: Explanation, outputs: list[int]) -> dict[str, Any]:
        photo = photo_of(e)
        if photo:
            photo |= {"outlines": photo["outlines"].paths}
        return {
            "part": part,
            "text": [[piece.text, piece.feature] for piece in pieces(e, 0, outputs[0])],
            "photo": photo,
            "tints": [tinted_image(e, 0, k) for k in outputs],
            "lanes": [drawn_lanes(e, 0, k) for k in outputs],
        }


# -- numbers -------------------------------------------------------------------------------------------------

STEP = 1.0 / 4096.0
NOT_A_NUMBER = -32768
# Smaller or larger numbers than these are stored as float64
_SMALLEST, _LARGEST = 1e-30, 1e30
_LEVEL = 6  # 9 takes ten times as long for 1 %

Reference = dict[str, Any]


class Packer:
    """Collects arrays; ``text()`` returns them as the page stores them."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, array: NDArray[Any], kind: str) -> Reference:
        numbers = np.ascontiguousarray(array, dtype=f"<{kind}").reshape(-1)
        planes = numbers.view(np.uint8).reshape(numbers.size, numbers.itemsize).T
        reference = {"at": self._size, "type": kind, "size": int(numbers.size)}
        self._parts.append(planes.tobytes())
        self._size += numbers.nbytes
        return reference

    def numbers(self, array: Any) -> Reference:
        floats = np.asarray(array, dtype=np.float64)
        sizes = np.abs(floats[np.isfinite(floats) & (floats != 0)])
        narrow = bool(((sizes > _SMALLEST) & (sizes < _LARGEST)).all())
        return self.add(floats, "f4" if narrow else "f8")

    def codes(self, codes: Any) -> Reference:
        integers = np.asarray(codes, dtype=np.int64)
        largest = int(integers.max(initial=0))
        return self.add(integers, "u1" if largest < 2**8 else "u2" if largest < 2**16 else "u4")

    def integers(self, integers: Floats) -> Reference:
        return self.add(integers, "i2" if np.abs(integers).max(initial=0.0) < 2**15 else "i4")

    def shares(self, array: Floats, scale: Floats) -> Reference:
        """Store numbers as shares of a scale, which broadcasts to them; a scale of 0 belongs to zeros."""
        steps = np.rint(array / np.where(scale > 0, scale, 1.0) / STEP)
        return self.add(np.where(np.isfinite(steps), steps, NOT_A_NUMBER), "i2")

    def coded(self, entries: Iterable[Hashable], write: Callable[[Any], Any] | None = None) -> dict[str, Any]:
        """Store codes, and each distinct entry once, as it is written, in the order of first appearance."""
        places: dict[Hashable, int] = {}
        codes = [places.setdefault(entry, len(places)) for entry in entries]
        return {"entries": [*map(write, places)] if write else list(places), "codes": self.codes(codes)}

    def coded_lists(self, lists: Sequence[Sequence[Hashable]]) -> dict[str, Any]:
        return {
            **self.coded(entry for entries in lists for entry in entries),
            "counts": self.codes([len(entries) for entries in lists]),
        }

    def text(self) -> str:
        return base64.b64encode(zlib.compress(b"".join(self._parts), _LEVEL)).decode("ascii")


# -- coefficients at other bandwidths ------------------------------------------------------------------------

# Largest error of a curve, as a share of the row's largest coefficient at the same bandwidth
TOLERANCE = 5e-4
_COARSEST = 1.0 / 2048.0
# Rows whose coefficients at all bandwidths are computed together: tables of forests are made once a block
_ROWS = 2000
# Where all coefficients of a row are below this share of its largest at any bandwidth, that judges errors
_NOTHING = 1e-3


@one_blas_thread()
def _at_bandwidths(
    explanation: Explanation, outputs: list[int], progress: bool
) -> tuple[Floats, int, Floats]:
    """Return bandwidths (G,), the current one's position, and exact coefficients (n, d, k, G)."""
    explainer = explanation.explainer
    if explainer is None or not hasattr(explainer, "_diagnostic_context"):
        raise InputError("it comes from a file, or its explainer has no bandwidth.")
    if explanation.method != "exact":
        raise InputError("LIME's coefficients are sampled.")
    if explanation.provenance.get("ridge"):
        raise InputError("the surrogate has a ridge penalty.")
    bandwidths, current = placed_grid(float(explanation.provenance["bandwidth"]))
    blocks: list[Floats] = []
    with progress_bar(len(explanation), "bandwidths", unit="rows", shown=progress) as bar:
        for start in range(0, len(explanation), _ROWS):
            rows = explanation[start : start + _ROWS]
            columns = []
            for output in outputs:
                chosen = np.full(len(rows), output)
                context = explainer._diagnostic_context(rows, output=chosen, calls=None)  # noqa: SLF001
                if not isinstance(context.source, ExactSource):
                    raise InputError("other bandwidths would need more calls of the model.")
                paths = context.source.path(context, bandwidths)
                columns.append(np.stack([path.value.T for path in paths]))  # (n, d, G)
            blocks.append(np.stack(columns, axis=2))
            bar.update(len(rows))
    # slopes count per standard deviation
    values = np.concatenate(blocks) * slope_deviations(explanation)[:, None, None]
    if not np.isfinite(values).all():
        raise InputError("some coefficients are not finite at other bandwidths.")
    return bandwidths, current, values


@one_blas_thread()
def _compressed(values: Floats) -> tuple[Floats, float, Floats, Floats, float]:
    """Return basis (r, G), step, weights (n, d, k, r), scales (n, k) and the largest error of curves."""
    # Curves over ν are smooth and alike. Divided by each row's largest coefficient, curves C (n d, G) on a
    # grid of G bandwidths lie near a space of few dimensions, spanned by the first eigenvectors V of CᵀC:
    #
    #     β_ij(ν_g) ≈ scale_i · step · Σ_r c_ijr V_rg,    c = C Vᵀ / step, rounded to whole numbers.
    #
    # Forests on 20 columns take six of 25 dimensions. Dimensions are added, and then the step is halved,
    # until the largest error is within the tolerance, as a share of the row's largest at the same bandwidth.
    scales = np.abs(values).max(axis=(1, 3), initial=0.0)
    shares = values / np.where(scales > 0, scales, 1.0)[:, None, :, None]
    flat = shares.reshape(-1, values.shape[-1])
    vectors = np.linalg.eigh(flat.T @ flat)[1][:, ::-1].T
    largest = np.abs(shares).max(axis=1, initial=0.0)
    unit = np.where(largest > _NOTHING, largest, 1.0)

    def error(weights: Floats, basis: Floats) -> float:
        miss = np.abs(weights @ basis - shares).max(axis=1, initial=0.0)
        return float((miss / unit).max(initial=0.0))

    rank = 1
    while rank < len(vectors) and error(shares @ vectors[:rank].T, vectors[:rank]) > TOLERANCE / 2:
        rank += 1
    basis, step = vectors[:rank], _COARSEST
    exact = shares @ basis.T
    while error(step * np.rint(exact / step), basis) > TOLERANCE:
        step /= 2
    steps = np.rint(exact / step)
    return basis, step, steps, scales, error(step * steps, basis)
