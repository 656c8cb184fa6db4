"""Two readings of one shape, and nothing that is read changes what another call says."""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge

import limes
from internals import requested

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # shap's own imports warn
    pytest.importorskip("shap")

X, Y = load_diabetes(return_X_y=True, as_frame=True)
TEXT = "a good film that is not bad and never too long"
PHOTO = np.random.default_rng(0).random((12, 12, 3))
FOREST = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, Y)
LOGISTIC = LogisticRegression(max_iter=500).fit(X, Y > 140)
BOOSTED = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, Y > 140)


def product(table):
    return 1e4 * table["bmi"] * table["bp"] + 10.0 * np.tanh(30.0 * table["s5"])


def letters(texts):
    return np.array([0.2 * ("good" in t) * ("film" in t) + 0.01 * len(t.split()) ** 2 for t in texts])


def brightness(images):
    return np.asarray(images)[:, :6].mean(axis=(1, 2, 3)) * np.asarray(images)[:, 6:].mean(axis=(1, 2, 3))


def swing(batch):
    return np.asarray(batch)[:, 5:15].max(axis=1) * np.asarray(batch)[:, 20:].mean(axis=1)


def of_parts(batch):
    return letters(batch["text"]) + np.asarray(batch["row"]["bmi"]) ** 2


def table(model, rows=2, **options):
    return lambda: limes.TabularExplainer(model, X, rng=0, **options)(X.iloc[:rows], progress=False)


def composite():
    parts = {"text": "text", "row": limes.TablePart(background=X.iloc[:60, 2:4])}
    raw = {"text": "good film", "row": dict(X.iloc[0, 2:4])}
    return limes.CompositeExplainer(of_parts, parts, rng=0)(raw, progress=False)


GRID = {"segments": "grid", "segment_options": {"rows": 2, "columns": 3}}
EXPLAINED = {
    "forest": table(FOREST),
    "ridge, slopes": table(Ridge().fit(X, Y), bins=None),
    "probability": table(LOGISTIC),
    "joint law": table(FOREST, law="joint"),
    "boosted probability": table(BOOSTED),
    "function": table(product, max_calls=600),
    "function, 21 rows": table(product, 21, max_calls=400),
    "function, coefficients alone": table(product, contributions=False),
    "function, joint law": table(product, law="joint", max_calls=700),
    "text": lambda: limes.TextExplainer(letters, rng=0)(TEXT, progress=False),
    "text, two levels": lambda: limes.TextExplainer(letters, hierarchy=True, rng=0)(TEXT, progress=False),
    "image": lambda: limes.ImageExplainer(brightness, rng=0, **GRID)(PHOTO, progress=False),
    "image, two fills": lambda: limes.ImageExplainer(brightness, fill=["mean", 0.0], rng=0, **GRID)(
        PHOTO, progress=False
    ),
    "series": lambda: limes.SeriesExplainer(swing, rng=0)(np.sin(np.arange(40.0) / 5.0), progress=False),
    "composite": composite,
}


def outputs_of(explanation):
    """All that an explanation says, by the name of the call."""
    return {
        "repr": repr(explanation),
        "print": str(explanation),
        "page": explanation.to_html(),
        "card": explanation._repr_html_(),
        "json": explanation.to_json(),
        "frame": explanation.to_frame().to_csv(),
        "reasons": explanation.reasons(2, row=0),
        "shown": repr(explanation.plot.of),
        "axis": explanation.plot.bar(row=0).get_xlabel(),
        "summary": str(limes.summary(explanation)),
        "shap": explanation.to_shap().values.sum(axis=1) + explanation.to_shap().base_values,
        "top": repr(explanation.top(2)),
        "part": repr(explanation[0]),
        "warnings": [[(str(w), w.code, w.outputs) for w in row] for row in explanation.row_warnings],
        "calls": (explanation.model_calls, explanation.calls.tolist()),
        "converged": (explanation.converged, explanation.method, explanation.row_methods),
    }


@pytest.fixture(scope="module", params=EXPLAINED)
def explanation(request):
    return EXPLAINED[request.param]()


def test_reading_a_property_changes_nothing_that_another_call_says(explanation):
    before = outputs_of(explanation)
    kind = type(explanation)
    for name in dir(kind):
        if not name.startswith("_") and isinstance(getattr(kind, name), property):
            try:
                getattr(explanation, name)
            except limes.exceptions.LimesError:  # rules, say, of what is no rule
                continue
    for reading in (explanation.contributions, explanation.coefficients):
        _ = reading.converged, reading.row_warnings, reading.method, repr(reading), reading.total
        _ = reading.top(1), reading[0]
    after = outputs_of(explanation)
    for call, text in before.items():
        assert np.array_equal(after[call], text) if call == "shap" else after[call] == text, call
    plt.close("all")


def test_base_and_values_add_up_to_the_readings_own_total(explanation):
    contributions, coefficients = explanation.contributions, explanation.coefficients
    np.testing.assert_array_equal(contributions.total, explanation.predictions)
    readings = [contributions]
    if "slopes" not in explanation.provenance:
        readings.append(coefficients)
    for reading in readings:
        total = reading.base_values + np.nansum(reading.values, axis=1)
        size = np.abs(reading.values).max() + np.abs(total).max()
        np.testing.assert_allclose(total, reading.total, atol=1e-9 * size)


def test_both_readings_have_one_shape_and_one_set_of_methods(explanation):
    shape = explanation.predictions.shape
    for reading in (explanation.contributions, explanation.coefficients):
        assert reading.values.shape == reading.standard_errors.shape
        assert reading.base_values.shape == reading.total.shape == shape
        assert reading.calls.shape == reading.row_converged.shape == (len(explanation),)
        assert len(reading.row_warnings) == len(reading) == len(explanation)
        first = reading.top(1)
        assert type(first) is type(reading)
        assert first.values.shape[1] == 1
        sizes = np.abs(np.nan_to_num(reading.values)).sum(axis=(0, *range(2, reading.values.ndim)))
        name = explanation.feature_names[int(np.argmax(sizes))]
        assert first.explanation.feature_names == (name,)
        np.testing.assert_array_equal(reading[0].values, reading.values[:1])
        assert len(reading.reasons(1, row=0)) == 1
        frame = reading.to_frame()
        assert frame["value"].tolist() == reading.values.ravel().tolist()
        assert {"feature", "output", "standard_error", "base", "total"} < {*frame.columns}


def test_a_stored_explanation_has_both_readings(explanation):
    stored = limes.Explanation.from_json(explanation.to_json())
    np.testing.assert_array_equal(stored.coefficients.values, explanation.coefficients.values)
    np.testing.assert_array_equal(stored.coefficients.calls, explanation.coefficients.calls)
    its = requested(explanation, "contributions")
    if its is not None:
        for name in ("values", "base_values", "standard_errors", "calls", "row_converged"):
            np.testing.assert_array_equal(getattr(stored.contributions, name), getattr(its, name))


def test_warnings_belong_to_a_reading():
    """A surrogate on the other side of the threshold is no fault of the contributions."""
    explanation = limes.TabularExplainer(LOGISTIC, X, bandwidth=0.5)(X.iloc[:40], progress=False)
    of_lime = {w.code for row in explanation.coefficients.row_warnings for w in row}
    of_shares = {w.code for row in explanation.contributions.row_warnings for w in row}
    assert {"on an edge", "other side"} & of_lime
    assert not {"on an edge", "other side", "far", "hidden effect", "combinations"} & of_shares


def test_frames_of_readings_have_their_own_numbers():
    explanation = table(FOREST)()
    frame = explanation.contributions.to_frame()
    sums = frame.groupby("row").agg({"value": "sum", "base": "first", "total": "first"})
    np.testing.assert_allclose(sums["base"] + sums["value"], sums["total"], rtol=1e-9)
    assert isinstance(frame, pd.DataFrame)


# -- requests ------------------------------------------------------------------------------------------------

EXPLAINERS = {
    "forest": (lambda **o: limes.TabularExplainer(FOREST, X, **o), X.iloc[:3]),
    "probability": (lambda **o: limes.TabularExplainer(LOGISTIC, X, **o), X.iloc[:3]),
    "slopes": (lambda **o: limes.TabularExplainer(FOREST, X, bins=None, **o), X.iloc[:2]),
    "joint law": (lambda **o: limes.TabularExplainer(FOREST, X, law="joint", **o), X.iloc[:2]),
    "boosted probability": (lambda **o: limes.TabularExplainer(BOOSTED, X, rng=1, **o), X.iloc[:2]),
    "function": (lambda **o: limes.TabularExplainer(product, X, max_calls=700, rng=1, **o), X.iloc[:2]),
    "text": (lambda **o: limes.TextExplainer(letters, rng=1, **o), TEXT),
    "texts": (lambda **o: limes.TextExplainer(letters, rng=1, **o), [TEXT, "a good one"]),
    "image": (lambda **o: limes.ImageExplainer(brightness, rng=1, **GRID, **o), PHOTO),
    "series": (lambda **o: limes.SeriesExplainer(swing, rng=1, **o), np.sin(np.arange(40.0) / 5.0)),
}


def test_contributions_of_a_function_alone_have_all_calls():
    make, raw = EXPLAINERS["function"]
    both, alone = make()(raw, progress=False), make().contributions(raw, progress=False)
    assert requested(alone, "coefficients") is None
    account = alone.contributions
    np.testing.assert_allclose(account.base_values + account.values.sum(axis=1), alone.predictions, rtol=1e-9)
    assert (account.calls > both.contributions.calls).all()
    for text in (str(alone), alone.to_html(), alone.to_json(), alone.plot.bar(row=0).get_xlabel()):
        assert text
    with pytest.raises(limes.exceptions.InputError, match="max_calls=700 is used up by contributions"):
        alone.coefficients  # noqa: B018 - computed when read


@pytest.mark.parametrize("name", [name for name in EXPLAINERS if name != "function"])
def test_contributions_alone_are_those_of_a_call_for_both(name):
    make, raw = EXPLAINERS[name]
    both, alone = make()(raw, progress=False), make().contributions(raw, progress=False)
    for one, other in zip(*(its if isinstance(its, list) else [its] for its in (both, alone)), strict=True):
        assert requested(other, "coefficients") is None
        assert requested(other, "contributions") is not None
        # warnings about coefficients are those of a call that asked for them
        assert [[w for w in row if w.reading != "coefficients"] for row in one.row_warnings] == [
            [*row] for row in other.row_warnings
        ]
        assert other.contributions.row_warnings == one.contributions.row_warnings
        assert str(other) == str(one)
        assert {w.reading for row in other.contributions.row_warnings for w in row} <= {"", "contributions"}
        stored = limes.Explanation.from_json(other.to_json())
        assert stored.reasons(row=0) == limes.Explanation.from_json(one.to_json()).reasons(row=0)
        before = (str(other), other.to_json(), other.model_calls, other.row_warnings)
        for field in ("values", "base_values", "standard_errors", "alone", "last", "calls"):
            first, second = (getattr(each.contributions, field) for each in (one, other))
            np.testing.assert_allclose(second, first, rtol=1e-12, atol=1e-12 * np.abs(first).max(initial=0.0))
        # coefficients are computed when they are read
        for field in ("values", "standard_errors", "intercepts", "fidelity"):
            first, second = (getattr(each.coefficients, field) for each in (one, other))
            np.testing.assert_allclose(second, first, rtol=1e-12, atol=1e-12 * np.abs(first).max(initial=0.0))
        assert before == (str(other), other.to_json(), other.model_calls, other.row_warnings)


def test_contributions_of_a_read_model_fit_no_surrogate(monkeypatch):
    from internals import TabularModel

    explainer = limes.TabularExplainer(FOREST, X)

    def refused(*_, **__):
        raise AssertionError("a surrogate was fitted")

    monkeypatch.setattr(TabularModel, "explain", refused)
    explanation = explainer.contributions(X.iloc[:2])
    total = explanation.contributions.base_values + explanation.contributions.values.sum(axis=1)
    np.testing.assert_allclose(total, FOREST.predict(X.iloc[:2]), rtol=1e-12)
    with pytest.raises(AssertionError, match="a surrogate was fitted"):
        explanation.coefficients  # noqa: B018 - computed when read


def first_row_of(explanation):
    """Return what calls say of the first row, whatever the number of rows."""
    frame, row = explanation.to_frame(), explanation[0]
    return {
        "print": [line for line in str(row).splitlines() if "model call" not in line],
        "reasons": explanation.reasons(row=0),
        "frame": frame[frame["row"] == 0].to_csv(),
        "columns": [*frame.columns],
        "shap": explanation.to_shap()[0].values.tolist(),
        "pictures": explanation.plot.of,
        "summary": limes.summary(row).of,
        "json": limes.Explanation.from_json(row.to_json()).reasons(),
    }


@pytest.mark.parametrize("name", ["function", "forest", "probability", "joint law", "boosted probability"])
@pytest.mark.parametrize("rows", [20, 21, 40, 500])
def test_any_number_of_rows_says_the_same_of_a_row(name, rows):
    """With 21 rows of a function the call left contributions out, and prints led with coefficients."""
    make, _ = EXPLAINERS[name]
    table = pd.concat([X, X]).iloc[:rows]
    explanation = make(**({"max_calls": 300} if name == "joint law" else {}))(table, progress=False)
    one = make(**({"max_calls": 300} if name == "joint law" else {}))(table.iloc[:1], progress=False)
    assert (requested(explanation, "contributions") is None) == (requested(one, "contributions") is None)
    np.testing.assert_allclose(explanation.contributions.values[0], one.contributions.values[0], rtol=1e-9)
    many, alone = first_row_of(explanation), first_row_of(one)
    np.testing.assert_allclose(many.pop("shap"), alone.pop("shap"), rtol=1e-9, atol=1e-12)
    assert "usual" in many["print"][0]
    assert many == alone


def test_a_tolerance_is_that_of_contributions_too():
    rough = limes.TabularExplainer(product, X, tolerance="40%", rng=0)(X.iloc[:1], progress=False)
    strict = limes.TabularExplainer(product, X, tolerance="0.1%", max_calls=600, rng=0)(
        X.iloc[:1], progress=False
    )
    assert rough.contributions.converged
    assert not strict.contributions.converged


def test_values_of_an_account_are_its_contributions():
    """The former name of the coefficients was read as what the call had asked for."""
    explainer = limes.TabularExplainer(FOREST, X)
    account, both = explainer.contributions(X[:2]), explainer(X[:2])
    assert np.abs(both.contributions.values - both.coefficients.values).max() > 0
    for one in (account, limes.Explanation.from_json(account.to_json()), account[:, [0, 1, 2]]):
        for name in ("values", "standard_errors"):
            with pytest.warns(FutureWarning, match=f"explanation.{name} is explanation.contributions.{name}"):
                its = getattr(one, name)
            np.testing.assert_array_equal(its, getattr(one.contributions, name))
    with pytest.warns(FutureWarning, match="explanation.intercepts is explanation.coefficients.intercepts"):
        np.testing.assert_array_equal(account.intercepts, both.coefficients.intercepts)
    # what is read changes no meaning
    _ = account.coefficients.values
    with pytest.warns(FutureWarning, match="explanation.values is explanation.contributions.values"):
        np.testing.assert_array_equal(account.values, both.contributions.values)
    with pytest.warns(FutureWarning, match="explanation.values is explanation.coefficients.values"):
        np.testing.assert_array_equal(both.values, both.coefficients.values)
