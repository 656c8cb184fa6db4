"""A budget is a budget: no door asks for more answers than ``max_calls``, and the counts are what was asked.

Calls are counted from outside, in the user's own function.
"""

from __future__ import annotations

from contextlib import suppress

import joblib
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import limes
from internals import WITNESSES, app, requested
from limes.exceptions import InputError
from limes.scale import explain_frame

RNG = np.random.default_rng(11)
D = 8
SLOPES = RNG.normal(size=D)
TABLE = RNG.normal(size=(700, D))
TABLE[:, 3] = TABLE[:, 0] + 0.3 * TABLE[:, 3]
FEW = np.round(RNG.uniform(0, 2, size=(200, 4)))
WIDE = RNG.normal(size=(300, 90))
TEXT = " ".join(f"w{j}." if j % 6 == 5 else f"w{j}" for j in range(36))
PHOTO = RNG.integers(0, 256, (48, 48, 3)).astype(np.uint8)
SERIES = np.sin(np.arange(60) / 5.0)


class Counted:
    """A function, and how many rows it was asked about."""

    def __init__(self, function):
        self.function, self.rows = function, 0

    def __call__(self, batch):
        answers = self.function(batch)
        self.rows += len(answers)
        return answers


def curved(x):
    x = np.asarray(x, dtype=float)
    return x @ np.resize(SLOPES, x.shape[1]) + x[:, 0] * x[:, 1] + (x[:, 2] > 0.3)


def two(x):
    p = 1.0 / (1.0 + np.exp(-curved(x)))
    return np.stack([1.0 - p, p], axis=1)


def noisy(seed=0):
    noise = np.random.default_rng(seed)
    return lambda x: curved(x) + noise.normal(size=len(x))


def by_letters(texts):
    return np.array([sum(hash_of(w) for w in t.split()) + 2.0 * ("w3" in t and "w7" in t) for t in texts])


def hash_of(word):
    return (sum(map(ord, word)) % 7 - 3) / 3.0


def noisy_letters(seed=0):
    noise = np.random.default_rng(seed)
    return lambda texts: by_letters(texts) + noise.normal(size=len(texts))


def brightness(images):
    pixels = np.asarray(images, dtype=float)[..., 0] / 255.0
    return pixels[:, :20].mean(axis=(1, 2)) * pixels[:, 20:, ::3].mean(axis=(1, 2))


def several_brightnesses(images):
    one = brightness(images)
    return np.stack([one, one**2, 1.0 - one], axis=1)


def swing(batch):
    x = np.asarray(batch, dtype=float).reshape(len(batch), -1)
    return x[:, :20].max(axis=1) * x[:, 30:].mean(axis=1) + x[:, 25]


def of_parts(batch):
    return by_letters(batch["text"]) + curved(batch["row"])


def table(function=curved, background=TABLE, row=0, **options):
    def explain(model, most):
        options_of_row = dict(options)
        return limes.TabularExplainer(model, background, max_calls=most, **options_of_row)(
            background[row : row + 1], progress=False
        )

    return function, explain


def text(function=by_letters, words=TEXT, **options):
    return function, lambda model, most: limes.TextExplainer(model, max_calls=most, **options)(
        words, progress=False
    )


GRID = {"segments": "grid", "segment_options": {"rows": 5, "columns": 6}, "fill": "mean"}


def image(function=brightness, **options):
    options = {**GRID, **options} if "hierarchy" not in options else options
    return function, lambda model, most: limes.ImageExplainer(model, max_calls=most, **options)(
        PHOTO, progress=False
    )


def series(function=swing, **options):
    return function, lambda model, most: limes.SeriesExplainer(model, max_calls=most, **options)(
        SERIES, progress=False
    )


def composite(model, most):
    frame = pd.DataFrame(TABLE[:50, :4], columns=list("abcd"))
    parts = {"text": "text", "row": limes.TablePart(background=frame)}
    raw = {"text": "w1 w3 w7 w9 w11 w12", "row": dict(zip("abcd", [1.0, 2.0, 0.5, -1.0], strict=True))}
    return limes.CompositeExplainer(model, parts, max_calls=most)(raw, progress=False)


# Of each: the function, and how it is explained with n calls at most
DOORS = {
    "table": table(),
    "table, coefficients alone": table(contributions=False),
    "table, contributions": table(contributions=True),
    "table, joint": table(law="joint"),
    "table, joint, all rows": table(background=TABLE[:150], law="joint"),
    "table, joint, coefficients alone": table(law="joint", contributions=False),
    "table, slopes": table(bins=None),
    "table, euclidean": table(weights="euclidean"),
    "table, narrow": table(bandwidth=0.3),
    "table, empirical": table(law="empirical"),
    "table, few values": table(background=FEW, categorical=[0, 1, 2, 3]),
    "table, held": table(hold=[1]),
    "table, wide": table(background=WIDE),
    "table, classes": table(two),
    "table, one class by name": table(two, output=1),
    "table, tolerance": table(tolerance="5%"),
    "table, far row": table(row=int(np.abs(TABLE).sum(axis=1).argmax())),
    "table, random answers": table(noisy()),
    "table, batches": table(batch_size=17),
    "text": text(),
    "text, coefficients alone": text(contributions=False),
    "text, two levels": text(hierarchy=True),
    "text, few words": text(words="w1 w3 w7 w9 w10"),
    "text, tolerance": text(tolerance="20%"),
    "text, random answers": text(noisy_letters()),
    "text, few words, random answers": text(noisy_letters(), words="w1 w3 w7"),
    "text, batches": text(batch_size=7),
    "image": image(),
    "image, several outputs": image(several_brightnesses, output=[0, 2]),
    "image, two fills": image(fill=["mean", "blur"]),
    "image, two levels": image(hierarchy=True),
    "image, few": image(segment_options={"rows": 2, "columns": 2}),
    "image, background": image(hide="background", background=[PHOTO[::-1], PHOTO[:, ::-1]]),
    "image, few, background": image(
        segment_options={"rows": 2, "columns": 2}, hide="background", background=[PHOTO[::-1], PHOTO[:, ::-1]]
    ),
    "series": series(count=20),
    "series, background": series(
        count=20, hide="background", background=[SERIES[::-1].copy(), SERIES + 1.0, SERIES * 2]
    ),
    "series, few": series(count=4),
    "composite": (of_parts, composite),
}


# Each with 331 calls, and with 150 or 1,000
DOOR_BUDGETS = {door: ((150, 1000)[i % 2],) for i, door in enumerate(DOORS)}


@pytest.mark.parametrize(
    ("door", "most"), [(door, (331, *others)[k]) for door, others in DOOR_BUDGETS.items() for k in (0, 1)]
)
def test_calls_are_counted_and_within_the_budget(door, most):
    function, explain = DOORS[door]
    model = Counted(function)
    explanation = explain(model, most)
    shared = 0 if explanation.shared_calls is None else int(explanation.shared_calls.max())
    assert model.rows == explanation.model_calls + shared <= most
    # what is computed later is within what is left, or refused
    later = 0
    with suppress(InputError):
        account = explanation.contributions
        assert np.isfinite(account.values).all()
        later = 0 if requested(explanation, "contributions") is not None else account.calls.sum()
    assert model.rows == explanation.model_calls + shared + later <= most
    stored = limes.Explanation.from_json(explanation.to_json())
    assert (stored.model_calls, stored.calls.tolist()) == (
        explanation.model_calls,
        explanation.calls.tolist(),
    )


@pytest.mark.parametrize("door", ["table", "table, joint", "table, slopes", "text", "image", "series"])
@pytest.mark.parametrize("most", [64, 90, 120])
def test_small_budgets_are_kept_too(door, most):
    function, explain = DOORS[door]
    model = Counted(function)
    explanation = explain(model, most)
    shared = 0 if explanation.shared_calls is None else int(explanation.shared_calls.max())
    assert model.rows == explanation.model_calls + shared <= most


INPUTS = ["text", "text, two levels", "text, few words", "image", "image, two levels", "series", "composite"]


@pytest.mark.parametrize("door", INPUTS)
@pytest.mark.parametrize("most", [16, 23, 40])
def test_inputs_have_contributions_from_16_calls_on(door, most):
    function, explain = DOORS[door]
    model = Counted(function)
    explanation = explain(model, most)
    account = explanation.contributions
    assert model.rows <= most
    assert np.isfinite(account.values).all()
    assert np.isfinite(account.standard_errors).all()
    assert (account.standard_errors > 0).any() == (explanation.method == "sampled")


@pytest.mark.parametrize("door", ["table", "table, joint", "table, slopes"])
@pytest.mark.parametrize("most", [16, 40])
def test_tables_have_coefficients_from_16_calls_on(door, most):
    function, explain = DOORS[door]
    model = Counted(function)
    explanation = explain(model, most)
    assert model.rows == explanation.model_calls + int(explanation.shared_calls.max()) <= most
    assert np.isfinite(explanation.coefficients.values).all()


@pytest.mark.parametrize("door", DOORS)
def test_the_least_budget_is_named(door):
    """Too few calls are refused with a number, and with that number there is an explanation."""
    function, explain = DOORS[door]
    try:
        explain(Counted(function), 12)
    except InputError as refusal:
        advice = str(refusal)
    else:
        return  # all subsets of a few features
    if "use at least" in advice:
        least = int(advice.split("use at least ")[1].split()[0].rstrip("."))
        model = Counted(function)
        # several fills have an equal part each
        explain(model, 2 * least if "two fills" in door else least)
        assert model.rows <= 2 * least


@pytest.mark.parametrize("columns", [2, 8])
def test_more_calls_are_never_too_few(columns):
    """With 100 calls a table of two columns was refused, and told to use 63."""
    background = TABLE[:, :columns]
    for most in range(16, 330, 9):
        explainer = limes.TabularExplainer(lambda x: x[:, 0] * x[:, 1], background, max_calls=most)
        explanation = explainer(background[:1], progress=False)
        assert np.isfinite(explanation.coefficients.values).all()


@pytest.mark.parametrize("most", [40, 64])
def test_few_calls_are_those_of_contributions(most):
    """Coefficients have no finite error from half of so few calls, and have the least instead."""
    model = Counted(curved)
    explanation = limes.TabularExplainer(model, TABLE, max_calls=most)(TABLE[:1], progress=False)
    assert np.isinf(explanation.coefficients.standard_errors).all()
    assert int(explanation.calls[0]) <= 5  # the prediction, and the least that is estimated from
    assert model.rows == explanation.model_calls + int(explanation.shared_calls.max())
    assert most - 12 <= model.rows <= most
    alone = limes.TabularExplainer(curved, TABLE, max_calls=most).contributions(TABLE[:1], progress=False)
    assert explanation.contributions.calls[0] >= alone.contributions.calls[0] - 4


def test_many_rows_share_a_pool_and_each_keeps_the_budget():
    for options in ({}, {"law": "joint"}, {"bins": None}, {"workers": 3}):
        workers = options.pop("workers", 1)
        model = Counted(curved)
        explainer = limes.TabularExplainer(model, TABLE, max_calls=600, **options)
        assert model.rows == explainer.pool_calls
        explanation = explainer(TABLE[:4], progress=False, workers=workers)
        shared = explanation.shared_calls
        assert model.rows == explanation.model_calls + shared.max()
        assert (shared + explanation.calls + explanation.contributions.calls <= 600).all()
        one = limes.TabularExplainer(curved, TABLE, max_calls=600, **options)(TABLE[2:3], progress=False)
        np.testing.assert_allclose(
            one.coefficients.values[0], explanation.coefficients.values[2], rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            one.contributions.values[0], explanation.contributions.values[2], rtol=1e-9, atol=1e-12
        )
        before = model.rows
        again = explainer(TABLE[:1], progress=False)
        assert model.rows - before == again.model_calls + WITNESSES


def test_contributions_left_to_later_are_within_what_is_left():
    model = Counted(curved)
    explainer = limes.TabularExplainer(model, TABLE, max_calls=5000, tolerance="20%", contributions=False)
    explanation = explainer(TABLE[:25], progress=False)
    assert requested(explanation, "contributions") is None
    shared, before = explanation.shared_calls.max(), explanation.model_calls
    assert model.rows == before + shared
    account = explanation.contributions
    # what is read later changes no other count
    assert explanation.model_calls == before == model.rows - shared - account.calls.sum()
    assert (explanation.shared_calls + explanation.calls + account.calls <= 5000).all()
    texts = [" ".join(f"w{(j * k) % 97}" for j in range(1, 31)) for k in range(1, 22)]
    model = Counted(by_letters)
    explainer = limes.TextExplainer(model, max_calls=400, tolerance="50%", contributions=False)
    explanations = explainer(texts, progress=False)
    assert all(requested(one, "contributions") is None for one in explanations)
    assert model.rows == sum(one.model_calls for one in explanations)
    before = model.rows
    for one in explanations:
        assert np.isfinite(one.contributions.values).all()
        assert one.model_calls + one.contributions.calls.sum() <= 400
    assert model.rows == before + sum(one.contributions.calls.sum() for one in explanations)


def test_a_refusal_says_what_helps():
    explainer = limes.TabularExplainer(Counted(curved), TABLE, max_calls=150, contributions=False)
    with pytest.raises(InputError, match="'auto'"):
        explainer(TABLE[:1]).contributions  # noqa: B018 - computed when read


def test_the_refusal_of_a_text_says_what_helps():
    explanation = limes.TextExplainer(by_letters, max_calls=100, contributions=False)(TEXT, progress=False)
    with pytest.raises(
        InputError, match=r"0 calls are left; use at least \d+, or \d+ with contributions='auto'"
    ):
        explanation.contributions  # noqa: B018 - computed when read


# -- other doors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [20, 120, 700])
def test_the_drop_in_keeps_num_samples(samples):
    from limes.compat.lime import lime_tabular, lime_text

    tables, texts = lime_tabular.LimeTabularExplainer, lime_text.LimeTextExplainer
    model = Counted(two)
    tables(TABLE, mode="classification").explain_instance(TABLE[0], model, num_samples=samples)
    assert 0 < model.rows <= samples
    model = Counted(curved)
    tables(TABLE, mode="regression", discretize_continuous=False).explain_instance(
        TABLE[0], model, num_samples=samples
    )
    assert 0 < model.rows <= samples
    model = Counted(lambda t: np.stack([1.0 - by_letters(t), by_letters(t)], axis=1))
    texts().explain_instance(TEXT, model, num_samples=samples)
    assert 0 < model.rows <= samples


@pytest.fixture
def recorded(monkeypatch):
    """Explainers and explanations of tables that were explainers."""
    explainers, explained = [], []
    init, call = limes.TabularExplainer.__init__, limes.TabularExplainer.__call__

    def keep_explainer(self, *args, **options):
        explainers.append(self)
        init(self, *args, **options)

    def keep_explanation(self, *args, **options):
        explained.append(call(self, *args, **options))
        return explained[-1]

    monkeypatch.setattr(limes.TabularExplainer, "__init__", keep_explainer)
    monkeypatch.setattr(limes.TabularExplainer, "__call__", keep_explanation)
    return explainers, explained


class Estimator:
    """A model of no library, which counts."""

    rows = 0

    def predict(self, x):
        Estimator.rows += len(x)
        return curved(np.asarray(x))


@pytest.mark.parametrize("law", ["truncnorm", "joint"])
def test_the_command_line_keeps_max_calls(tmp_path, recorded, law):
    frame = pd.DataFrame(TABLE, columns=[f"c{j}" for j in range(D)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    joblib.dump(Estimator(), tmp_path / "m.joblib")
    Estimator.rows = 0
    arguments = [
        "explain",
        str(tmp_path / "m.joblib"),
        str(tmp_path / "t.csv"),
        "--trust-pickle",
        "--row",
        "3",
    ]
    json = tmp_path / "e.json"
    options = ["--max-calls", "400", "--law", law, "--json", str(json)]
    result = CliRunner().invoke(app, [*arguments, *options])
    assert result.exit_code == 0, result.output
    (explanation,) = recorded[1]
    assert Estimator.rows == explanation.model_calls + explanation.shared_calls.max() <= 400
    stored = limes.Explanation.from_json(json.read_text())
    assert stored.model_calls + stored.shared_calls.max() == Estimator.rows


@pytest.mark.parametrize("contributions", ["auto", True, False])
@pytest.mark.parametrize("most", [200, 5000])
def test_long_tables_keep_max_calls(contributions, most):
    model = Counted(curved)
    frame = pd.DataFrame(TABLE, columns=[f"c{j}" for j in range(D)])
    explainer = limes.TabularExplainer(
        lambda x: model(np.asarray(x)), frame, max_calls=most, contributions=contributions
    )
    table = explain_frame(explainer, frame.iloc[:1])
    assert table["error"].isna().all()
    assert model.rows <= most
    each = explainer(frame.iloc[1:4], progress=False)
    for_account = 0 if contributions is False else each.contributions.calls
    assert (each.calls + each.shared_calls + for_account <= most).all()
    before = model.rows
    explain_frame(explainer, frame.iloc[1:4])
    # what each row has for itself; blocks of rows are filled up
    assert model.rows - before <= np.sum(each.calls + for_account) + 2 * (48 + WITNESSES)


def test_the_app_tells_what_it_asks(recorded):
    from internals import WhatIfSession

    frame = pd.DataFrame(TABLE, columns=[f"c{j}" for j in range(D)])
    model = Counted(lambda x: curved(np.asarray(x)))
    explainer = limes.TabularExplainer(model, frame, max_calls=500)
    desk = WhatIfSession(explainer, frame, [str(i) for i in range(len(frame))], lambda _: None)
    values = TABLE[4].tolist()
    for door in (desk.table, lambda: desk.row(4), lambda: desk.explain(values, 0)):
        before = model.rows
        door()
        assert model.rows - before <= 500
        assert model.rows == explainer.pool_calls + sum(one.model_calls for one in recorded[1])


# -- all sets of few features --------------------------------------------------------------------------------


def few(kind, d, model, most):
    """An explainer of an input of d features, and the input."""
    if kind == "text":
        return limes.TextExplainer(model, max_calls=most, rng=0), " ".join(f"w{j}" for j in range(d))
    if kind == "image":
        grid = {"segments": "grid", "segment_options": {"rows": 1, "columns": d}, "fill": "mean"}
        return limes.ImageExplainer(model, max_calls=most, rng=0, **grid), PHOTO
    return limes.SeriesExplainer(model, max_calls=most, rng=0, count=d, fill=0.0), SERIES + 2.0


FEW_FEATURES = {"text": by_letters, "image": brightness, "series": swing}


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("kind", FEW_FEATURES)
def test_all_sets_of_few_features_are_asked_about_where_they_fit(kind, d):
    """Answers of checks are answers to sets: 4 words took 24 calls, and 14 to 23 were sampled or refused."""
    # the whole input, four sets in two different batches, and all others
    least = 1 + 8 + 2**d - 1 - (3 if d > 1 else 1)
    function = FEW_FEATURES[kind]
    reference, item = few(kind, d, function, 200)
    exact = reference(item, progress=False)
    for most in (least, least + 1, least + 7):
        model = Counted(function)
        explainer, _ = few(kind, d, model, most)
        its = explainer(item, progress=False)
        assert (its.method, model.rows) == ("exact", least)
        assert its.model_calls == least
        np.testing.assert_array_equal(its.coefficients.values, exact.coefficients.values)
        np.testing.assert_array_equal(its.contributions.values, exact.contributions.values)
        np.testing.assert_allclose(its.coefficients.values, exact.coefficients.values, rtol=1e-12)
        # the next input is asked about once
        assert explainer(item, progress=False).model_calls == 2**d


@pytest.mark.parametrize("d", [2, 3, 4])
def test_all_texts_of_few_words_serve_checks_of_a_pipeline_too(d):
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline

    texts = ["w0 w1", "w1 w2", "w3 w0", "w2", "w0 w1 w2 w3", "w3 w2 w1"] * 2
    vectors = CountVectorizer().fit(texts)
    head = KNeighborsRegressor(2).fit(vectors.transform(texts), np.arange(12.0))
    text = " ".join(f"w{j}" for j in range(d))

    def ask(texts):
        return head.predict(vectors.transform(texts))

    exact = limes.TextExplainer(ask)(text, progress=False)
    least = 2**d + 4  # four texts once more
    its = limes.TextExplainer(make_pipeline(vectors, head), max_calls=least)(text, progress=False)
    assert (its.method, its.model_calls) == ("exact", least)
    np.testing.assert_allclose(its.contributions.values, exact.contributions.values, rtol=1e-9, atol=1e-12)
    with pytest.raises(InputError, match=f"use at least {least}"):
        limes.TextExplainer(make_pipeline(vectors, head), max_calls=least - 1)(text, progress=False)


def test_all_sets_of_levels_serve_checks_too():
    text = "w0 w3. w7 w5."
    exact = limes.TextExplainer(by_letters, hierarchy=True, max_calls=100)(text, progress=False)
    model = Counted(by_letters)
    its = limes.TextExplainer(model, hierarchy=True, max_calls=21 + 1)(text, progress=False)
    assert (exact.method, its.method) == ("exact", "exact")
    assert model.rows == its.contributions.calls[0] <= 22
    np.testing.assert_array_equal(its.contributions.values, exact.contributions.values)


@pytest.mark.parametrize("most", [21, 24, 40])
def test_answers_of_checks_are_not_kept_of_a_random_model(most):
    model = Counted(noisy_letters())
    its = limes.TextExplainer(model, max_calls=most, rng=0)("w0 w3 w7 w5", progress=False)
    assert its.method == "sampled"
    assert model.rows <= most
    assert (its.contributions.standard_errors > 0.0).all()
