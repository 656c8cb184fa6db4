"""How public code calls ``lime`` on texts; see ``client_tables``."""

from __future__ import annotations

import re

import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import LinearRegression

from compat.client_material import OPINION, PIPELINE, TEXT, VECTORIZER

CLASSES = ["bad", "good"]


def _explainer(lime, **options):
    return lime.lime_text.LimeTextExplainer(**({"class_names": CLASSES, "random_state": 0} | options))


def _explained(lime, predict=PIPELINE.predict_proba, *, text=TEXT, options=None, **call):
    call = {"num_samples": 1000} | call
    return _explainer(lime, **(options or {})).explain_instance(text, predict, **call)


def as_tokens(text):
    return re.findall(r"\w+", text)


def the_list_of_a_pipeline(lime, tmp):
    return _explained(lime, num_features=6).as_list()


def a_function_of_texts(lime, tmp):
    explanation = _explained(lime, lambda texts: OPINION.predict_proba(VECTORIZER.transform(texts)))
    return dict(explanation.as_list())


def one_column_made_two(lime, tmp):
    """A network answers one chance, the function returns both."""

    def both(texts):
        answers = []
        for text in texts:
            p = PIPELINE.predict_proba([text])[0, 1]
            answers.append([1 - p, p])
        return np.array(answers)

    return dict(_explained(lime, both, num_samples=300).as_list())


def a_model_in_batches(lime, tmp):
    def ask(texts):
        parts = [PIPELINE.predict_proba(texts[i : i + 32]) for i in range(0, len(texts), 32)]
        return np.concatenate(parts, axis=0)

    return dict(_explained(lime, ask).as_list())


def two_labels(lime, tmp):
    explanation = _explained(lime, labels=[0, 1])
    return dict(explanation.as_list(label=0)), dict(explanation.as_list(label=1))


def the_top_label(lime, tmp):
    explanation = _explained(lime, top_labels=1)
    label = explanation.available_labels()[0]
    return label, len(explanation.as_list(label=label)), explanation.class_names[label]


def the_map_by_words(lime, tmp):
    result = _explained(lime)
    words = result.domain_mapper.indexed_string
    return {words.word(j): weight for j, weight in result.as_map()[1]}


def positions_of_words(lime, tmp):
    return dict(_explained(lime, num_features=30).as_list(positions=True))


def the_indexed_string(lime, tmp):
    words = _explained(lime).domain_mapper.indexed_string
    return (
        words.num_words(),
        list(map(str, words.inverse_vocab)),
        words.raw_string(),
        [list(words.string_position(j)) for j in range(3)],
        words.inverse_removing([0, 2]),
    )


def an_indexed_string_alone(lime, tmp):
    words = lime.lime_text.IndexedString("a cat and a dog", bow=True)
    return words.num_words(), words.inverse_removing([0]), [str(piece) for piece in words.as_list]


def an_indexed_string_with_a_mask(lime, tmp):
    words = lime.lime_text.IndexedString("a cat and a dog", bow=False, mask_string="[MASK]")
    return words.num_words(), words.inverse_removing([0, 4]), [int(p) for p in words.positions]


def indexed_characters_alone(lime, tmp):
    characters = lime.lime_text.IndexedCharacters("noon", bow=True)
    return characters.num_words(), characters.inverse_removing([1])


def chances_of_words_by_sign(lime, tmp):
    pairs = _explained(lime, num_features=6).as_list()
    return sorted(word for word, weight in pairs if weight < 0)[:1]


def the_surrogate_s_prediction(lime, tmp):
    surrogate = _explained(lime)
    return [float(p) for p in surrogate.local_pred], float(surrogate.score), surrogate.intercept[1]


def a_page(lime, tmp):
    page = _explained(lime).as_html(labels=(1,), text=True)
    return isinstance(page, str), "soup" in page


def a_file(lime, tmp):
    _explained(lime).save_to_file(tmp / "explanation.html", text=TEXT)
    return (tmp / "explanation.html").exists()


def a_notebook(lime, tmp):
    return _explained(lime).show_in_notebook(text=True)


def a_notebook_with_the_text(lime, tmp):
    return _explained(lime).show_in_notebook(text=TEXT, labels=(1,))


def a_figure(lime, tmp):
    figure = _explained(lime, num_features=5).as_pyplot_figure(label=1)
    labels = sorted(label.get_text() for label in figure.axes[0].get_yticklabels())
    plt.close(figure)
    return len(labels)


def a_regular_expression(lime, tmp):
    return dict(_explained(lime, options={"split_expression": r"\s+"}).as_list())


def tokens_of_a_function(lime, tmp):
    return dict(_explained(lime, options={"split_expression": as_tokens}).as_list())


def words_by_place(lime, tmp):
    return dict(_explained(lime, options={"bow": False}, num_features=30).as_map()[1])


def words_by_place_with_a_mask(lime, tmp):
    options = {"bow": False, "mask_string": "[MASK]"}
    seen = set()

    def ask(texts):
        seen.update("[MASK]" in text for text in texts)
        return PIPELINE.predict_proba(texts)

    result = _explained(lime, ask, options=options, num_features=30)
    return dict(result.as_map()[1]), True in seen


def characters(lime, tmp):
    explanation = _explained(lime, text="good soup", options={"char_level": True}, num_features=4)
    return len(explanation.as_list())


def a_kernel_width(lime, tmp):
    return dict(_explained(lime, options={"kernel_width": 50}).as_list())


def a_kernel(lime, tmp):
    options = {"kernel": lambda d, kernel_width: np.exp(-d / kernel_width)}
    return dict(_explained(lime, options=options).as_list())


def another_distance_and_regressor(lime, tmp):
    explanation = _explained(lime, distance_metric="euclidean", model_regressor=LinearRegression())
    return dict(explanation.as_list())


def every_selection(lime, tmp):
    methods = ("none", "auto", "forward_selection", "highest_weights", "lasso_path")
    return {
        method: len(_explained(lime, options={"feature_selection": method}, num_features=3).as_list())
        for method in methods
    }


def another_selection_afterwards(lime, tmp):
    explainer = _explainer(lime)
    explainer.feature_selection = "none"
    return len(explainer.explain_instance(TEXT, PIPELINE.predict_proba, num_features=2).as_list())


def rows_of_the_explainer(lime, tmp):
    words = lime.lime_text.IndexedString(TEXT)
    method = _explainer(lime)._LimeTextExplainer__data_labels_distances
    data, answers, distances = method(words, PIPELINE.predict_proba, 100)
    return data.shape, answers.shape, distances.shape, data[0], answers[0], distances[0]


def rows_of_one_s_own(lime, tmp):
    class OneLess(lime.lime_text.LimeTextExplainer):
        def _LimeTextExplainer__data_labels_distances(  # noqa: N802
            self, indexed_string, classifier_fn, num_samples, distance_metric="cosine"
        ):
            d = indexed_string.num_words()
            data = np.vstack([np.ones(d), 1 - np.eye(d)])
            texts = [indexed_string.inverse_removing(np.flatnonzero(row == 0)) for row in data]
            return data, classifier_fn(texts), np.linspace(0, 1, d + 1)

    explanation = OneLess(random_state=0).explain_instance(TEXT, PIPELINE.predict_proba, num_features=30)
    return dict(explanation.as_list())


def markup_in_a_text(lime, tmp):
    explanation = _explained(lime, text="good <b>soup</b> & friendly staff")
    return dict(explanation.as_list()), isinstance(explanation.as_html(), str)


def letters_of_other_scripts(lime, tmp):
    return len(_explained(lime, text="good Café, 좋은 음식, хорошо").as_list())
