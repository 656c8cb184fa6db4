"""Further ways in which public code calls ``lime`` on texts; see ``client_tables``."""

from __future__ import annotations

import re

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from compat.client_material import OPINIONS, PIPELINE, TEXT, TEXTS, VECTORIZER

CLASSES = ["bad", "good"]


def _explained(lime, predict=PIPELINE.predict_proba, *, text=TEXT, options=None, **call):
    options = {"class_names": CLASSES, "random_state": 0} | (options or {})
    explainer = lime.lime_text.LimeTextExplainer(**options)
    return explainer.explain_instance(text, predict, **({"num_samples": 1000} | call))


def _pieces(text):
    """Words and marks, as tokenizers of natural language have them."""
    return re.findall(r"\w+|[^\w\s]", text)


def _lowered(texts):
    return [re.sub(r"[^a-z ]", " ", text.lower()) for text in texts]


def a_pick_of_texts(lime, tmp):
    from lime import submodular_pick

    explainer = lime.lime_text.LimeTextExplainer(class_names=CLASSES, random_state=0)
    picks = submodular_pick.SubmodularPick(
        explainer, TEXTS[:6], PIPELINE.predict_proba, method="full", num_features=4, num_exps_desired=3
    )
    return len(picks.sp_explanations), len(picks.explanations)


def a_split_into_words_and_marks(lime, tmp):
    explanation = _explained(lime, options={"split_expression": _pieces}, num_features=6)
    return dict(explanation.as_list())


def a_split_at_spaces(lime, tmp):
    explanation = _explained(lime, options={"split_expression": lambda text: text.split(" ")}, num_features=6)
    return dict(explanation.as_list())


def masks_of_several_kinds(lime, tmp):
    results = [
        _explained(lime, options={"bow": False, "mask_string": mask}, num_features=20).as_map()[1]
        for mask in ("", " ", "<unk>")
    ]
    return [dict(pairs) for pairs in results]


def three_labels(lime, tmp):
    def three(texts):
        p = PIPELINE.predict_proba(texts)
        return np.column_stack([0.8 * p, 0.2 * np.ones(len(p))])

    options = {"class_names": ["bad", "good", "none"]}
    explanation = _explained(lime, three, options=options, labels=[0, 1, 2], num_features=5)
    return {label: len(explanation.as_list(label=label)) for label in explanation.available_labels()}


def a_pipeline_that_cleans(lime, tmp):
    model = make_pipeline(FunctionTransformer(_lowered), VECTORIZER, LogisticRegression(C=10))
    return dict(_explained(lime, model.fit(TEXTS, OPINIONS).predict_proba, num_features=6).as_list())


def places_in_the_text(lime, tmp):
    """Words are marked in the text by the places in their names."""
    pairs = _explained(lime, num_features=30).as_list(positions=True)
    places = {
        name.rsplit("_", 1)[0]: [int(i) for i in name.rsplit("_", 1)[1].split("-")] for name, _ in pairs
    }
    assert all(TEXT[at:].startswith(word) for word, starts in places.items() for at in starts)
    return dict(sorted(places.items()))


def local_exp_rewritten(lime, tmp):
    explanation = _explained(lime, num_features=8)
    total = sum(abs(weight) for _, weight in explanation.local_exp[1])
    explanation.local_exp[1] = [(j, weight / total) for j, weight in explanation.local_exp[1]]
    assert isinstance(explanation.as_html(), str)
    return dict(explanation.as_list())


def a_matrix_of_contributions(lime, tmp):
    """Contributions of some texts, a column a word of their vocabulary."""
    explainer = lime.lime_text.LimeTextExplainer(class_names=CLASSES, random_state=0)
    vocabulary = sorted({word for text in TEXTS[:4] for word in _pieces(text)})
    matrix = np.zeros((4, len(vocabulary)))
    for row, text in zip(matrix, TEXTS[:4], strict=True):
        explanation = explainer.explain_instance(
            text, PIPELINE.predict_proba, num_features=len(vocabulary), num_samples=1000
        )
        for word, weight in explanation.as_list():
            row[vocabulary.index(word)] = weight
    return matrix


def a_premise_and_a_hypothesis(lime, tmp):
    """Both texts are joined, and taken apart in the function."""

    def entails(pairs):
        answers = []
        for pair in pairs:
            premise, _, hypothesis = pair.partition("[SEP]")
            shared = set(premise.split()) & set(hypothesis.split())
            p = 1 / (1 + np.exp(1.5 - len(shared)))
            answers.append([1 - p, p])
        return np.array(answers)

    def tokens(text):
        return [word for word in text.split() if word != "[SEP]"]

    text = "a man plays a guitar [SEP] a man makes music"
    options = {"split_expression": tokens, "bow": False, "mask_string": ""}
    return dict(_explained(lime, entails, text=text, options=options, num_features=10).as_map()[1])


def characters_of_a_word(lime, tmp):
    def endings(texts):
        p = np.array([0.2 + 0.3 * text.endswith("ing") + 0.2 * ("s" in text) for text in texts])
        return np.column_stack([1 - p, p])

    options = {"char_level": True, "bow": False, "mask_string": "_"}
    explanation = _explained(lime, endings, text="singing", options=options, num_features=7, num_samples=2000)
    return dict(explanation.as_map()[1]), isinstance(explanation.as_html(), str)


def many_classes_of_texts(lime, tmp):
    def twenty(texts):
        lengths = np.array([len(text) for text in texts])
        score = -np.abs(lengths[:, None] / 5 - np.arange(20))
        share = np.exp(score)
        return share / share.sum(axis=1, keepdims=True)

    options = {"class_names": [f"topic {k}" for k in range(20)]}
    explanation = _explained(lime, twenty, options=options, top_labels=2, num_features=6)
    return explanation.top_labels, [len(explanation.as_list(label=k)) for k in explanation.top_labels]


def a_page_of_an_explanation_by_hand(lime, tmp):
    """Coefficients of a method of one's own in lime's page."""
    from lime import explanation
    from lime.lime_text import IndexedString, TextDomainMapper

    words = IndexedString(TEXT)
    result = explanation.Explanation(TextDomainMapper(words), class_names=CLASSES)
    result.predict_proba = PIPELINE.predict_proba([TEXT])[0]
    result.local_exp = {1: [(0, 0.25), (2, -0.5)]}
    result.intercept = {1: 0.5}
    result.save_to_file(tmp / "hand.html", text=True)
    return result.as_list(), "cold but" in (tmp / "hand.html").read_text(encoding="utf-8")


def a_notebook_of_two_labels(lime, tmp):
    return _explained(lime, labels=(0, 1)).show_in_notebook(text=False, labels=(0,), predict_proba=False)


def an_empty_text(lime, tmp):
    return _explained(lime, text="").as_list()
