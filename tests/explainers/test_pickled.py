"""Explainers survive a pickle where their models do: they explain as the one that was stored."""

from __future__ import annotations

import pickle
import re
from io import BytesIO

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import limes
from computed_once import ComputedOnce

PICTURE = np.random.default_rng(0).random((12, 12, 3))
SERIES = np.sin(np.arange(24.0))
TEXT = "a good film, not bad at all"


class Brightness:
    def __call__(self, images):
        return np.asarray(images).reshape(len(images), -1).mean(axis=1)


class FirstSteps:
    def __call__(self, series):
        return np.asarray(series).reshape(len(series), -1)[:, :5].sum(axis=1)


class Length:
    def __call__(self, prompts):
        return [float(len(prompt)) for prompt in prompts]


class Chance:
    def __init__(self, model):
        self.model = model

    def __call__(self, rows):
        return self.model.predict_proba(rows)[:, 1]


class Stripes:
    def __call__(self, image):
        return np.arange(144).reshape(12, 12) // 24


class Black:
    def __call__(self, image, labels):
        return 0.0 * image


class Halves:
    def __call__(self, series):
        return np.arange(len(series)) // 12


class Zeros:
    def __call__(self, series, labels):
        return 0.0 * series


class Words:
    def __call__(self, text):
        return [(word.start(), word.end()) for word in re.finditer(r"\w+", text)]


class Short:
    def __call__(self, word):
        return len(word) < 3


class OfTable:
    def __call__(self, inputs):
        return inputs["table"].iloc[:, 0].to_numpy()


def facts():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 3)), columns=["age", "debt", "income"])
    labels = table["age"] + table["debt"] > 0
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, labels)
    linear = LogisticRegression().fit(table, labels)
    texts = ["good film", "bad film", "not bad", "not good at all"] * 5
    of_texts = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [1, 0, 1, 0] * 5)
    return table, forest, linear, of_texts


MODELS = ComputedOnce({"all": facts})


def explainers():
    """Each explainer, and what it explains."""
    table, forest, linear, of_texts = MODELS["all"]
    row, literals = table.iloc[:1], limes.Literals.fit(table)
    tables, rules = limes.TabularExplainer, limes.SparseExplainer
    yield "read", tables(forest, table), row
    yield "sampled", tables(Chance(forest), table, max_calls=200), row
    yield "joint", tables(forest, table, law="joint"), row
    yield "reference", tables(forest, reference=table.iloc[1:2]), row
    yield "groups", tables(forest, table, groups={"money": ["debt", "income"]}), row
    for name in ("fidelity", "precision", "class"):
        yield f"rules, {name}", rules(forest, literals=literals, k=2, objective=name, output=1), row
    yield "rules, linear", rules(linear, literals=literals, k=2), row
    yield "rules, function", rules(Chance(forest), literals=literals, k=1), row
    yield "rules, signs", rules(FirstSteps(), k=2), np.ones((1, 6))
    yield "rules, certain", rules(forest, domain=limes.Domain.fit(table), objective="certain"), row
    yield "maple", limes.MapleExplainer(forest, table), row
    words = ({}, {"group": {"mood": ["good", "not bad"]}}, {"group": ["not bad"]}, {"ignore": ["a"]})
    for i, how in enumerate((*words, {"ignore": Short()}, {"split": Words()}, {"split": r"\s+"})):
        yield f"text {i}", limes.TextExplainer(of_texts, **how), TEXT
    named = ({"segments": "slic"}, {"segments": "grid", "segment_options": {"rows": 2}})
    of_users = ({"segments": Stripes()}, {"segments": Stripes()(PICTURE), "fill": [0.1, 0.2, 0.3]})
    fills = ({"segments": "grid", "fill": Black()}, {"segments": "grid", "fill": ["mean", "blur"]})
    for i, how in enumerate((*named, *of_users, *fills, {"hierarchy": True})):
        yield f"image {i}", limes.ImageExplainer(Brightness(), max_calls=90, **how), PICTURE
    for i, how in enumerate(({}, {"segments": Halves()}, {"segments": Halves()(SERIES)}, {"fill": Zeros()})):
        yield f"series {i}", limes.SeriesExplainer(FirstSteps(), max_calls=90, **how), SERIES
    yield "series, constant", limes.SeriesExplainer(FirstSteps(), max_calls=90, fill=0.0), SERIES
    prompt = limes.Prompt("Say", limes.sources(["one thing", "another one"]), "what?")
    yield "prompt", limes.PromptExplainer(Length()), prompt
    parts = {"table": limes.TablePart(background=table)}
    yield "composite", limes.CompositeExplainer(OfTable(), parts), {"table": row}


def through_pickle(explainer):
    return pickle.loads(pickle.dumps(explainer))


def through_joblib(explainer):
    file = BytesIO()
    joblib.dump(explainer, file)
    file.seek(0)
    return joblib.load(file)


def without_time(explanation):
    """The numbers of an explanation, and its texts."""
    return re.sub(r'"seconds":[^,}]*', "", explanation.to_json())


@pytest.mark.parametrize("restored", [through_pickle, through_joblib])
def test_explainers_survive_a_pickle(restored):
    for name, explainer, what in explainers():
        fresh = restored(explainer)
        its = without_time(explainer(what))
        assert without_time(fresh(what)) == its, name
        assert without_time(restored(explainer)(what)) == its, f"{name}, after a call"
