"""An explanation as HTML: a self-contained page, or a part of one for notebooks.

The templates escape every text; no script is needed, and the page forbids any.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.attribution import requested
from limes._explanation.drawing import fact_texts
from limes._explanation.fit import account_at, leading, pairs_at
from limes._explanation.json import from_data_url, to_data_url
from limes._explanation.parts import sentences_of_parts
from limes._explanation.view import (
    account_line,
    coloured,
    heading_of,
    left_out,
    main_output,
    meaning,
    method_line,
    output_title,
    pair_sentence,
    row_label,
    shown_outputs,
    shows_conditions,
    stated_facts,
    usual_is,
    view_row,
    where_base_is,
    whose_surrogate,
)
from limes._explanation.wording import count, difference, error, estimate, number, one_line, without_name
from limes._show.axes import Scale
from limes._show.inputs import (
    ImageView,
    Outlines,
    drawn_parts,
    framing_of,
    largest_size,
    pieces,
    shortened,
)
from limes._show.series import drawn_lanes
from limes._warnings import CODES
from limes.exceptions import InputError
from limes.models._images import Framing

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from jinja2 import Environment

    from limes._explanation import Explanation
    from limes._explanation.attribution import Contributions
    from limes._explanation.drawing import Card
    from limes._explanation.fit import Effect
    from limes._explanation.view import Line, OutputView, RowView

MAX_ROWS = 50
MAX_FEATURES = 20
MAX_OPEN_OUTPUTS = 3
_MOST_LINES = {"exact": 500, "sampled": 400}  # in one page: with ten features below 100 kB
_WITH_CURVE = 1.25  # bytes of a line with the picture of an effect, by those of a line without
LONGEST_FACT = 300
_LONGEST_TEXT = 20_000
_MOST_CLASSES = 6  # bars of classes; the last one is of all others together
_MOST_NUMBERS = 8  # superpixels with their numbers
_LONGEST_PICTURE = 30_000  # characters of a picture that is shown as it was stored
# facts that are drawn: the coloured text, image or series
DRAWN = (
    *("text", "spans", "image", "labels", "superpixels", "photo", "photo_labels", "series", "stretches"),
    *("pictures", "by_fill", "fill_spread", "together", "coarse"),
)


def page(
    explanation: Explanation,
    *,
    hidden: Collection[str] = (),
    classes: Mapping[str, float] | None = None,
    of: str = "",
) -> str:
    """Return a page without the facts and columns in ``hidden``, and with bars of the largest ``classes``.

    It shows the reading that is named, or that speaks first.
    """
    content = content_of(explanation, of=of) | {"hidden": hidden, "classes": _bars(classes or {})}
    return render("explanation_page.html", content)


def fragment(explanation: Explanation, *, classes: Mapping[str, float] | None = None, of: str = "") -> str:
    return render("explanation.html", content_of(explanation, of=of) | {"classes": _bars(classes or {})})


def card_fragment(card: Card) -> str:
    return render("card.html", {"card": card, "texts": len(card.rows[0]) <= 3 if card.rows else True})


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
    words = {"estimate": estimate, "number": number, "one_line": one_line, "amount": count}
    environment.filters |= words | {"difference": difference, "error": error, "without_name": without_name}
    return environment


# -- the explanation as a whole ------------------------------------------------------------------------------


def content_of(explanation: Explanation, *, of: str = "", features: int = MAX_FEATURES) -> dict[str, Any]:
    """Return what the template of an explanation needs, with lines of at most some ``features``."""
    n, d = explanation.data.shape
    outputs = len(explanation.output_names)
    lines = max(1, outputs * min(d, features))
    if explanation.fit is not None and explanation.fit.has_curves:
        lines *= _WITH_CURVE
    shown = min(n, MAX_ROWS, max(1, int(_MOST_LINES[explanation.method] / lines)))
    account = explanation.contributions.at(range(shown)) if of == "contributions" else None
    if not of and leading(explanation) == "contributions":
        account = account_at(explanation, range(shown))
    rows = [_row(explanation, row, account and account.at([row]), features, of) for row in range(shown)]
    if account is not None:
        _say_pairs(explanation, account, rows)
    views = [output["view"] for row in rows for output in row["outputs"]]
    whole = requested(explanation, "contributions") or account
    return {
        "title": title_of(explanation),
        "hidden": (),
        "method": method_line(explanation) if whole is None else account_line(explanation, whole),
        "sampled": any(view.sampled for view in views),
        "is_rule": bool(explanation.certificates),
        "certain": any(row["view"].certain for row in rows),
        "meaning": meaning(explanation),
        "usual": "" if shows_conditions(explanation) else usual_is(explanation),
        "rows": rows,
        "accounts": account is not None,
        "estimates": account is not None and any(view.sampled for view in views),
        "curves": any(any(output["curves"]) for row in rows for output in row["outputs"]),
        "several": n > 1,
        "plain": False,
        "heading": heading_of(where_base_is(explanation)),
        "photos": [photo_of(one) for _, one in drawn_parts(explanation)],
        "warnings": _gathered_warnings(explanation, "" if account is None else "coefficients")
        if n > 1
        else [],
        "omitted": count(n - shown, "further row") if n > shown else "",
        "facts": facts_of(explanation),
    }


def _bars(classes: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the largest answers, in per cent of the largest size, and the sum of the others."""
    answers = sorted(classes.items(), key=lambda item: -item[1])
    if len(answers) > _MOST_CLASSES:
        rest = [answer for _, answer in answers[_MOST_CLASSES - 1 :]]
        answers[_MOST_CLASSES - 1 :] = [(f"{len(rest)} others together", sum(rest))]
    largest = max((abs(answer) for _, answer in answers), default=0.0) or 1.0
    return [
        {"name": name, "value": number(answer, 3), "share": round(100 * abs(answer) / largest)}
        for name, answer in answers
    ]


def title_of(explanation: Explanation) -> str:
    outputs = shown_outputs(explanation) if len(explanation) else range(len(explanation.output_names))
    named = output_title(explanation, outputs[0]) if len(outputs) == 1 else count(len(outputs), "output")
    named = f"{named[0].upper()}{named[1:]}" if named.startswith(("prediction", "change of")) else named
    if len(explanation) == 1:
        return named if explanation.ids == (0,) else f"{named}, {row_label(explanation, 0)}"
    return f"{named}, {count(len(explanation), 'row')}"


def facts_of(explanation: Explanation) -> list[tuple[str, str]]:
    """Return names and texts of the facts of the provenance that no picture shows."""
    return fact_texts(stated_facts(explanation), DRAWN, LONGEST_FACT)


def _gathered_warnings(explanation: Explanation, hidden: str) -> list[str]:
    """Return the kinds of warnings of many rows, each once with the number of rows that it concerns.

    Those about the ``hidden`` reading alone are left out.
    """
    n = len(explanation)
    by_code: dict[str, list[tuple[str, ...]]] = {}
    for whole in explanation.row_warnings:
        record = [warning for warning in whole if not hidden or warning.reading != hidden]
        for code in dict.fromkeys(warning.code for warning in record):
            by_code.setdefault(code, []).append(tuple(w.sentence for w in record if w.code == code))
    # sentences with numbers of their rows are gathered by their kind
    counts = {
        sentence: len(sentences)
        for code, sentences in by_code.items()
        for sentence in (sentences[0] if len(set(sentences)) == 1 else [CODES.get(code, code)])
    }
    warnings = [left_out(explanation)] if explanation.errors else []
    return warnings + [f"{number:,} of {n:,} rows: {one_line(text)}" for text, number in counts.items()]


# -- one row -------------------------------------------------------------------------------------------------


def _row(
    explanation: Explanation, row: int, account: Contributions | None, features: int, of: str
) -> dict[str, Any]:
    view, first = view_row(explanation, row, features, account=account), main_output(explanation, row)
    if view.certain is not None:
        return {"view": view, "summary": view.certain.answer, "outputs": [], "lime": None}
    largest = next(output for output in view.outputs if output.position == first)
    named = "" if len(view.outputs) == 1 else f" ({largest.title})"
    fit = f", R² {largest.r2}" if largest.r2 and largest.base is None else ""
    reason = f"; largest: {largest.lines[0].named}" if largest.lines else ""
    shows_both = account is not None and not of and requested(explanation, "coefficients") is not None
    lime = view_row(explanation, row, features) if shows_both else None
    summary = f"prediction {number(largest.prediction)}{named}{fit}{reason}"
    return {
        "view": view,
        "summary": summary,
        "outputs": _outputs(explanation, row, view, first),
        # LIME's coefficients, which are folded beside contributions
        "lime": lime
        and {
            "view": lime,
            "whose": whose_surrogate(explanation),
            "outputs": _outputs(explanation, row, lime, first, draws=False),
        },
    }


def _say_pairs(explanation: Explanation, account: Contributions, rows: list[dict[str, Any]]) -> None:
    """Add to the outputs of rows which features act together, where that is known or takes no time."""
    pairs = pairs_at(explanation, range(len(rows)))
    if pairs is None:
        return
    values = account.values.reshape(*account.values.shape[:2], -1)
    for i, row in enumerate(rows):
        for output in row["outputs"]:
            output["together"] = pair_sentence(explanation, pairs[i], values[i], output["view"].position)


def _outputs(
    explanation: Explanation, row: int, view: RowView, first: int, *, draws: bool = True
) -> list[dict[str, Any]]:
    """Return what the template needs of a view's outputs; ``draws`` states whether the input is drawn too."""
    drawn = coloured(explanation, row, view) if "base" in explanation.provenance else explanation[row]
    few = len(view.outputs) <= MAX_OPEN_OUTPUTS
    return [
        {
            "view": output,
            "open": few or output.position == first,
            "scale": _scale(output.lines),
            "account": _account(output),
            "together": " ".join(sentences_of_parts(explanation, output.position)),
            "texts": output.texts() if output.base is None else [],
            "curves": _sparklines(explanation, row, output.position, output.lines)
            if output.base is None
            else [],
            "drawings": [
                {
                    "part": name,
                    "pieces": shortened(pieces(one, 0, output.position), _LONGEST_TEXT),
                    "tint": tinted_image(one, 0, output.position),
                    "lanes": drawn_lanes(one, 0, output.position),
                }
                for name, one in (drawn_parts(drawn) if draws else ())
            ],
        }
        for output in view.outputs
    ]


def _scale(lines: Sequence[Line]) -> Scale:
    """Return the scale of bars and error bars, in per cent of the width; zero is inside."""
    ends = [line.drawn + side * line.reach for line in lines for side in (-1, 1)]
    finite = [0.0, *(end for end in ends if np.isfinite(end))]
    return Scale(min(finite), max(finite), 0, 99)


def _account(output: OutputView) -> list[dict[str, Any]]:
    """Bars from the base to the prediction, one a line, with their error bars."""
    if output.base is None:
        return []
    sizes, (texts, _) = output.shares(), output.account_texts()
    starts = (output.base + np.concatenate([[0.0], np.cumsum(sizes)])).tolist()
    shares = [line.share for line in output.lines if line.share is not None]
    whiskers = [
        [start + share.value + side * share.reach for side in (-1, 1) if share.reach]
        for start, share in zip(starts, shares, strict=False)
    ]
    ends = [*starts, *(end for some in whiskers for end in some if np.isfinite(end))]
    scale = Scale(min(ends), max(ends), 0, 99)

    def between(places: list[list[float]], i: int) -> tuple[float, float] | None:
        return scale.between(*places[i]) if i < len(places) and places[i] else None

    return [
        {
            "text": text,
            "error": error,
            "sign": "p" if size > 0 else "m",
            "bar": size and scale.between(start, start + size),
            "whisker": between(whiskers, i),
            "start": scale.position(start),
        }
        for i, (size, (text, error), start) in enumerate(zip(sizes, texts, starts, strict=False))
    ]


# The height of a picture that is as wide as its column has cells, and the part of it above and below 0
_CURVE_HEIGHT, _CURVE_SWING = 16, 7
# More cells than this are too narrow to be seen
_MOST_CELLS = 40


def _sparklines(
    explanation: Explanation, row: int, output: int, lines: Sequence[Line]
) -> list[dict[str, Any] | None]:
    """Draw the effects of a row's columns on one scale; None for words and superpixels."""
    if explanation.fit is None or not explanation.fit.has_curves:
        return [None] * len(lines)
    effects = explanation[row].effects[output * len(explanation.feature_names) :]
    try:
        chosen = [effects.at(line.position) for line in lines]
    except InputError:  # effects of thousands of columns are too large: the page shows coefficients alone
        return [None] * len(lines)
    largest = max((largest_size(effect.values) for effect in chosen), default=0.0) or 1.0
    return [
        {"count": len(effect.cells), "current": effect.current, "path": _step_path(effect, largest)}
        if 2 <= len(effect.cells) <= _MOST_CELLS
        else None
        for effect in chosen
    ]


def _step_path(effect: Effect, largest: float) -> str:
    """Return the SVG path of a step function; it is broken where the effect is NaN."""
    path, joined = "", False
    for b, height in enumerate((effect.values / largest).tolist()):
        if np.isfinite(height):
            y = f"{_CURVE_HEIGHT / 2 - _CURVE_SWING * height:.1f}".removesuffix(".0")
            path += f"V{y}H{b + 1}" if joined else f"M{b} {y}H{b + 1}"
        joined = bool(np.isfinite(height))
    return path


# -- the coloured image --------------------------------------------------------------------------------------


def photo_of(explanation: Explanation) -> dict[str, Any]:
    """Return the explained image, its shape and outlines of its superpixels; {} for other explanations."""
    image = ImageView.of_output(explanation, 0)
    if image is None:
        return {}
    facts, shape = explanation.provenance, image.labels.shape
    framing = framing_of(facts) if "photo" in facts else Framing.of(shape, shape, "squash")
    outlines, (row, column, tall, wide) = Outlines.of(image.labels), framing.box
    height, width = framing.photo
    url = facts.get("photo", facts["image"])
    if len(url) > _LONGEST_PICTURE:
        lossy = to_data_url(from_data_url(url)[..., :3], lossless=False, largest_png=0, quality=80)
        url = min(url, lossy, key=len)
    return {
        "url": url,
        "shape": f"{width} / {height}",
        "box": f"0 0 {width} {height}",
        "outlines": outlines,
        "place": f"translate({column} {row}) scale({wide / outlines.width:.5g} {tall / outlines.height:.5g})",
        "outside": ""
        if framing.is_whole
        else f"M0 0h{width}v{height}h{-width}zM{column} {row}h{wide}v{tall}h{-wide}z",
    }


def tinted_image(explanation: Explanation, row: int, output: int) -> dict[str, Any]:
    """Return the colours of superpixels, on one scale for all outputs, and the largest with their numbers."""
    image = ImageView.of_output(explanation, output, row, whole=True)
    if image is None:
        return {}
    largest, sampled = largest_size(explanation.coefficients.values[row]), explanation.method == "sampled"
    height, width = image.labels.shape
    top = image.top(_MOST_NUMBERS, "both")
    numbers = zip(image.values.tolist(), image.errors.tolist(), image.opacity(largest).tolist(), strict=True)
    return {
        "shapes": [
            {
                "number": j,
                "sign": "p" if value > 0 else "m",
                "opacity": f"{share:.2f}",
                "coefficient": difference(value) + (f" {error(spread)}" if sampled else ""),
            }
            for j, (value, spread, share) in enumerate(numbers)
            if np.isfinite(value)
        ],
        "marks": [
            {
                "x": round(100 * (column + 0.5) / width, 1),
                "y": round(100 * (row + 0.5) / height, 1),
                "number": j,
            }
            for (row, column), j in zip(image.middles(top), top.tolist(), strict=True)
        ],
        "largest": number(largest, 2),
    }
