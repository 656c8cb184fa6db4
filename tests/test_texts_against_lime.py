"""Many runs of the ``lime`` package on texts against what limes computes without sampling.

One call of ``lime`` explains several models at once, as if they were classes of one. Seeds are fixed.
``python -m benchmarks text`` does the same at length.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

from effort import repeats
from limes import TextExplainer
from repeated import TOO_FAR, assert_agree, scores

lime_text = pytest.importorskip("lime.lime_text")

REVIEWS = Path(
    Path(__file__).parents[1], os.environ.get("LIMES_DATA", "../shared/data"), "text", "yelp_reviews.csv.gz"
)
RUNS = repeats(8, 5)
MADE_UP = [
    ("the food was good and the service was good too", 5.0),
    ("good food, slow service; we waited and waited", 3.5),
    ("bad food, bad service, never again", 1.0),
    ("the place was lovely: great coffee and great cake", 4.5),
    ("never again! the cake was bad and the coffee cold", 1.5),
    ("it was fine, the staff were slow but lovely", 3.0),
    ("great staff, great food, we loved it", 5.0),
    ("cold soup. rude staff. we left and never went back", 0.5),
]


@cache
def yelp():
    """In lower case, as ``lime`` takes Food and food for two words."""
    with io.TextIOWrapper(gzip.open(REVIEWS), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[:1500]
    return [(row["text"].lower(), float(row["target"])) for row in rows]


@cache
def models(corpus):
    """Pipelines, and what is asked of them."""
    texts, stars = zip(*(MADE_UP if corpus == "made up" else yelp()[:1000]), strict=True)
    stars = np.array(stars)

    def fitted(vectorizer, estimator, target=stars):
        return make_pipeline(vectorizer, estimator).fit(texts, target)

    return [
        (fitted(TfidfVectorizer(), LogisticRegression(max_iter=1000), stars > 3), "decision_function"),
        (fitted(TfidfVectorizer(), Ridge()), "predict"),
        (fitted(CountVectorizer(), DecisionTreeRegressor(max_depth=8, random_state=0)), "predict"),
        (fitted(CountVectorizer(), RandomForestRegressor(10, max_depth=8, random_state=0)), "predict"),
    ]


def lime_runs(asks, text, *, runs=RUNS, regressor=None):
    """Coefficients and, last, the intercept of each model, (models, runs, words + 1); and the words."""
    count = len(set(re.findall(r"\w+", text)))
    result = np.empty((len(asks), runs, count + 1))
    for seed in range(runs):
        explained = lime_text.LimeTextExplainer(feature_selection="none", random_state=seed).explain_instance(
            text,
            lambda texts: np.column_stack([ask(texts) for ask in asks]),
            labels=range(len(asks)),
            num_features=count,
            model_regressor=regressor,
        )
        for label, coefs in enumerate(result[:, seed]):
            for word, value in explained.local_exp[label]:
                coefs[word] = value
            coefs[-1] = explained.intercept[label]
    words = explained.domain_mapper.indexed_string
    return result, [words.word(i) for i in range(count)]


def exact(model, method, text, words, *, ridge=1.0):
    """The same, of one model, by limes: lime's kernel width of 25 is ν = 0.25."""
    output = "margin" if method == "decision_function" else None
    explanation = TextExplainer(model, output=output, ridge=ridge, method="exact")(text)
    order = [explanation.feature_names.index(word) for word in words]
    return np.append(explanation.coefficients.values[0, order], explanation.coefficients.intercepts[0])


def check(corpus, text):
    bound_methods = models(corpus)
    runs, words = lime_runs([getattr(model, method) for model, method in bound_methods], text)
    for (model, method), method_runs in zip(bound_methods, runs, strict=True):
        assert_agree(method_runs, exact(model, method, text, words))


def test_made_up_reviews():
    check(
        "made up", "we loved the lovely zyzzyva: the food was great, the soup cold and the staff never slow"
    )


@pytest.mark.skipif(not REVIEWS.exists(), reason="the reviews are not here: set LIMES_DATA")
def test_a_yelp_review():
    """The first of 10 to 40 words to which the tree reacts."""
    tree, _ = models("yelp")[2]
    texts = [text for text, _ in yelp()[1000:] if 10 <= len(set(re.findall(r"\w+", text))) <= 40]
    check("yelp", next(t for t in texts if np.ptp(tree.predict([t, *t.split()])) > 0.5))


def test_a_heavy_penalty_shrinks_both_alike():
    (model, method), text = models("made up")[0], "never again: bad food and rude staff, but great coffee"
    (runs,), words = lime_runs([getattr(model, method)], text, runs=8, regressor=Ridge(alpha=500.0))
    assert np.abs(scores(runs, exact(model, method, text, words, ridge=500.0))).max() < TOO_FAR
    # and the penalty is seen
    assert np.abs(scores(runs, exact(model, method, text, words, ridge=0.0)))[:-1].min() > TOO_FAR
