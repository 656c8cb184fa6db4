"""The paper's reviews: the examples that are explained, and the corpus of each."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from functools import cache
from pathlib import Path

DATA = Path(os.environ.get("LIMES_DATA", "../shared/data"), "text")


@cache
def reviews() -> tuple[str, ...]:
    """The thousand reviews of the paper's own code."""
    return tuple(row["text"] for row in _rows("yelp_lime_text_theory"))


@cache
def sentences() -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Sentences about restaurants and whether they are in praise, of figure 4."""
    rows = [row for row in _rows("sentiment_sentences") if row["source"] == "yelp"]
    return tuple(row["text"] for row in rows), tuple(int(row["target"]) for row in rows)


@cache
def liked() -> tuple[int, ...]:
    """Whether the thousand reviews are in praise."""
    return tuple(int(row["target"]) for row in _rows("yelp_lime_text_theory"))


def example() -> str:
    """29 distinct words, "food", "about", "Everything", "bad" and "character" among them."""
    return _only(text for text in reviews() if text.startswith("I love this place! Everything about it!"))


def longer() -> str:
    """52 distinct words."""
    return _only(text for text in reviews() if text.startswith("I seriously can't get enough of this"))


def short() -> str:
    """Six words; "came" is one."""
    return _only(text for text in sentences()[0] if text == "But then they came back cold.")


def words_of(text: str) -> list[str]:
    """Distinct words, as ``lime`` sees them: Food is not food."""
    return list(dict.fromkeys(word for word in re.split(r"\W+", text) if word))


def _only(result) -> str:
    (one,) = result
    return one


def _rows(name: str) -> list[dict[str, str]]:
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        raise SystemExit(f"{path} is not there: set LIMES_DATA to the folder of the data")
    with io.TextIOWrapper(gzip.open(path), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
