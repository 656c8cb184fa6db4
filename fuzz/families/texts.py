"""Pipelines from texts to an answer."""

from __future__ import annotations

from typing import Any

from fuzz.families.columns import pick, seeded
from fuzz.script import Call, Setup, call
from fuzz.texts import TextCase

_V = "sklearn.feature_extraction.text."
_WORDS = (
    "good",
    "bad",
    "the",
    "Food",
    "food",
    "slow",
    "été",
    "a",
    "42",
    "under_score",
    "Service",
    "not",
    "it",
)
_TEXTS = "[' '.join(r.choice({words}, r.integers(2, 12))) for _ in range(n)]"
_SCORE = (
    "np.array([2 * t.count('good') - t.count('bad') + t.lower().count('food') * t.count('slow') for t in X])"
)
LIKED = f"({_SCORE} > 0).astype(int)"


def _vectorizer(rng: Any) -> Call:
    name = pick(rng, ("CountVectorizer", "TfidfVectorizer", "TfidfVectorizer", "HashingVectorizer"))
    options: dict[str, Any] = {}
    if rng.random() < 0.35:
        options["ngram_range"] = pick(rng, ((1, 2), (2, 2), (1, 3)))
    if rng.random() < 0.2:
        options["lowercase"] = False
    if rng.random() < 0.2:
        options["binary"] = True
    if rng.random() < 0.15:
        options["strip_accents"] = "unicode"
    if rng.random() < 0.2:
        options |= {"token_pattern": r"(?u)\b\w+\b"}
    if name == "HashingVectorizer":
        options |= {
            "n_features": pick(rng, (4, 16, 256)),
            "norm": pick(rng, (None, "l1", "l2")),
            "alternate_sign": bool(rng.integers(2)),
        }
    if name == "TfidfVectorizer":
        options |= {"norm": pick(rng, ("l2", "l2", "l1", None)), "sublinear_tf": bool(rng.integers(2))}
        if rng.random() < 0.3:
            options["use_idf"] = False
    if name != "HashingVectorizer" and rng.random() < 0.2:
        options["stop_words"] = ["the", "it"]
    return Call(_V + name, (), options)


def _head(rng: Any, *, negative: bool) -> tuple[Call, bool, tuple[Any, ...]]:
    """The last step, whether it is a classifier, and its outputs."""
    seed = seeded(rng)
    choices: list[tuple[Call, bool, tuple[Any, ...]]] = [
        (call("sklearn.linear_model.LogisticRegression"), True, ("margin", "margin", None)),
        (call("sklearn.linear_model.Ridge"), False, (None,)),
        (call("sklearn.linear_model.SGDClassifier", random_state=seed), True, ("margin",)),
        (call("sklearn.svm.LinearSVC", random_state=seed), True, ("margin",)),
        (call("sklearn.svm.SVR"), False, (None,)),
        (call("sklearn.tree.DecisionTreeRegressor", max_depth=4, random_state=seed), False, (None,)),
        (
            call("sklearn.ensemble.RandomForestClassifier", n_estimators=4, max_depth=4, random_state=seed),
            True,
            (None,),
        ),
        (
            call("sklearn.ensemble.GradientBoostingRegressor", n_estimators=5, random_state=seed),
            False,
            (None,),
        ),
    ]
    if not negative:
        choices += [
            (call("sklearn.naive_bayes.MultinomialNB"), True, ("margin", None)),
            (call("sklearn.naive_bayes.ComplementNB"), True, ("margin",)),
        ]
    return choices[int(rng.integers(len(choices)))]


def text(rng: Any, seed: int) -> TextCase:
    """A vectorizer, at times a step behind it, and a head."""
    vectorizer = _vectorizer(rng)
    steps = [vectorizer]
    middle = rng.random()
    if middle < 0.1:
        steps.append(call(f"{_V}TfidfTransformer"))
    elif middle < 0.2:
        steps.append(call("sklearn.preprocessing.MaxAbsScaler"))
    elif middle < 0.25:
        steps.append(call("sklearn.decomposition.TruncatedSVD", 2, random_state=0))
    negative = "Hashing" in vectorizer.name or 0.2 <= middle < 0.25
    head, classifier, outputs = _head(rng, negative=negative)
    y = LIKED if classifier else _SCORE
    setup = Setup(
        seed,
        int(rng.integers(40, 120)),
        (_TEXTS.format(words=list(_WORDS)),),
        y,
        Call("sklearn.pipeline.make_pipeline", (*steps, head)),
        table="C[0]",
    )
    return TextCase(f"{vectorizer.short}, {head.short}", setup, outputs, _WORDS)
