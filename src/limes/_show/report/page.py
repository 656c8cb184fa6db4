"""The page of a report: names and texts as JSON, packed numbers, and one script, allowed by its hash.

Nothing of the user's is markup: texts travel as JSON with ``<``, ``>``, ``&`` and the two line separators of
Unicode escaped, and the script writes them by ``textContent`` alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from limes._diagnostics.diagnosis import Diagnosis, diagnose
from limes._explanation import Explanation
from limes._explanation.wording import one_line
from limes._show.html import render, template_text
from limes._show.report.content import explanation_content
from limes._show.report.packing import Packer
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

# In the order in which they are run
_SCRIPTS = (
    "data.js",
    "wording.js",
    "drawing.js",
    "items.js",
    "row.js",
    "compare.js",
    "overview.js",
    "list.js",
    "report.js",
)
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
    """Return the report of one explanation, or of two models' explanations of the same rows."""
    explanations = [explanation] if other is None else [explanation, other]
    for option, value in (("bandwidths", bandwidths), ("effects", effects)):
        if value is not None and not isinstance(value, bool):
            raise InputError(f"{option} must be True, False or None, got {value!r}")
    if title is not None and not isinstance(title, str):
        raise InputError(f"title must be a text, got {title!r}")
    _check_models(models)
    _check(explanations)
    packer = Packer()
    content = {
        "title": one_line(title) if title is not None else None,
        "explanations": [
            explanation_content(
                each,
                packer,
                name=name,
                diagnosis=_diagnosis(each, diagnosis if each is explanation else bool(diagnosis), progress),
                bandwidths=bandwidths,
                effects=effects,
                progress=progress,
            )
            for each, name in zip(explanations, models, strict=False)
        ],
    }
    if bandwidths:
        _refuse_missing(content)
    return _rendered(content, packer)


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
            "content": Markup(json_text(content)),  # noqa: S704 - escaped there
            "numbers": packer.text(),
        },
    )


def json_text(content: Any) -> str:
    """Return JSON that HTML parsers cannot read as markup."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


@cache
def _script() -> str:
    """Return the script: its files within one function, so that they leave no names behind."""
    body = "\n".join(template_text(f"report/{name}") for name in _SCRIPTS)
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


def _check_models(models: Sequence[str]) -> None:
    pair = isinstance(models, tuple | list) and len(models) == 2
    if not pair or not all(isinstance(name, str) for name in models) or models[0] == models[1]:
        raise InputError(f"models={models!r}: pass two different names, of this model and of the other")


def _check(explanations: Sequence[Explanation]) -> None:
    """Check that there are rows, and that two models explain the same ones."""
    first, *others = explanations
    if not len(first):
        raise InputError("the explanation has no rows: there is nothing to report")
    for other in others:
        if not isinstance(other, Explanation):
            raise InputError(f"other is of type {type(other).__name__}: pass an explanation by another model")
        if other.ids != first.ids:
            raise InputError(
                f"other explains other rows ({len(other):,}, the first is {_first(other)}; here "
                f"{len(first):,}, the first is {_first(first)}): explain the same rows with both models, "
                "with the same ids="
            )
        if other.output_names != first.output_names:
            raise InputError(
                f"other has the outputs {list(other.output_names)}, this explanation "
                f"{list(first.output_names)}: compare explanations of the same outputs"
            )


def _first(explanation: Explanation) -> str:
    return repr(explanation.ids[0]) if len(explanation) else "missing"


def _refuse_missing(content: dict[str, Any]) -> None:
    for each in content["explanations"]:
        if "missing" in each["curves"]:
            raise InputError(f"bandwidths=True: {each['curves']['missing']}")
