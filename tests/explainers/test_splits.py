"""Words of every script are features, and so are symbols."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import limes
from internals import words

SCRIPTS = {
    "Devanagari": ("फिल्म बहुत अच्छी थी।", "फिल्म|बहुत|अच्छी|थी"),
    "Bengali": ("ছবিটি খুব ভালো ছিল", "ছবিটি|খুব|ভালো|ছিল"),
    "Tamil": ("இந்த படம் மிகவும் நன்றாக இருந்தது", "இந்த|படம்|மிகவும்|நன்றாக|இருந்தது"),
    "Thai": ("ดีมาก แต่แพง", "ดีมาก|แต่แพง"),
    "Hebrew with points": ("שָׁלוֹם עוֹלָם", "שָׁלוֹם|עוֹלָם"),
    "Persian with joiners": ("می\u200cخواهم کتاب", "می\u200cخواهم|کتاب"),
    "Arabic with marks": ("الطَّعَامُ جَيِّد", "الطَّعَامُ|جَيِّد"),
    "Cyrillic": ("Это хороший фильм!", "Это|хороший|фильм"),
    "Georgian": ("ეს კარგი ფილმია", "ეს|კარგი|ფილმია"),
    "Korean": ("이 영화는 정말 좋다.", "이|영화는|정말|좋다"),
    "Greek": ("Καλή ταινία", "Καλή|ταινία"),
    "decomposed Latin": ("nai\u0308ve cafe\u0301", "nai\u0308ve|cafe\u0301"),
    "French": ("C’est l'été.", "C’est|l'été"),
    "English": ("Don't! It's 3.5 of 1,000 e-mails (x_y).", "Don't|It's|3.5|of|1,000|e|mails|x_y"),
    "quotes and points": ("'so' he said. Then 5, 6.", "so|he|said|Then|5|6"),
    "emoji": (
        "love 😍😍 👍🏽 👨\u200d👩\u200d👧 ❤️🇩🇪🇫🇷",
        "love|😍|😍|👍🏽|👨\u200d👩\u200d👧|❤️|🇩🇪|🇫🇷",
    ),
    "Hebrew acronyms": ('צה"ל ודו״ח, מנכ”ל', 'צה"ל|ודו״ח|מנכ”ל'),
    "Hebrew abbreviations": ("ר׳ יוסף וג׳ירפה", "ר׳|יוסף|וג׳ירפה"),
    "Hebrew quotes": ('אמר "שלום" ו"להתראות"', 'אמר|שלום|ו"להתראות'),
    "Latin quotes": ('a "b" c"d"', "a|b|c|d"),
    "symbols": ("C++ for $100 = <b>", "C|++|for|$|100|=|<|b|>"),
}


@pytest.mark.parametrize(("text", "expected"), SCRIPTS.values(), ids=SCRIPTS)
def test_words_are_what_readers_call_words(text, expected):
    assert "|".join(text[start:end] for start, end in words(text)) == expected


def test_plain_words_are_those_of_lime():
    text = "Good food, but the slow_service was bad - 3 of 10!\nNever again."
    assert [text[a:b] for a, b in words(text)] == text.replace(",", "").replace("-", "").replace(
        "!", ""
    ).replace(".", "").split()


def test_emoji_have_coefficients():
    def love(texts):
        return np.array([min(0.4 * text.count("😍"), 1.0) for text in texts])

    explanation = limes.TextExplainer(love)("love it 😍😍")
    assert explanation.feature_names == ("love", "it", "😍")
    np.testing.assert_allclose(explanation.coefficients.values[0], [0, 0, 0.8], atol=1e-12)
    alone = limes.TextExplainer(love)("😍")
    assert alone.feature_names == ("😍",)


REVIEWS = ["good 😍 C++", "good food", "bad food $5", "so-so C++ $5", "bad 😡 really"]
LABELS = [1, 1, 0, 0, 0]


@pytest.mark.parametrize("pattern", [r"\S+", r"(?u)\S+", r"[^\s]+"])
@pytest.mark.parametrize("vectorizer", [CountVectorizer, TfidfVectorizer])
def test_tokens_between_spaces_are_features_and_exact(vectorizer, pattern):
    model = make_pipeline(vectorizer(token_pattern=pattern), LogisticRegression()).fit(REVIEWS, LABELS)
    text = "Good 😍 so-so C++ for $5"
    read = limes.TextExplainer(model, output="margin")(text)
    assert read.method == "exact"
    assert read.model_calls == 0
    assert read.feature_names == tuple(text.split())
    sampled = limes.TextExplainer(model.decision_function, split=r"\s+", output=None)(text)
    np.testing.assert_allclose(read.coefficients.values, sampled.coefficients.values, rtol=1e-9, atol=1e-12)
    function = limes.TextExplainer(lambda texts: model.decision_function(texts), split=r"\s+")(text)
    assert function.model_calls > 0
    np.testing.assert_allclose(read.coefficients.values, function.coefficients.values, rtol=1e-9, atol=1e-12)


def test_a_pattern_of_the_model_is_the_split():
    vectorizer = CountVectorizer(token_pattern=r"(?u)#\w+|\w+")  # noqa: S106
    model = make_pipeline(vectorizer, LogisticRegression()).fit(["#good day", "bad day", "#good"], [1, 0, 1])
    explanation = limes.TextExplainer(model, output="margin")("a #good bad day")
    assert explanation.feature_names == ("a", "#good", "bad", "day")
    counted = limes.TextExplainer(lambda texts: model.decision_function(texts), split=r"\s+")(
        "a #good bad day"
    )
    np.testing.assert_allclose(
        explanation.coefficients.values, counted.coefficients.values, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("text", ["good$bad food", "the $5 food", "good++ food, bad don't", "a$b$c good"])
def test_symbols_that_touch_words_do_not_change_what_is_exact(text):
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(
        ["good food", "bad food", "don good", "goodbad bc ab"], [1, 0, 1, 0]
    )
    read = limes.TextExplainer(model, output="margin")(text)
    sampled = limes.TextExplainer(lambda texts: model.decision_function(texts))(text)
    np.testing.assert_allclose(read.coefficients.values, sampled.coefficients.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(read.predictions, sampled.predictions, rtol=1e-12)


def test_text_outside_of_all_features_is_compared_and_has_a_warning():
    def shouting(texts):
        return np.array([0.2 * text.count("!") + 0.1 * ("good" in text) for text in texts])

    (warning,) = limes.TextExplainer(shouting)("good food!!!").warnings
    assert warning.startswith(
        "what is in no feature ('!!!') moves the answer: 0.1 for the features alone, 0.7"
    )
    assert warning.code == "input"
    followed = limes.TextExplainer(shouting, split=lambda t: [m.span() for m in re.finditer(r"\w+|!", t)])
    explanation = followed("good food!!!")
    assert explanation.warnings == ()
    np.testing.assert_allclose(explanation.coefficients.values[0], [0.1, 0, 0.6], atol=1e-12)
    assert (
        limes.TextExplainer(lambda texts: [float("good" in t) for t in texts])("good, food!").warnings == ()
    )


def test_explainers_of_texts_can_be_pickled():
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(REVIEWS, LABELS)
    explainer = limes.TextExplainer(model)
    again = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(
        again("good food $5").coefficients.values, explainer("good food $5").coefficients.values
    )


def length(texts):
    return [len(text) for text in texts]


NEAR_NAMES = {
    "words": "pass 'word'",
    "Word": "pass 'word'",
    "word_": "pass 'word'",
    "wrods": "pass 'word'",
    "sentences": "pass 'sentence'",
    "SENTENCE": "pass 'sentence'",
    "sentance": "pass 'sentence'",
    "sents": "pass 'sentence'",
    "chars": "range(len(text))",
    "characters": "range(len(text))",
    "letters": "range(len(text))",
    "token": "tokenizer itself",
    "tokens": "tokenizer itself",
    "sub-words": "tokenizer itself",
    "wordpieces": "tokenizer itself",
    "lines": r"pass r'\n'",
    "paragraphs": r"pass r'\n\s*\n'",
    "whitespace": r"pass r'\s+'",
    "phrases": "pass a callable",
}


@pytest.mark.parametrize("split", NEAR_NAMES)
@pytest.mark.parametrize(
    "door", [lambda s: limes.TextExplainer(length, split=s), lambda s: limes.TextPart(split=s)]
)
def test_names_of_units_are_no_separators(split, door):
    """Such a text occurs in hardly any text, which was one word, exact."""
    with pytest.raises(limes.exceptions.InputError) as error:
        door(split)
    assert NEAR_NAMES[split] in str(error.value)
    assert f"re.compile({split!r})" in str(error.value)
    door(re.compile(split))


@pytest.mark.parametrize(
    "split", ["and", "or", "oder", "SEP", "the", "x", "br", "lord", "EOS", r"words?", ", ", ""]
)
def test_separators_are_taken_as_they_are(split):
    text = f"good{split}food" if split.isalpha() else "good, food"
    names = limes.TextExplainer(length, split=split)(text).feature_names
    assert names == {"": tuple("god, f"), r"words?": ("good, food",)}.get(split, ("good", "food"))


UNSPLIT = {
    "这部电影很好，演员也不错，值得一看": "这部电影很好",
    "今天天气很好。": "今天天气很好",
    "この映画は、とても面白い。": "この映画は",
    "iPhone15のカメラはgreat": "iPhone15のカメラはgreat",
    "昨日LINEで送った": "昨日LINEで送った",
    "コンピューターサイエンス": "コンピューターサイエンス",
    "ดีมาก แต่แพง": "แต่แพง",
    "ອາຫານແຊບຫຼາຍແທ້ໆ": "ອາຫານແຊບຫຼາຍແທ້ໆ",
}
SPLIT = [
    "这部 电影 很 好 演员 也 不错",
    "カメラ 最高",
    "T恤 和 A股 4月",
    "私 は 東京 に 住ん で い ます",
    "ภาษา ไทย ง่าย มาก",
    "이 영화는 정말 좋다",
    "Das Donaudampfschifffahrtsgesellschaftskapitänspatent",
    'צה"ל הגיע',
    "中文",
    "奥林匹克运动会 很 好",
]


@pytest.mark.parametrize("text", [*UNSPLIT, *SPLIT])
def test_scripts_without_spaces_are_remarked_where_words_are_several(text):
    (warning,) = [w for w in limes.TextExplainer(length)(text).warnings if "no spaces" in w] or [""]
    assert warning.startswith(repr(UNSPLIT[text]) if text in UNSPLIT else "")
    assert bool(warning) == (text in UNSPLIT)


def test_hebrew_acronyms_are_read_exactly():
    """The vectorizer has two tokens of one word: enumeration of all deletions by the model itself."""
    texts = ['צה"ל הגיע מהר', "הגיע לאט", 'דו"ח ארוך', "מהר מאוד"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [1, 0, 0, 1])
    read = limes.TextExplainer(model, output="margin")(texts[0])
    called = limes.TextExplainer(lambda t: model.decision_function(t))(texts[0])
    assert read.feature_names == called.feature_names == ('צה"ל', "הגיע", "מהר")
    np.testing.assert_allclose(read.coefficients.values[0], called.coefficients.values[0], atol=1e-9)
