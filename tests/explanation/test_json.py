from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes
from internals import Explanation, TableFits
from limes.exceptions import InputError
from samples import explanation

FLOATS = ("values", "standard_errors", "intercepts", "predictions", "surrogate_predictions")
FLOATS += ("fidelity",)
OTHERS = ("feature_names", "output_names", "conditions", "row_warnings", "method", "reason")
OTHERS += ("provenance",)


def assert_same(one, other):
    for name in (*FLOATS, "calls", "row_converged"):
        arrays = [
            getattr(each if name == "predictions" else each.coefficients, name) for each in (one, other)
        ]
        assert arrays[0].tobytes() == arrays[1].tobytes(), name
        assert arrays[0].shape == arrays[1].shape
        assert arrays[0].dtype == arrays[1].dtype
    for name in OTHERS:
        assert getattr(one, name) == getattr(other, name)
    # repr tells nan from None, True from 1, and every float from every other
    assert repr(one.data.tolist()) == repr(other.data.tolist())


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("d", [0, 1, 10])
def test_round_trip_is_bitwise(n, d, k):
    e = explanation(n, k, d=d)
    assert_same(e, Explanation.from_json(e.to_json()))


def test_round_trip_of_floats_that_json_has_no_number_for():
    special = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 1e22, 2.0]
    cells = [np.nan, np.inf, "NaN", None, True, 2**70, "naïve ☃ 𝄞", "", -0.0, "\ud800"]
    e = explanation(
        values=[special],
        fidelity=[np.nan],
        data=[cells],
        provenance={"bandwidth": np.inf, "nested": {"a": [np.float32(0.1), None, "∞"]}},
    )
    text = e.to_json()
    json.loads(text, parse_constant=pytest.fail)  # strictly valid: no bare NaN
    back = Explanation.from_json(text)
    assert_same(e, back)
    assert np.signbit(back.coefficients.values[0, 3])


def test_tag_and_version_come_first():
    assert explanation().to_json().startswith('{"format":"limes._explanation","version":1,')


def test_files(tmp_path):
    e = explanation(2, 3, sampled=True)
    path = tmp_path / "e.json"
    assert e.to_json(path) == path.read_text(encoding="utf-8")
    assert_same(e, Explanation.read_json(path))
    assert_same(e, Explanation.read_json(str(path)))


def changed(**changes):
    content = json.loads(explanation().to_json())
    return json.dumps({**content, **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "No explanation could be read from the text ''"),
        ("\0", "No explanation could be read from the text"),
        ("{", "not valid JSON"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": {"$float": "1"}}', "not valid JSON"),
        ('{"a": {"$float": [1]}}', "not valid JSON"),
        ('{"a": ' + "[" * 100_000, "not valid JSON"),
        ("{}", 'no "format"'),
        (changed(format="other"), 'no "format"'),
        (changed(version=2), "has version 2"),
        (changed(extra=1), r"unknown fields \['extra'\]"),
        (changed(shape=[1]), "damaged"),
        (changed(shape="ab"), "damaged"),
        (changed(shape=[0, "x"]), "damaged"),
        (changed(shape=[0, 10]), "damaged .values has entries"),
        (changed(shape=[0, -1]), "damaged"),
        (changed(values=[[1.0]]), "shape"),
        (changed(values=[["1.0"] * 10]), "pass numbers"),
        (changed(provenance=3), "pass a dictionary"),
    ],
)
def test_bad_input_is_refused_with_advice(text, message):
    with pytest.raises(InputError, match=message):
        Explanation.from_json(text)


def test_a_field_that_is_missing_is_named():
    content = json.loads(explanation().to_json())
    del content["data"]
    with pytest.raises(InputError, match=r"lacks the fields \['data'\]"):
        Explanation.from_json(json.dumps(content))


def test_a_binary_file_is_no_explanation(tmp_path):
    path = tmp_path / "e.bin"
    path.write_bytes(b"\x80\x04\x95\xff")
    with pytest.raises(InputError, match="to_json wrote"):
        Explanation.read_json(path)


@pytest.mark.parametrize("of", ["both", "contributions", "coefficients"])
def test_without_a_fit_no_effects_are_computed(of, monkeypatch):
    X, y = load_diabetes(return_X_y=True)
    explainer = limes.TabularExplainer(
        RandomForestRegressor(3, random_state=0).fit(X, y), X, contributions=of != "coefficients"
    )
    explain = explainer.contributions if of == "contributions" else explainer
    whole, explanation = explain(X[:2]), explain(X[:2])
    expected = json.loads(whole.to_json())

    def fail(*_, **__):
        raise AssertionError("R² or effects were computed")

    monkeypatch.setattr(TableFits, "fidelities", fail)
    monkeypatch.setattr(TableFits, "additive", fail)
    text = explanation.to_json(fit=False)
    monkeypatch.undo()
    content = json.loads(text)
    assert content["fidelity"] is content["fidelity_errors"] is None
    left_out = {"fidelity", "fidelity_errors", "row_warnings", "row_warning_kinds"}
    assert {k: v for k, v in content.items() if k not in left_out} == {
        k: v for k, v in expected.items() if k not in left_out
    }
    again = limes.Explanation.from_json(text)
    if of != "coefficients":
        np.testing.assert_array_equal(again.contributions.values, whole.contributions.values)
    if of != "contributions":
        np.testing.assert_array_equal(again.coefficients.values, whole.coefficients.values)
        assert np.isnan(again.fidelity).all()
        assert np.isinf(again.coefficients.fidelity_errors).all()
        assert "nan" not in str(again.coefficients)
    # what the first call left out, later ones have
    assert json.loads(explanation.to_json()) == expected
