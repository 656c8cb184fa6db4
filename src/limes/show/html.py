"""An explanation as HTML: one self-contained page, or a part of one for notebooks.

The template escapes every text it is given; no script is needed, and the page forbids any.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.show.certificate import certificate_lines
from limes.show.images import ImageView
from limes.show.pages import rendered
from limes.show.png import encoded
from limes.show.texts import pieces, shortened
from limes.show.view import OutputView, fidelity, largest_output, meaning, method_line, view_row
from limes.show.wording import CONFIDENCE, count, difference, error, number, one_line, signed_column

if TYPE_CHECKING:
    from collections.abc import Collection

    from limes.explanation import Explanation
    from limes.show.view import Line

MAX_ROWS = 50
MAX_FEATURES = 20
MAX_OPEN_OUTPUTS = 3
_MOST_LINES = {"exact": 500, "sampled": 400}  # in one page: with ten features below 100 kB
_LONGEST_FACT = 300
_LONGEST_TEXT = 20_000
_DRAWN = ("text", "spans", "image", "labels", "superpixels")  # facts that are the coloured text or image


def page(explanation: Explanation, *, hidden: Collection[str] = ()) -> str:
    """Return a page that needs nothing but a browser, without the facts and columns that are hidden."""
    return rendered("explanation_page.html", {**_content(explanation), "hidden": hidden})


def fragment(explanation: Explanation) -> str:
    """Return a part of a page whose style touches nothing outside itself."""
    return rendered("explanation.html", _content(explanation))


def _content(explanation: Explanation) -> dict[str, Any]:
    n, d = explanation.values.shape[:2]
    outputs = len(explanation.output_names)
    lines = max(1, outputs * min(d, MAX_FEATURES))
    shown = min(n, MAX_ROWS, max(1, _MOST_LINES[explanation.method] // lines))
    rows = [_row(explanation, row) for row in range(shown)]
    return {
        "title": _title(explanation),
        "hidden": (),
        "method": method_line(explanation, explanation.model_calls),
        "sampled": explanation.method == "sampled",
        "meaning": meaning(explanation),
        "rows": rows,
        "several": n > 1,
        "image": _photo(explanation),
        "warnings": _gathered_warnings(explanation) if n > 1 else [],
        "left_out": count(n - shown, "further row") if n > shown else "",
        "facts": [
            (one_line(name), _fact(fact))
            for name, fact in explanation.provenance.items()
            if name not in _DRAWN
        ],
    }


def _title(explanation: Explanation) -> str:
    outputs = [one_line(name) for name in explanation.output_names]
    named = outputs[0] if len(outputs) == 1 else count(len(outputs), "output")
    return named if len(explanation) == 1 else f"{named}, {count(len(explanation), 'row')}"


def _gathered_warnings(explanation: Explanation) -> list[str]:
    """Return the warnings of many rows, each once with the number of rows that it concerns."""
    n = len(explanation)
    counts = Counter(text for row in explanation.row_warnings for text in dict.fromkeys(row))
    told = [f"{number:,} of {n:,} rows: {one_line(text)}" for text, number in counts.items()]
    missed = n - int(explanation.row_converged.sum())
    if missed:
        told.insert(0, f"{missed:,} of {n:,} rows: the tolerance was not reached")
    return told


def _row(explanation: Explanation, row: int) -> dict[str, Any]:
    view = view_row(explanation, row, MAX_FEATURES)
    first = largest_output(explanation, row)
    few = len(view.outputs) <= MAX_OPEN_OUTPUTS
    return {
        "number": row,
        "warnings": view.warnings,
        **_certificate(explanation, row),
        "summary": _summary(view.outputs[first], alone=len(view.outputs) == 1),
        "outputs": [
            {
                **_output(output, is_open=few or k == first, sampled=explanation.method == "sampled"),
                "text": _text(explanation, row, k),
                "tint": _tint(explanation, row, k),
            }
            for k, output in enumerate(view.outputs)
        ],
    }


def _text(explanation: Explanation, row: int, output: int) -> list[dict[str, Any]]:
    """Pieces of the text that is explained, empty of other explanations."""
    found = shortened(pieces(explanation, row, output), _LONGEST_TEXT)
    return [
        {
            "text": piece.text,
            "sign": "p" if piece.value > 0 else "m",
            "strength": round(100 * piece.strength),
            "coefficient": difference(piece.value) if piece.strength else "",
        }
        for piece in found
    ]


def _photo(explanation: Explanation) -> dict[str, str]:
    """The image that is explained and its shape, empty of other explanations."""
    found = ImageView.of(explanation, 0)
    if found is None:
        return {}
    height, width = found.labels.shape
    return {"url": explanation.provenance["image"], "shape": f"{width} / {height}"}


def _tint(explanation: Explanation, row: int, output: int) -> str:
    """The colours of an image's superpixels, to be laid over it; "" of other explanations."""
    found = ImageView.of(explanation, output, row)
    return "" if found is None else encoded(found.glass())


def _certificate(explanation: Explanation, row: int) -> dict[str, Any]:
    """Rule and certificate of a sparse explanation, both empty of others."""
    if not explanation.certificates:
        return {"rule": "", "certificate": []}
    facts = explanation.certificates[row]
    return {"rule": facts["rule"], "certificate": certificate_lines(facts)}


def _summary(output: OutputView, *, alone: bool) -> str:
    prediction = f"prediction {number(output.prediction)}"
    largest = "" if alone else f" ({output.name})"
    reason = f"; most by {output.lines[0].condition}" if output.lines else ""
    return f"{prediction}{largest}{reason}"


def _output(output: OutputView, *, is_open: bool, sampled: bool) -> dict[str, Any]:
    facts = [
        ("prediction", number(output.prediction)),
        ("surrogate", number(output.surrogate)),
        ("local difference", difference(output.difference)),
        ("intercept", number(output.intercept)),
    ]
    if fidelity(output):
        facts.append(("fidelity R²", fidelity(output)))
    return {
        "name": output.name,
        "open": is_open,
        "facts": facts,
        "zero": _Scale.of(output.lines).at(0.0),
        "lines": _lines(output, sampled=sampled),
        "left_out": count(output.left_out, "smaller coefficient") if output.left_out else "",
    }


def _lines(output: OutputView, *, sampled: bool) -> list[dict[str, Any]]:
    scale = _Scale.of(output.lines)
    texts = signed_column(line.value for line in output.lines)
    return [
        {
            "condition": line.condition,
            "data": line.data,
            "coefficient": text,
            "error": error(line.standard_error) if sampled else "",
            "sign": "p" if line.value > 0 else "m",
            "bar": scale.between(0.0, line.value),
            "whisker": scale.between(line.value - _reach(line), line.value + _reach(line)),
        }
        for line, text in zip(output.lines, texts, strict=True)
    ]


@dataclass(frozen=True)
class _Scale:
    """From coefficients to places in a picture, in per cent of its width; zero is inside."""

    low: float
    high: float

    @classmethod
    def of(cls, lines: tuple[Line, ...]) -> _Scale:
        ends = [line.value + side * _reach(line) for line in lines for side in (-1, 1)]
        known = [0.0, *(end for end in ends if np.isfinite(end))]
        return cls(min(known), max(known))

    def at(self, value: float) -> float:
        # Divided before subtracted: the whole range of floats is wider than a float.
        size = max(abs(self.low), abs(self.high)) or 1.0
        span = (self.high / size - self.low / size) or 1.0
        return round(99 * (value / size - self.low / size) / span, 1)

    def between(self, start: float, end: float) -> tuple[float, float] | None:
        """Return left end and width, or None where there is nothing to draw."""
        if not (np.isfinite(start) and np.isfinite(end)) or start == end:
            return None
        left, right = sorted((self.at(start), self.at(end)))
        return left, round(right - left, 1)


def _reach(line: Line) -> float:
    reach = CONFIDENCE * line.standard_error
    return reach if np.isfinite(reach) else 0.0


def _fact(fact: Any) -> str:
    text = fact if isinstance(fact, str) else json.dumps(fact, ensure_ascii=False)
    text = one_line(text)
    return text if len(text) <= _LONGEST_FACT else f"{text[:_LONGEST_FACT]}…"
