"""Input of text explainers: scripts, marks, symbols, containers, answers. It is explained right, or refused.

The oracle enumerates the subsets of the pieces that a reader of the script names: the model answers a sum
over the pieces that a text still has, and a product of two.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import limes
import words
from limes.exceptions import InputError, ModelError

FAMILY, FRANCE, GERMANY, THUMB, KEY = "👨\u200d👩\u200d👧", "🇫🇷", "🇩🇪", "👍🏽", "1️⃣"
# texts, and their pieces
TEXTS = {
    "Hebrew with points": ("שָׁלוֹם עוֹלָם טוֹב", ["שָׁלוֹם", "עוֹלָם", "טוֹב"]),
    "Arabic with vowels": ("كِتَابٌ جَمِيلٌ جِدًّا", ["كِتَابٌ", "جَمِيلٌ", "جِدًّا"]),
    "Persian with a joiner": ("این می\u200cخواهم است", ["این", "می\u200cخواهم", "است"]),
    "Hindi": ("फिल्म बहुत अच्छी थी", ["फिल्म", "बहुत", "अच्छी", "थी"]),
    "Tamil": ("படம் மிகவும் நன்று", ["படம்", "மிகவும்", "நன்று"]),
    "Bengali": ("ছবিটি খুব ভালো", ["ছবিটি", "খুব", "ভালো"]),
    "Korean": ("영화가 아주 좋았다", ["영화가", "아주", "좋았다"]),
    "Greek": ("Η ταινία ήταν καλή", ["Η", "ταινία", "ήταν", "καλή"]),
    "Vietnamese, decomposed": ("phim ra\u0302\u0301t hay", ["phim", "ra\u0302\u0301t", "hay"]),
    "a family": (f"love {FAMILY} it", ["love", FAMILY, "it"]),
    "flags": (f"go {FRANCE}{GERMANY} team", ["go", FRANCE, GERMANY, "team"]),
    "a tone of skin": (f"ok {THUMB} fine", ["ok", THUMB, "fine"]),
    "a key": (f"press {KEY} now", ["press", KEY, "now"]),
    "lines of Windows": ("good\r\nbad\ttext", ["good", "bad", "text"]),
    "spaces that do not break": ("good\u00a0bad\u202ftext", ["good", "bad", "text"]),
    "a space without width": ("good\u200bbad", ["good", "bad"]),
    "a soft hyphen": ("co\u00adoperate well", ["co\u00adoperate", "well"]),
    "curly apostrophes": ("don’t can't l’été", ["don’t", "can't", "l’été"]),
    "numbers": ("pay 3.14 or 1,000 now", ["pay", "3.14", "or", "1,000", "now"]),
    "joined words": ("goodFood bad_food slow-cook", ["goodFood", "bad_food", "slow", "cook"]),
    "ligatures": ("ﬁne Straße ǅ", ["ﬁne", "Straße", "ǅ"]),
    "letters of mathematics": ("𝐠𝐨𝐨𝐝 bad", ["𝐠𝐨𝐨𝐝", "bad"]),
    "symbols": ("C ++ $ ok", ["C", "++", "$", "ok"]),
    "a zero byte": ("good\x00bad", ["good", "bad"]),
    "a text of numpy": (np.str_("good food"), ["good", "food"]),
    "a long word": ("a" * 5000 + " b", ["a" * 5000, "b"]),
}


def model(pieces):
    weights = np.arange(1.0, len(pieces) + 1)

    def answer(texts):
        present = np.array([[piece in text for piece in pieces] for text in texts], dtype=float)
        return present @ weights + 10 * present[:, 0] * present[:, 1]

    return answer


def expected(pieces):
    z = words.subsets(len(pieces))
    answers = z @ np.arange(1.0, len(pieces) + 1) + 10 * z[:, 0] * z[:, 1]
    return words.surrogate(words.law("words", len(pieces), 0.25), answers)[1]


@pytest.mark.parametrize(("text", "pieces"), TEXTS.values(), ids=TEXTS)
def test_texts(text, pieces):
    explanation = limes.TextExplainer(model(pieces))(text)
    assert explanation.method == "exact"
    assert explanation.feature_names == tuple(pieces)
    np.testing.assert_allclose(explanation.coefficients.values[0], expected(pieces), rtol=1e-9)


PIECES = ["good", "food", "here"]
PLAIN = " ".join(PIECES)
CONTAINERS = {
    "a list": [PLAIN],
    "a tuple": (PLAIN,),
    "pandas": pd.Series([PLAIN], index=["first"]),
    "pandas, arrow": pd.Series([PLAIN], dtype="string[pyarrow]"),
    "polars": pl.Series([PLAIN]),
    "pyarrow": pa.array([PLAIN]),
    "pyarrow, chunks": pa.chunked_array([[PLAIN]]),
    "numpy": np.array([PLAIN]),
    "numpy, objects": np.array([PLAIN], dtype=object),
}


@pytest.mark.parametrize("texts", CONTAINERS.values(), ids=CONTAINERS)
def test_containers(texts):
    (explanation,) = limes.TextExplainer(model(PIECES))(texts)
    np.testing.assert_allclose(explanation.coefficients.values[0], expected(PIECES), rtol=1e-9)


ANSWERS = {
    "a list": (list, None),
    "pandas": (pd.Series, None),
    "a scalar of one text": (lambda y: y[0] if len(y) == 1 else y, None),
    "a mapping a text": (lambda y: [{"no": -v, "yes": v} for v in y], "yes"),
    "a mapping": (lambda y: {"stars": y, "length": y * 0}, "stars"),
    "a frame": (lambda y: pd.DataFrame({"stars": y, "rest": -y}), "stars"),
    "one column": (lambda y: y[:, None], "0"),
}


@pytest.mark.parametrize(("form", "name"), ANSWERS.values(), ids=ANSWERS)
def test_answers(form, name):
    answer = model(PIECES)
    explanation = limes.TextExplainer(lambda texts: form(answer(texts)))(PLAIN)
    explanation = explanation if name is None else explanation[..., name]
    np.testing.assert_allclose(explanation.coefficients.values.ravel(), expected(PIECES), rtol=1e-9)


# Refused input, the message, and the text after its advice
REFUSED = {
    "bytes": (PLAIN.encode(), r"is bytes: decode it first, text\.decode", lambda x: x.decode("utf-8")),
    "a frame": (pd.DataFrame({"t": [PLAIN]}), "of a table pass one column", lambda x: x["t"]),
    "words in a list": ([PIECES], "pass texts, not lists; join its words", lambda x: [" ".join(x[0])]),
    "nothing in a list": ([PLAIN, None], "text 1: expected a text, got NoneType", lambda x: x[:1]),
    "a set": ({PLAIN}, "expected a text or a list of texts, got set", list),
    "a generator": ((text for text in [PLAIN]), "a list of texts, got generator", list),
    "a number": (5, "expected a text or a list of texts, got int", lambda _: PLAIN),
    "an empty text": ("", "the text is empty", lambda _: PLAIN),
    "blanks": (" \n\t", "the text is empty", lambda _: PLAIN),
}


@pytest.mark.parametrize(("texts", "message", "advice"), REFUSED.values(), ids=REFUSED)
def test_refused_input_has_advice_that_works(texts, message, advice):
    explainer = limes.TextExplainer(model(PIECES))
    with pytest.raises(InputError, match=message):
        explainer(texts)
    explanation = explainer(advice(texts))
    explanation = explanation[0] if isinstance(explanation, list) else explanation
    np.testing.assert_allclose(explanation.coefficients.values[0], expected(PIECES), rtol=1e-9)


def test_marks_alone_need_another_split():
    with pytest.raises(InputError, match=r"finds no words in .*: pass another split"):
        limes.TextExplainer(model(["?!", "..."]))("?! ...")
    explanation = limes.TextExplainer(model(["?!", "..."]), split=r"\s+")("?! ...")
    np.testing.assert_allclose(explanation.coefficients.values[0], expected(["?!", "..."]), rtol=1e-9)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("ภาพยนตร์เรื่องนี้ดีมาก", ["ภาพยนตร์", "เรื่องนี้", "ดีมาก"]),
        ("この映画はとても良い", ["この", "映画は", "とても", "良い"]),
    ],
)
def test_scripts_without_spaces_need_a_tokenizer(text, pieces):
    whole = limes.TextExplainer(model(pieces))(text)
    assert any("puts no spaces between words: pass split=" in warning for warning in whole.warnings)

    def tokens(text):
        ends = np.cumsum([0, *map(len, pieces)]).tolist()
        return [*pairwise(ends)] if text == "".join(pieces) else []

    explanation = limes.TextExplainer(model(pieces), split=tokens)(text)
    assert explanation.feature_names == tuple(pieces)
    np.testing.assert_allclose(explanation.coefficients.values[0], expected(pieces), rtol=1e-9)


@pytest.mark.parametrize("mark", ["#", "\u200f", "\ue000", "%"])
def test_text_outside_of_all_features_has_a_warning(mark):
    def answer(texts):
        return np.array([2.0 * (mark in text) + ("good" in text) for text in texts])

    explanation = limes.TextExplainer(answer)(f"good {mark}bad")
    assert any("what is in no feature" in text and "pass split=" in text for text in explanation.warnings)
    split = limes.TextExplainer(answer, split=r"\s+|(?=bad)")(f"good {mark}bad")
    assert split.feature_names == ("good", mark, "bad")
    np.testing.assert_allclose(split.coefficients.values[0], [1.0, 2.0, 0.0], atol=1e-9)


def test_answers_that_are_no_numbers():
    with pytest.raises(ModelError, match="convert the texts by float"):
        limes.TextExplainer(lambda texts: ["0.5"] * len(texts))(PLAIN)
    with pytest.raises(ModelError, match="returned a generator: return a list"):
        limes.TextExplainer(lambda texts: (len(text) for text in texts))(PLAIN)
