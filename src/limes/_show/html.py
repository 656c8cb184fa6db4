"""An explanation as HTML: one self-contained page, or a part of one for notebooks.

The templates escape every text; no script is needed, and the page forbids any.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.json import from_data_url, to_data_url
from limes._explanation.view import (
    OutputView,
    accuracy,
    coefficient_texts,
    fidelity,
    left_out,
    main_output,
    meaning,
    method_line,
    output_title,
    row_label,
    shown_outputs,
    view_row,
)
from limes._explanation.wording import CONFIDENCE, count, difference, error, estimate, number, one_line
from limes._show.images import ImageView, Outlines, framing_of
from limes._show.series import drawn_lanes
from limes._show.texts import pieces, shortened
from limes.exceptions import InputError
from limes.models._images import Framing

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from jinja2 import Environment

    from limes._arrays import Floats
    from limes._explanation import Explanation
    from limes._explanation.drawing import Card
    from limes._explanation.fit import Effect
    from limes._explanation.view import Line

MAX_ROWS = 50
MAX_FEATURES = 20
MAX_OPEN_OUTPUTS = 3
_MOST_LINES = {"exact": 500, "sampled": 400}  # in one page: with ten features below 100 kB
_WITH_CURVE = 1.25  # bytes of a line with the picture of an effect, by those of a line without
_LONGEST_FACT = 300
_LONGEST_TEXT = 20_000
_MOST_CLASSES = 6  # bars of classes; the last one is of all others together
_OTHERS = "{} others together"
_MOST_NUMBERS = 8  # superpixels with their numbers
_LONGEST_PICTURE = 30_000  # characters of a picture that is shown as it was stored
# facts that are drawn: the coloured text, image or series
_DRAWN = (
    "text",
    "spans",
    "image",
    "labels",
    "superpixels",
    "photo",
    "series",
    "stretches",
    "by_fill",
    "fill_spread",
)


def page(
    explanation: Explanation, *, hidden: Collection[str] = (), classes: Mapping[str, float] | None = None
) -> str:
    """Return a page that needs nothing but a browser, without the facts and columns in ``hidden``.

    ``classes`` are the model's answers to all classes by their names, of which the largest have bars.
    """
    content = _content(explanation) | {"hidden": hidden, "classes": _bars(classes or {})}
    return render("explanation_page.html", content)


def fragment(explanation: Explanation, *, classes: Mapping[str, float] | None = None) -> str:
    """Return a part of a page whose style touches nothing outside itself."""
    return render("explanation.html", _content(explanation) | {"classes": _bars(classes or {})})


def card_fragment(card: Card) -> str:
    """Return a card as a part of a page, by the same rule."""
    return render("card.html", {"card": card, "texts": len(card.rows[0]) <= 3 if card.rows else True})


def _bars(classes: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the largest answers, in per cent of the largest size, and the sum of the others."""
    names = sorted(classes, key=lambda name: -classes[name])
    if len(names) > _MOST_CLASSES:
        rest = names[_MOST_CLASSES - 1 :]
        names = names[: _MOST_CLASSES - 1]
        classes = {**classes, _OTHERS.format(len(rest)): sum(classes[name] for name in rest)}
        names.append(_OTHERS.format(len(rest)))
    largest = max((abs(classes[name]) for name in names), default=0.0) or 1.0
    return [
        {"name": name, "value": number(classes[name], 3), "share": round(100 * abs(classes[name]) / largest)}
        for name in names
    ]


def render(template: str, content: Mapping[str, Any]) -> str:
    """Fill in a template, escaping all texts; a name that is not in ``content`` is an error."""
    return _environment().get_template(template).render(content)


def template_text(name: str) -> str:
    """Return a file of the templates as it is."""
    environment = _environment()
    assert environment.loader is not None  # noqa: S101 - set below
    return environment.loader.get_source(environment, name)[0]


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("limes._show"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"estimate": estimate, "number": number, "one_line": one_line}
    return environment


def _content(explanation: Explanation) -> dict[str, Any]:
    n, d = explanation.values.shape[:2]
    outputs = len(explanation.output_names)
    lines = max(1, outputs * min(d, MAX_FEATURES))
    if explanation.fit is not None and explanation.fit.has_curves:
        lines *= _WITH_CURVE
    shown = min(n, MAX_ROWS, max(1, int(_MOST_LINES[explanation.method] / lines)))
    rows = [_row(explanation, row) for row in range(shown)]
    return {
        "title": title_of(explanation),
        "hidden": (),
        "method": method_of(explanation),
        "sampled": explanation.method == "sampled",
        "meaning": meaning(explanation),
        "rows": rows,
        "curves": any(output["curves"] for row in rows for output in row["outputs"]),
        "several": n > 1,
        "image": photo_of(explanation),
        "warnings": _gathered_warnings(explanation) if n > 1 else [],
        "omitted": count(n - shown, "further row") if n > shown else "",
        "facts": facts_of(explanation),
    }


def method_of(explanation: Explanation) -> str:
    """Return how the numbers of all rows were computed."""
    shared = 0 if explanation.shared_calls is None else int(explanation.shared_calls.max(initial=0))
    return method_line(explanation, explanation.model_calls, shared)


def facts_of(explanation: Explanation) -> list[tuple[str, str]]:
    """Return names and texts of the facts of the provenance that no picture shows."""
    return [
        (one_line(name), _fact(fact)) for name, fact in explanation.provenance.items() if name not in _DRAWN
    ]


def title_of(explanation: Explanation) -> str:
    """Return the title: the explained output, and the row or the number of rows."""
    outputs = shown_outputs(explanation, 0) if len(explanation) else range(len(explanation.output_names))
    named = output_title(explanation, outputs[0]) if len(outputs) == 1 else count(len(outputs), "output")
    named = f"{named[0].upper()}{named[1:]}" if named == "prediction" else named
    if len(explanation) == 1:
        return named if explanation.ids == (0,) else f"{named}, {row_label(explanation, 0)}"
    return f"{named}, {count(len(explanation), 'row')}"


def _gathered_warnings(explanation: Explanation) -> list[str]:
    """Return the warnings of many rows, each once with the number of rows that it concerns."""
    n = len(explanation)
    counts = Counter(text for row in explanation.row_warnings for text in dict.fromkeys(row))
    warnings = [f"{number:,} of {n:,} rows: {one_line(text)}" for text, number in counts.items()]
    missed = n - int(explanation.row_converged.sum())
    if missed:
        warnings.insert(
            0,
            f"{missed:,} of {n:,} rows: standard errors did not reach {accuracy(explanation)}, or are not to "
            "be trusted",
        )
    if explanation.errors:
        warnings.insert(0, left_out(explanation))
    return warnings


def _row(explanation: Explanation, row: int) -> dict[str, Any]:
    view, first = view_row(explanation, row, MAX_FEATURES), main_output(explanation, row)
    few = len(view.outputs) <= MAX_OPEN_OUTPUTS
    largest = next(output for output in view.outputs if output.position == first)
    return {
        "view": view,
        "poor": any(output.fits_poorly for output in view.outputs),
        "summary": _summary(largest, alone=len(view.outputs) == 1),
        "outputs": [
            {
                "view": output,
                "open": few or output.position == first,
                **_lines(explanation, row, output),
                "text": coloured_text(explanation, row, output.position),
                "tint": tinted_image(explanation, row, output.position),
                "lanes": drawn_lanes(explanation, row, output.position),
            }
            for output in view.outputs
        ],
    }


def coloured_text(explanation: Explanation, row: int, output: int) -> list[dict[str, Any]]:
    """Return the coloured pieces of an explained text, [] for other explanations."""
    return [
        {
            "text": piece.text,
            "sign": "p" if piece.value > 0 else "m",
            "strength": round(100 * piece.strength),
            "coefficient": _with_error(piece.value, piece.error, sampled=explanation.method == "sampled")
            if np.isfinite(piece.value)
            else "",
        }
        for piece in shortened(pieces(explanation, row, output), _LONGEST_TEXT)
    ]


def photo_of(explanation: Explanation) -> dict[str, Any]:
    """Return the explained image, its shape and outlines of its superpixels; {} for other explanations."""
    image = ImageView.of_output(explanation, 0)
    if image is None:
        return {}
    facts = explanation.provenance
    height, width = image.labels.shape
    framing = (
        framing_of(facts) if "photo" in facts else Framing.of((height, width), (height, width), "squash")
    )
    outlines, (row, column, tall, wide) = Outlines.of(image.labels), framing.box
    height, width = framing.photo
    return {
        "url": _light(facts.get("photo", facts["image"])),
        "shape": f"{width} / {height}",
        "box": f"0 0 {width} {height}",
        "outlines": outlines,
        "place": f"translate({column} {row}) scale({wide / outlines.width:.5g} {tall / outlines.height:.5g})",
        "outside": ""
        if framing.is_whole
        else f"M0 0h{width}v{height}h{-width}zM{column} {row}h{wide}v{tall}h{-wide}z",
    }


def _light(url: str) -> str:
    """Return a picture as a page shows it: large ones as a JPEG, where that is shorter."""
    if len(url) <= _LONGEST_PICTURE:
        return url
    return min(
        url, to_data_url(from_data_url(url)[..., :3], lossless=False, largest_png=0, quality=80), key=len
    )


def tinted_image(explanation: Explanation, row: int, output: int) -> dict[str, Any]:
    """Return the colours of an image's superpixels, to be laid over it, and the largest with their numbers.

    All outputs have one scale of colours. {} for other explanations.
    """
    image = ImageView.of_output(explanation, output, row, whole=True)
    if image is None:
        return {}
    largest = float(np.abs(np.nan_to_num(explanation.values[row])).max(initial=0.0))
    height, width = image.labels.shape
    top = image.top(_MOST_NUMBERS, "both")
    marks = [
        {"x": round(100 * (column + 0.5) / width, 1), "y": round(100 * (down + 0.5) / height, 1), "number": j}
        for (down, column), j in zip(image.middles(top), top.tolist(), strict=True)
    ]
    sampled = explanation.method == "sampled"
    shapes = [
        {
            "number": j,
            "sign": "p" if value > 0 else "m",
            "opacity": f"{share:.2f}",
            "coefficient": _with_error(value, spread, sampled=sampled),
        }
        for j, (value, spread, share) in enumerate(
            zip(image.values.tolist(), image.errors.tolist(), image.opacity(largest).tolist(), strict=True)
        )
        if np.isfinite(value)
    ]
    return {"shapes": shapes, "marks": marks, "largest": number(largest, 2)}


def _with_error(value: float, spread: float, *, sampled: bool) -> str:
    return f"{difference(value)} {error(spread)}" if sampled else difference(value)


def _summary(output: OutputView, *, alone: bool) -> str:
    prediction = f"prediction {number(output.prediction)}"
    largest = "" if alone else f" ({output.title})"
    fit = f", R² {fidelity(output)}" if fidelity(output) else ""
    reason = f"; largest: {output.lines[0].condition}" if output.lines else ""
    return f"{prediction}{largest}{fit}{reason}"


def _lines(explanation: Explanation, row: int, output: OutputView) -> dict[str, Any]:
    """Return the numbers of one output in words, its bars, and the effects of its columns."""
    scale = _Scale.of_lines(output.lines)
    texts = coefficient_texts(output.lines, sampled=explanation.method == "sampled")
    curves = sparklines(explanation, row, output.position, output.lines)
    return {
        "facts": [
            ("prediction", number(output.prediction)),
            ("surrogate", number(output.surrogate)),
            *([("R²", fidelity(output))] if fidelity(output) else []),
            ("not captured at the row", difference(output.difference)),
            ("intercept", number(output.intercept)),
        ],
        "zero": scale.position(0.0),
        "lines": [
            {
                "view": line,
                "coefficient": text,
                "error": uncertain,
                "bar": scale.between(0.0, line.drawn),
                "whisker": scale.between(line.drawn - _reach(line), line.drawn + _reach(line)),
                "curve": curve,
            }
            for line, (text, uncertain), curve in zip(output.lines, texts, curves, strict=True)
        ],
        "curves": any(curve is not None for curve in curves),
        "omitted": count(output.omitted, "smaller coefficient") if output.omitted else "",
    }


@dataclass(frozen=True)
class _Scale:
    """The map from coefficients to positions in a picture, in per cent of its width; zero is inside."""

    low: float
    high: float

    @classmethod
    def of_lines(cls, lines: tuple[Line, ...]) -> _Scale:
        ends = [line.drawn + side * _reach(line) for line in lines for side in (-1, 1)]
        finite = [0.0, *(end for end in ends if np.isfinite(end))]
        return cls(min(finite), max(finite))

    def position(self, value: float) -> float:
        # Divided before subtracted: the whole range of floats is wider than a float.
        size = max(abs(self.low), abs(self.high)) or 1.0
        span = (self.high / size - self.low / size) or 1.0
        return round(99 * (value / size - self.low / size) / span, 1)

    def between(self, start: float, end: float) -> tuple[float, float] | None:
        """Return left end and width, or None if there is nothing to draw."""
        if not (np.isfinite(start) and np.isfinite(end)) or start == end:
            return None
        left, right = sorted((self.position(start), self.position(end)))
        return left, round(right - left, 1)


def _reach(line: Line) -> float:
    reach = CONFIDENCE * line.drawn_error
    return reach if np.isfinite(reach) else 0.0


def _fact(fact: Any) -> str:
    text = fact if isinstance(fact, str) else json.dumps(fact, ensure_ascii=False)
    text = one_line(text)
    return text if len(text) <= _LONGEST_FACT else f"{text[:_LONGEST_FACT]}…"


# The height of a picture that is as wide as its column has cells, and the part of it above and below 0
_CURVE_HEIGHT, _CURVE_SWING = 16, 7
# More cells than this are too narrow to be seen
_MOST_CELLS = 40


@dataclass(frozen=True)
class Sparkline:
    """One effect: its number of cells, the position of the row's, and an SVG path."""

    count: int
    current: int
    path: str


def sparklines(
    explanation: Explanation, row: int, output: int, lines: Sequence[Line]
) -> list[Sparkline | None]:
    """Draw the effects of a row's columns on one scale; None for words and superpixels."""
    if explanation.fit is None or not explanation.fit.has_curves:
        return [None] * len(lines)
    effects = explanation[row].effects[output * len(explanation.feature_names) :]
    try:
        chosen = [effects[line.position] for line in lines]
    except InputError:  # effects of thousands of columns are too large: the page shows coefficients alone
        return [None] * len(lines)
    finite = [np.abs(effect.values[np.isfinite(effect.values)]).max(initial=0.0) for effect in chosen]
    return [_sparkline(effect, float(max(finite, default=0.0)) or 1.0) for effect in chosen]


def _sparkline(effect: Effect, largest: float) -> Sparkline | None:
    count = len(effect.cells)
    if not 2 <= count <= _MOST_CELLS:
        return None
    return Sparkline(count, effect.current, _step_path(effect.values / largest))


def _step_path(heights: Floats) -> str:
    """Return the path of a step function of heights from -1 to 1; it is broken where they are NaN."""
    path, joined = "", False
    for b, height in enumerate(heights.tolist()):
        if np.isfinite(height):
            y = f"{_CURVE_HEIGHT / 2 - _CURVE_SWING * height:.1f}".removesuffix(".0")
            path += f"V{y}H{b + 1}" if joined else f"M{b} {y}H{b + 1}"
        joined = bool(np.isfinite(height))
    return path
