"""How a CSV file writes a table: its encoding, what separates cells, and the point or comma of numbers.

CSV states none of them. UTF-8, commas and points are the rule; Excel writes semicolons and decimal commas in
half of Europe, tabs and UTF-16 as "Unicode text", and often Windows-1252. The first lines decide.
"""

from __future__ import annotations

import codecs
import csv
import re
from dataclasses import dataclass
from io import StringIO
from itertools import islice

# Cells of a column of text that are tried as numbers, and the share that may fail in a column of numbers
TRIED, WRONG = 2000, 0.01
# Cells of a column of features that are missing, quoted or not: those of pandas, for all readers
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
# Bytes, and lines, by which a file's dialect is found
HEAD, _LINES = 1 << 18, 200
_SEPARATORS = (",", ";", "\t")
# Marks at the beginning of a file, the longer ones first, as two begin alike
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What Excel writes that is not UTF-8, and its name for people
WINDOWS = "cp1252"
# Signs that people write beside letters; other bytes are damage
_SIGNS = "€£°²³µ§–—‘’“”„…«»®©™½¼¾±·"
_COMMA, _POINT = re.compile(r"\s*[-+]?\d+,\d+\s*"), re.compile(r"\s*[-+]?\d+\.\d+\s*")


@dataclass(frozen=True)
class Dialect:
    """How a file is read."""

    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."

    @property
    def is_usual(self) -> bool:
        return self == USUAL

    @property
    def is_guess(self) -> bool:
        """Whether the encoding is not certain: any bytes are a text in it."""
        return self.encoding == WINDOWS


USUAL = Dialect()


def dialect_of(content: bytes, *, ends: bool = True) -> Dialect:
    """The dialect of a file that begins with these bytes; ``ends`` says that they are all of it."""
    encoding = _encoding_of(content, ends=ends)
    text = content[:HEAD].decode(encoding, errors="replace").removeprefix("\ufeff")
    lines = [*islice(StringIO(text, newline=""), _LINES)]
    if len(lines) < _LINES and (len(content) > HEAD or not ends):
        lines = lines[:-1] or lines  # the last one may be cut
    separator = max(_SEPARATORS, key=lambda its: _agreeing(lines, its))
    return Dialect(encoding, separator, _decimal_of(lines, separator))


def _encoding_of(head: bytes, *, ends: bool) -> str:
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    if b"\0" in head:  # a text of Latin letters in two bytes each
        odd, even = head[1::2].count(0), head[::2].count(0)
        return "utf-16-le" if odd > even else "utf-16-be"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(head, final=ends)
    except UnicodeDecodeError:
        return _windows(head)
    return "utf-8"


def _windows(head: bytes) -> str:
    """Windows-1252, if these bytes are a text in it, and no damaged UTF-8."""
    try:
        text = head.decode(WINDOWS)
    except UnicodeDecodeError:
        return "utf-8"
    high = [letter for letter in text if ord(letter) > 127]
    # letters of UTF-8 that are in order are two or more characters there, of which the first is one of Ã to ô
    in_order = re.search(rb"[\xc3-\xf4][\x80-\xbf]", head)
    letters = sum((letter.isalpha() and letter not in "ÿþ") or letter in _SIGNS for letter in high)
    return "utf-8" if in_order or letters < len(high) else WINDOWS


def _agreeing(lines: list[str], separator: str) -> tuple[int, int]:
    """How many lines have as many cells as the first, if that has several; and cells without a separator."""
    try:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:  # a quote that is never closed makes a cell too long
        return 0, 0
    if not rows or len(rows[0]) == 1:
        return 0, 0
    agreeing = sum(len(row) == len(rows[0]) for row in rows)
    cells = [cell for row in rows for cell in row if not _COMMA.fullmatch(cell)]
    return agreeing, -sum(any(its in cell for its in _SEPARATORS) for cell in cells)


def _decimal_of(lines: list[str], separator: str) -> str:
    if separator == ",":
        return "."
    cells = [cell for row in csv.reader(lines, delimiter=separator) for cell in row]
    commas, points = (sum(map(bool, map(its.fullmatch, cells))) for its in (_COMMA, _POINT))
    return "," if commas and not points else "."


def to_usual(content: bytes, dialect: Dialect) -> bytes:
    """A file's content in UTF-8."""
    return content.decode(dialect.encoding).removeprefix("\ufeff").encode("utf-8")
