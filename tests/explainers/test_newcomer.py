"""Newcomers' mistakes: rows as dicts, options of other libraries, classes for models, many classes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import limes
from limes.exceptions import CellError, InputError, ModelError, UnknownOptionError

IRIS, TARGET = load_iris(return_X_y=True, as_frame=True)
FOREST = RandomForestClassifier(10, random_state=0).fit(IRIS, TARGET)
EXPLAINER = limes.TabularExplainer(FOREST, IRIS)


def test_rows_may_be_a_list_of_mappings():
    rows = IRIS.iloc[[3, 70]]
    explanation = EXPLAINER([row.to_dict() for _, row in rows.iterrows()])
    assert np.array_equal(explanation.coefficients.values, EXPLAINER(rows).coefficients.values)
    broken = [rows.iloc[0].to_dict(), {**rows.iloc[1].to_dict(), "x": 1.0}]
    with pytest.raises(InputError, match="row 1 of X has other names than row 0: 'x'"):
        EXPLAINER(broken)


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("kernel_width", "here it is bandwidth="),
        ("num_samples", "here it is max_calls="),
        ("random_state", "here it is rng="),
        ("mode", "here it is output="),
        ("feature_names", "pass the background as a data frame"),
        ("bandwith", "did you mean 'bandwidth'"),
    ],
)
def test_options_of_other_libraries(option, advice):
    with pytest.raises(UnknownOptionError, match=advice):
        limes.TabularExplainer(FOREST, IRIS, **{option: 1})


def test_methods_of_other_libraries():
    with pytest.raises(AttributeError, match=r"TabularExplainer has no explain_instance\(\): call it"):
        EXPLAINER.explain_instance(IRIS.iloc[0], FOREST.predict_proba)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        EXPLAINER.nothing  # noqa: B018 - raises


def test_invalid_models_are_refused():
    with pytest.raises(InputError, match="model is the class LinearRegression: pass a fitted instance"):
        limes.TabularExplainer(LinearRegression, IRIS)
    with pytest.raises(ModelError, match="returned None: is a return missing"):
        limes.TabularExplainer(lambda x: None, IRIS)
    with pytest.raises(ModelError, match=r"did not return numbers, but 'a'.*predict_proba"):
        limes.TabularExplainer(lambda x: ["a"] * len(x), IRIS)


def test_views_of_many_rows_are_of_the_output_with_the_largest_mean_prediction():
    explanation = EXPLAINER(IRIS.iloc[50:90])
    largest = int(np.argmax(explanation.predictions.mean(axis=0)))
    assert largest == 1  # not the last of the three
    name = explanation.output_names[largest]
    assert limes.summary(explanation).output == f"P(target = {name})"
    assert f"P(target = {name})" in explanation.plot.beeswarm().get_title(loc="left")
    assert f"P(target = {name})" in explanation.plot.bar().get_title(loc="left")


def test_a_summary_keeps_its_names_in_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    text = str(limes.summary(EXPLAINER(IRIS)))
    assert all(name in text for name in IRIS.columns)
    assert "…" not in text
    monkeypatch.setenv("COLUMNS", "140")
    assert "█" in str(limes.summary(EXPLAINER(IRIS)))


def test_reasons_of_slopes_are_per_unit():
    y = IRIS.iloc[:, 0] * 2.0 - IRIS.iloc[:, 1]
    slopes = limes.TabularExplainer(LinearRegression().fit(IRIS, y), IRIS, bins=None)(IRIS.iloc[:1])
    assert slopes.reasons(1, of="coefficients") == (
        "each further unit of sepal length (cm) raises the prediction by 2",
    )


def test_slopes_have_digits_of_their_own():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"small": rng.random(50), "large": 1e4 * rng.random(50)})
    model = LinearRegression().fit(table, 3.25 * table["small"] + 1.375e-4 * table["large"])
    text = str(limes.TabularExplainer(model, table, bins=None)(table.iloc[:1]).coefficients)
    assert "+3.25" in text
    assert "e-04" in text


def test_effects_of_two_classes_are_those_of_the_second():
    two = IRIS[TARGET < 2], TARGET[TARGET < 2]
    model = RandomForestClassifier(5, random_state=0).fit(*two)
    text = str(limes.TabularExplainer(model, two[0])(two[0].iloc[:1]).effects)
    assert "whole effects of 4 columns on 1" in text
    assert "output" not in text.splitlines()[2]


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_numbers_beyond_float64_are_named(value):
    table = pd.DataFrame({"age": np.arange(30), "c": ["a", "b"] * 15})
    explainer = limes.TabularExplainer(lambda x: x["age"].to_numpy() * 1.0, table)
    with pytest.raises(CellError, match="row 0, column 'age': a whole number of 1329 bits is not finite"):
        explainer({"age": value, "c": "a"})


def test_literals_are_a_line():
    assert repr(limes.Literals.fit(IRIS)) == "<Literals: 16 literals of 4 columns, 'bins'>"


def test_ids_are_a_list():
    for ids in (3, "abc"):
        with pytest.raises(InputError, match="must be a list of names, one for each of the 3 rows"):
            EXPLAINER(IRIS.iloc[:3], ids=ids)


def test_a_tolerance_out_of_reach_advises_another_one():
    """A warning advised to raise max_calls to some sextillions."""
    image = np.random.default_rng(0).random((16, 16, 3))
    curved = limes.ImageExplainer(
        lambda batch: [np.sin(100 * x.sum()) for x in batch],
        segments=np.arange(256).reshape(16, 16) // 8,
        fill=0.0,
        tolerance=1e-6,
        max_calls=100,
        rng=0,
    )(image)
    (far,) = [w for w in curved.row_warnings[0] if w.code == "tolerance"]
    assert far.endswith("; more than 10,000,000 would be needed: pass a larger tolerance")
    near = limes.TabularExplainer(
        lambda x: np.sin(x).sum(axis=1),
        np.random.default_rng(1).normal(size=(60, 3)),
        tolerance=0.01,
        max_calls=200,
        rng=0,
    )(np.zeros((1, 3)))
    (text,) = [w for w in near.row_warnings[0] if w.code == "tolerance"]
    assert text.endswith("would be needed: raise max_calls")


def test_options_of_explainers_are_no_options_of_their_calls():
    """These were bare TypeErrors, which named no place for the option."""
    text = limes.TextExplainer(lambda texts: [float(len(text)) for text in texts])
    prompts = limes.PromptExplainer(lambda prompts: [float(len(prompt)) for prompt in prompts])
    prompt = limes.Prompt("Say:", limes.sources(["a b", "c d"], by="document"))
    image = limes.ImageExplainer(lambda batch: batch.sum(axis=(1, 2, 3)))
    sparse = limes.SparseExplainer(FOREST, literals=limes.Literals.fit(IRIS), output=1)
    calls = {
        "TabularExplainer(..., contributions=)": lambda: EXPLAINER(IRIS[:1], contributions=False),
        "TabularExplainer(..., max_calls=)": lambda: EXPLAINER.contributions(IRIS[:1], max_calls=9),
        "TabularExplainer(..., rng=)": lambda: EXPLAINER(IRIS[:1], seed=9),
        "TextExplainer(..., max_calls=)": lambda: text("a b", max_calls=9),
        "PromptExplainer(..., max_calls=)": lambda: prompts(prompt, max_calls=9),
        "ImageExplainer(..., segments=)": lambda: image(np.zeros((8, 8, 3)), segments=None),
        "SparseExplainer(..., k=)": lambda: sparse(IRIS[:1], k=3),
    }
    for place, call in calls.items():
        with pytest.raises(
            UnknownOptionError, match=f"pass {place.split(', ')[1][:-1]} to the explainer"
        ) as error:
            call()
        assert str(error.value).endswith(place)
    with pytest.raises(
        UnknownOptionError, match="a call of TabularExplainer has no option 'row'; known: X, ids"
    ):
        EXPLAINER(IRIS[:1], row=3)
