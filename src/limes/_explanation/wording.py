"""Numbers, cells, names and rules in words; the same in the terminal, in HTML and in plots."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# Error bars reach this many standard errors to each side: 95 % of a normal law
CONFIDENCE = 1.96
# What an explanation under the law of covers, and its explainer, say of all but contributions
NOT_OF_COVERS = (
    "law='covers' has no {name}: the numbers of training rows at the nodes of trees are no law of rows, and "
    "they let columns that depend on each other stand for each other by the order of the splits; pass a "
    "background, TabularExplainer(model, background), whose laws say what they draw"
)
_SHORTEST = 6  # characters of a name beside the edges of its cell
_UNKNOWN = "unknown"  # a coefficient that is not identified
_RULE_DIGITS = 3
_SMALL, _LARGE = 1e-3, 1e6  # outside, numbers are written with an exponent


def number(value: float, significant: int = 4) -> str:
    """Write a number with a few significant digits and no trailing zeros."""
    text = _digits(value, significant)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


# Digits that tell any two numbers apart
_ALL_DIGITS = 17


def is_beside(text: str, value: float, others: Iterable[float]) -> bool:
    """Return whether a written number lies on the side of others, such as thresholds, on which it is."""
    written = float(text)
    return all(
        other == value or (written != other and (written < other) == (value < other)) for other in others
    )


def beside(value: float, others: Sequence[float], significant: int = 4) -> str:
    """Write a number with digits enough to show on which side of others, such as thresholds, it lies."""
    texts = (number(value, digits) for digits in range(significant, _ALL_DIGITS))
    return next((text for text in texts if is_beside(text, value, others)), number(value, _ALL_DIGITS))


# Digits of a number that somebody chose
_CHOSEN_DIGITS = 9


def chosen(value: float) -> str:
    """Write a number that somebody chose, such as a threshold, as it was chosen."""
    return number(value, _CHOSEN_DIGITS)


def _digits(value: float, significant: int) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{abs(value) if value == 0 else value:g}"
    if not _SMALL <= abs(value) < _LARGE:
        return f"{value:.{significant - 1}e}"
    return f"{value:.{_decimals(value, significant)}f}"


def signed_column(values: Iterable[float], significant: int = 4, *, size: float | None = None) -> list[str]:
    """Write the numbers of one column, with their signs and the same number of decimals."""
    # an exact zero is written 0, a rounded one 0.00; the largest decides the decimals, or a size in its place
    numbers = [float(value) for value in values]
    largest = max((abs(v) for v in numbers if math.isfinite(v)), default=0.0) if size is None else size
    if not _SMALL <= largest < _LARGE:
        return [_sign(number(v, 3), v) for v in numbers]
    decimals = _decimals(largest, significant)
    return [_aligned(v, decimals) for v in numbers]


# Most decimals of a percentage: numbers in single precision that differ then differ in writing
_MOST_DECIMALS = 6


def percentages(probabilities: Sequence[float], threshold: float | None = None) -> tuple[str, ...]:
    """Write probabilities in percent with few decimals, and last their threshold in full.

    Rounding makes none 0 % or 100 % that is not, and no two that differ the same, nor one the threshold.
    """
    all_of_them = {0.0, 1.0, *probabilities, *([] if threshold is None else [threshold])}
    written = [_percentage(p, all_of_them - {p}) for p in probabilities]
    return (*written, *([] if threshold is None else [f"{number(100.0 * threshold, 6)} %"]))


def _percentage(probability: float, others: Iterable[float]) -> str:
    for decimals in range(_MOST_DECIMALS + 1):
        rounded = round(100.0 * probability, decimals)
        # a digit of what is left to 0 % and to 100 %: not 1 % for 0.6 %
        away = min(probability, 1.0 - probability)
        is_shown = away <= 0.0 or 100.0 * away >= 10.0**-decimals
        if is_shown and all(rounded != round(100.0 * other, decimals) for other in others):
            return f"{rounded:.{decimals}f} %"
    return f"{100.0 * probability:.12g} %"


def percentage(probability: float) -> str:
    """Write one probability in percent: 35 %, 0.4 %, 99.98 %."""
    return percentages([probability])[0]


def difference(value: float, significant: int = 4) -> str:
    return _sign(number(value, significant), value)


def error(value: float) -> str:
    """Write a standard error; "" where it does not exist."""
    if math.isnan(value):
        return ""
    # smaller ones stand beside numbers that are written plainly, too
    plain = _SMALL**2 <= value < _SMALL
    return f"± {value:.{_decimals(value, 2)}f}" if plain else f"± {_digits(value, 2)}"


def estimate(value: float, standard_error: float) -> tuple[str, str]:
    """Write a number and its standard error with the same decimals; no error where it is exact."""
    if not standard_error > 0:
        return number(value, 3), ""
    if not (math.isfinite(standard_error) and _is_plain(value) and _is_plain(standard_error)):
        return number(value, 3), error(standard_error)
    decimals = _decimals_of_error(standard_error)
    return f"{value:.{decimals}f}", f"± {standard_error:.{decimals}f}"


def estimate_text(value: float, standard_error: float) -> str:
    return " ".join(filter(None, estimate(value, standard_error)))


def estimates(
    values: Sequence[float], standard_errors: Sequence[float], significant: int = 4
) -> list[tuple[str, str]]:
    """Write the numbers of one column, with their signs, and their errors: all with the same decimals."""
    # the median error decides the decimals; much smaller ones have two digits
    sure = sorted(e for e in standard_errors if e > 0 and math.isfinite(e))
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    if not sure or not (_is_plain(largest) and _is_plain(sure[len(sure) // 2])):
        texts = signed_column(values, significant)
        errors = [error(e) for e in standard_errors]
    else:
        decimals = _decimals_of_error(sure[len(sure) // 2])
        texts = [_aligned(v, decimals) for v in values]
        rounded = [f"{e:.{decimals}f}" for e in standard_errors]
        errors = [f"± {r}" if float(r) else error(e) for r, e in zip(rounded, standard_errors, strict=True)]
    return [(text, "" if text == _UNKNOWN else e) for text, e in zip(texts, errors, strict=True)]


def adding_up(
    parts: Sequence[float],
    errors: Sequence[float],
    start: float,
    end: float,
    significant: int = 3,
    start_error: float = 0.0,
    decimals: int | None = None,
) -> tuple[list[tuple[str, str]], tuple[str, str, str]]:
    """Write parts and their errors, and start, end and the change, so that the written numbers add up too.

    The largest part decides the decimals of all, unless they are given. A part may be rounded to the other
    side, the one nearest to the middle first.
    """
    largest = max((abs(part) for part in parts), default=0.0)
    is_plain = _SMALL <= largest < _LARGE or (decimals is not None and largest < _LARGE)
    if not (all(map(math.isfinite, (*parts, start, end))) and is_plain):
        texts = [*zip(signed_column(parts, significant), map(_error_or_none, errors), strict=True)]
        below = f"{number(start)} {_error_or_none(start_error)}".rstrip()
        return texts, (below, number(end), difference(end - start))
    decimals = _decimals(largest, significant) if decimals is None else decimals
    scale = 10.0**decimals
    first, last = round(start * scale), round(end * scale)
    rounded = [math.floor(part * scale) for part in parts]
    up = last - first - sum(rounded)
    # exact zeros stay zero if they can
    nearest = sorted(range(len(parts)), key=lambda i: (parts[i] == 0, rounded[i] - parts[i] * scale))
    for i in nearest[: max(0, up)]:
        rounded[i] += 1

    def signed(steps: int, value: float = 1.0) -> str:
        return f"{steps / scale:+.{decimals}f}" if steps else "0" if value == 0 else f"{0:.{decimals}f}"

    written = [
        (signed(steps, part), _error_or_none(e, decimals))
        for steps, part, e in zip(rounded, parts, errors, strict=True)
    ]
    below, above = (f"{level / scale:.{decimals}f}" for level in (first, last))
    below = f"{below} {_error_or_none(start_error, decimals)}".rstrip()
    return written, (below, above, signed(last - first))


def left_of(change: str, written: Sequence[str], value: float) -> str:
    """Write what is left of a written change after written parts, which is about this ``value``."""
    # powers of ten, and what is no number
    if any(letter in text for text in (change, *written) for letter in "en"):
        return difference(value, 3)
    rest = Decimal(change) - sum(map(Decimal, written), Decimal(0))
    return f"{rest:+f}" if rest else "0" if value == 0 else f"{abs(rest):f}"


def _error_or_none(standard_error: float, decimals: int | None = None) -> str:
    """Write a standard error with these decimals, or that it is below their last one; "" where it is 0."""
    if standard_error == 0 or math.isnan(standard_error):
        return ""
    if decimals is None or not math.isfinite(standard_error):
        return error(standard_error)
    text = f"{standard_error:.{decimals}f}"
    return f"± {text}" if float(text) else f"± <{10.0**-decimals:.{decimals}f}"


def _is_plain(value: float) -> bool:
    """Whether a number is written without an exponent."""
    return value == 0 or _SMALL**2 <= abs(value) < _LARGE


def _decimals_of_error(standard_error: float) -> int:
    """Decimals of its first digit, of two where that is 1."""
    exponent = math.floor(math.log10(standard_error))
    leading = round(standard_error / 10.0**exponent, 6)
    return max(0, -exponent + (leading < 2.0))


def is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def cell(value: Any) -> str:
    """Write a value of the user's data: texts and whole numbers in full, others with six digits at most."""
    if is_missing(value):
        return "missing"
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15  # beyond, floats do not hold every integer
        return str(int(value)) if whole else number(value, 6)
    return one_line(str(value))


def one_line(text: str) -> str:
    """Replace line ends and control characters by spaces: names are data, never commands."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def shorten(text: str, width: int) -> str:
    """Shorten a text in its middle, since both the name and the bound of a condition matter."""
    text = one_line(text)
    if len(text) <= width:
        return text
    tail = (width - 1) * 2 // 5
    return f"{text[: width - 1 - tail].rstrip()}…{text[len(text) - tail :]}"


def shorten_condition(text: str, name: str, width: int) -> str:
    """Shorten the condition of a cell: the column's name comes first, and only it is cut."""
    if len(text) <= width:
        return text
    low, separator, high = text.partition(f" < {name} <= ")
    edges = f" in ({low}, {high}]" if separator else text.removeprefix(name) if text.startswith(name) else ""
    room = width - len(edges)
    return f"{shorten(name, room)}{edges}" if edges and room >= _SHORTEST else shorten(text, width)


def without_name(text: str, name: str) -> str:
    """Return the condition of a cell without its column's name: "<= 63", "63 – 71", "Private"."""
    low, separator, high = text.partition(f" < {name} <= ")
    if separator:
        return f"{low} – {high}"
    return text.removeprefix(name).strip().removeprefix("= ") or text


def count(amount: int, noun: str) -> str:
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def rule_text(
    facts: Sequence[tuple[str, float]], name: str, prediction: float, intercept: float = 0.0
) -> str:
    """Write a sparse explanation as a rule: a base, and the facts with their weights, largest first."""
    largest = sorted(facts, key=lambda fact: -abs(fact[1]))
    terms = [(weight, f" [{one_line(fact)}]") for fact, weight in largest]
    if intercept != 0.0 or not terms:
        terms.insert(0, (intercept, ""))
    size = max(abs(weight) for weight, _ in terms)

    def written(weight: float) -> str:
        """As many decimals as the largest term has, so that a reader's sum is the prediction."""
        if not (_is_plain(size) and _is_plain(weight) and weight):
            return number(abs(weight), _RULE_DIGITS)
        decimals = max(_decimals(size, _RULE_DIGITS + 1), _decimals(weight, 2))
        return number(round(abs(weight), decimals), 12)

    texts = [f"{'-' if weight < 0 else '+'} {written(weight)}{fact}" for weight, fact in terms]
    first = texts[0][2:] if texts[0].startswith("+") else f"-{texts[0][2:]}"
    return f"{' '.join([first, *texts[1:]])}  ->  {label_text(name)} = {number(prediction)}"


def label_text(label: str) -> str:
    """Write a class or an output: names need no quotation marks, numbers and truth values do."""
    name = one_line(label)
    is_name = name not in ("True", "False") and not name.removeprefix("-").replace(".", "", 1).isdigit()
    return name if is_name else f"“{name}”"


def holding_text(facts: Sequence[str], name: str, claim: str) -> str:
    """Write a rule that holds: its facts, and what then holds of the answer."""
    conditions = " and ".join(f"[{one_line(fact)}]" for fact in facts) or "always"
    return f"{conditions}  ->  {label_text(name)} {claim}"


def _decimals(value: float, significant: int) -> int:
    return max(0, significant - 1 - math.floor(math.log10(abs(value))))


def _aligned(value: float, decimals: int) -> str:
    if value == 0 or not math.isfinite(value):
        return _sign(number(value), value)
    text = f"{value:+.{decimals}f}"
    return text if float(text) else text[1:]


def _sign(text: str, value: float) -> str:
    if math.isnan(value):
        return _UNKNOWN
    return f"+{text}" if value > 0 else text
