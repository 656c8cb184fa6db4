"""diagnose() as a user calls it: its arguments, its result, and how the result is shown."""

from __future__ import annotations

import json
import os
import pickle
import re
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rich.console
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limes
from effort import repeats
from flaws import diagnosed, linear, uniform_table
from internals import Finding
from internals import finding as finding_module
from limes.exceptions import InputError
from pages import page

DATA = Path(__file__).parents[2] / os.environ.get("LIMES_DATA", "../shared/data") / "tabular"


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    # so narrow that lime's own fit would shrink: a finding
    explainer = limes.TabularExplainer(RandomForestClassifier(10, random_state=0).fit(X, y), X, bandwidth=0.6)
    return X, explainer, limes.diagnose(explainer(X.iloc[[0, 70, 140]]))


def rounded(text):
    """JSON with twelve digits of each number."""
    return json.loads(text, parse_float=lambda number: f"{float(number):.12g}")


def test_each_row_is_diagnosed_for_its_largest_output(wine):
    X, explainer, diagnosis = wine
    predictions = explainer(X.iloc[[0, 70, 140]]).predictions
    assert [row.explanation.output for row in diagnosis] == [str(k) for k in predictions.argmax(axis=1)]
    chosen = limes.diagnose(explainer(X.iloc[:2]), output="2")
    assert [row.explanation.output for row in chosen] == ["2", "2"]
    picked = limes.diagnose(explainer(X.iloc[:1])[..., "2"])
    # effects are added up in an order that depends on the rows beside them
    assert rounded(picked.to_json()) == rounded(chosen[0].to_json())


def test_every_finding_has_a_number_and_an_advice(wine):
    for finding in wine[2].findings:
        assert np.isfinite(finding.number)
        assert finding.error >= 0
        assert finding.sentence.endswith(".")
        assert finding.advice.endswith(".")
        assert finding.unit


def test_contributions_come_first_and_of_each_reading_warnings(wine):
    for row in wine[2]:
        order = [(f.reading == "coefficients", f.severity == "note") for f in row.findings]
        assert order == sorted(order)
        of_lime = [measure.reading == "coefficients" for measure in row.measures]
        assert of_lime == sorted(of_lime)


def test_an_output_of_a_file_has_its_share_of_effects():
    X, y = load_iris(return_X_y=True)
    explainer = limes.TabularExplainer(RandomForestClassifier(10, random_state=0).fit(X, y), X)
    explanation = explainer(X[:2])
    loaded = limes.Explanation.from_json(explanation.to_json())
    for k in range(3):
        its, live = (limes.diagnose(e[..., k], explainer, progress=False).rows for e in (loaded, explanation))
        assert [row.additive for row in its] == [row.additive for row in live]


def test_explanations_from_files_need_their_explainer(wine):
    X, explainer, _ = wine
    explanation = explainer(X.iloc[:1])
    loaded = limes.Explanation.from_json(explanation.to_json())
    assert loaded.explainer is None
    with pytest.raises(InputError, match=r"diagnose\(explanation, explainer\)"):
        limes.diagnose(loaded)
    assert limes.diagnose(loaded, explainer).to_json() == limes.diagnose(explanation).to_json()
    assert pickle.loads(pickle.dumps(explanation)).explainer is None
    assert explanation[0].explainer is explainer


def test_a_part_of_the_features_cannot_be_diagnosed(wine):
    X, explainer, _ = wine
    with pytest.raises(InputError, match="all its features"):
        limes.diagnose(explainer(X.iloc[:1]).top(3))


def test_another_explainers_outputs_are_refused(wine):
    X, explainer, _ = wine
    other = limes.TabularExplainer(lambda t: t["alcohol"].to_numpy(), X, max_calls=64, control="none")
    with pytest.raises(InputError, match="no output"):
        limes.diagnose(explainer(X.iloc[:1]), other)


def test_rows_of_a_diagnosis_are_those_of_the_explanation():
    cities, numbers = ["Rome", "Oslo", None, "Rome"] * 50, [0.5, np.nan, 2.5, 3.5] * 50
    X = pd.DataFrame({"city": cities, "n": [1, 2, 3, 4] * 50, "x": numbers})
    explainer = limes.TabularExplainer(lambda t: t["n"].to_numpy() * 1.0, X, max_calls=256, control="none")
    context = explainer._diagnostic_context(explainer(X.iloc[:4]), output=np.zeros(4, dtype=int), calls=None)
    np.testing.assert_array_equal(context.rows, explainer._model.table.encode(X.iloc[:4]))


# -- how it is shown --------------------------------------------------------------------------------------


def test_json_is_strict_and_complete(wine):
    result = json.loads(wine[2].to_json(), parse_constant=lambda name: pytest.fail(name))
    assert result["format"] == "limes.diagnosis"
    assert [row["row"] for row in result["rows"]] == [0, 1, 2]
    assert len(result["rows"][0]["path"]["coefficients"]) == len(result["rows"][0]["path"]["bandwidths"])
    assert result["rows"][0]["lime"] == wine[2].rows[0].lime.tolist()
    assert result["rows"][0]["beyond_the_edge"] == wine[2].rows[0].beyond.tolist()
    assert {"feature", "cells", "means"} <= set(result["rows"][0]["profiles"][0])


def test_curves_are_the_coefficients_over_the_logarithm_of_the_bandwidth(wine):
    """For the first row: each curve is a column, turned upside down and stretched, inside the picture."""
    path = json.loads(wine[2].to_json())["rows"][0]["path"]
    bandwidths, coef = np.array(path["bandwidths"], dtype=float), np.array(path["coefficients"], dtype=float)
    picture = re.search(
        r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)" role="img" aria-label="coefficients.*?</svg>',
        wine[2].to_html(),
        re.DOTALL,
    )
    curves = re.findall(r'<polyline points="([^"]*)"', picture[0])
    assert len(curves) > 1
    steepest = np.ptp(coef, axis=0).max()
    for curve in curves:
        x, y = np.array([point.split(",") for point in curve.split()], dtype=float).T
        assert (x >= 0).all()
        assert (x <= float(picture[1])).all()
        assert (y >= 0).all()
        assert (y <= float(picture[2])).all()
        some = np.log(bandwidths[: x.size])
        assert x == pytest.approx(x[0] + (x[-1] - x[0]) * (some - some[0]) / (some[-1] - some[0]), abs=0.1)
        unit = float(picture[2]) / steepest
        flat = [
            np.abs(np.corrcoef(column[: x.size], y)[0, 1] + 1)
            for column in coef.T
            if np.ptp(column) * unit > 20
        ]
        assert min(flat, default=0.0) < 1e-3


def test_the_page_is_self_contained_and_escapes_every_name(tmp_path):
    X = pd.DataFrame(uniform_table(3, 400), columns=["<script>alert(1)</script>", "a&b", '"quoted"'])
    diagnosis = diagnosed(LinearRegression().fit(X, X.sum(axis=1)), X, X.iloc[:2], bins=5)
    text = diagnosis.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"(src|url)\s*[=(]|<link", text)  # what a browser would load
    assert "<polyline" in text
    assert "nan" not in re.findall(r'points="([^"]*)"', text)
    fragment = diagnosis._repr_html_()
    assert fragment.strip().startswith('<div class="limes-diagnosis">')
    assert "<html" not in fragment


def test_the_page_states_the_share_of_an_effect_that_its_coefficient_explains(wine):
    """R² of the cells' means on the indicator of the row's cell, weighted by the cells' probabilities."""
    diagnosis = wine[2][0]
    shown = dict(
        re.findall(r"<b>(\w+)</b> coefficient [^;]+; one number captures (\d+%) of", diagnosis.to_html())
    )
    profiles = [profile for profile in diagnosis.rows[0].profiles if profile.name in shown]
    assert len(profiles) > 2
    for profile in profiles:
        assert not profile.error.any()
        inside = np.arange(profile.mean.size) == profile.current
        correlation = np.cov(np.stack([profile.mean, inside]), aweights=profile.probability, ddof=0)
        share = correlation[0, 1] ** 2 / (correlation[0, 0] * correlation[1, 1])
        assert shown[profile.name] == f"{share:.0%}"


def test_the_terminal_shows_findings_and_measures(wine, capsys):
    _, _, diagnosis = wine
    rich.print(diagnosis[0])
    shown = capsys.readouterr().out
    assert "fidelity R²" in shown
    assert str(diagnosis[0]).splitlines()[0].startswith("row 0")
    several = str(diagnosis)
    assert several.startswith("3 rows, exact")
    assert "→" in several
    assert repr(diagnosis).startswith("<Diagnosis: 3 rows")


def test_a_few_rows_do_not_show_dependent_columns():
    X = np.random.default_rng(0).normal(size=(9, 2))
    explainer = limes.TabularExplainer(LinearRegression().fit(X, X[:, 0]), X)
    for row in limes.diagnose(explainer(X[:2])):
        assert "dependence" not in {finding.kind for finding in row.findings}
        assert "dependence" not in row.diagnostics


def test_measures_keep_their_lines_in_a_narrow_terminal(wine):
    _, _, diagnosis = wine
    stream = StringIO()
    rich.console.Console(file=stream, width=34).print(diagnosis[0])
    lines = stream.getvalue().splitlines()
    for name in ("fidelity R²", "local error"):
        (line,) = (line for line in lines if line.strip().startswith(name))
        assert re.search(r"\d", line.removeprefix(name))


def test_a_surrogate_that_captures_little_is_not_praised():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = RandomForestRegressor(100, random_state=0).fit(X, y)
    diagnosis = limes.diagnose(limes.TabularExplainer(model, X)(X.iloc[[3]]), progress=False)
    text = " ".join(str(diagnosis).split())
    assert not diagnosis.findings
    assert diagnosis.rows[0].fidelity < 0.5
    assert "All checks stayed below" not in text
    contributions, _, lime = text.partition("LIME's view: prediction")
    assert "No check concerns the contributions." in contributions
    assert "surrogate" not in contributions
    assert "No check concerns LIME's coefficients. The surrogate captures 17% of what" in lime


def test_a_row_without_findings_says_so():
    X = uniform_table(2)
    diagnosis = diagnosed(linear([1.0, 1.0]), X, np.array([[9.0, 9.0], [-9.0, 9.0]]))
    assert not diagnosis.findings
    sentence = "In 2 of 2 rows no check concerns the contributions."
    assert sentence in " ".join(str(diagnosis).split())
    assert "No check concerns LIME's coefficients. The surrogate captures" in " ".join(
        str(diagnosis[0]).split()
    )
    assert sentence in diagnosis.to_html()


def test_pictures_take_axes_and_return_them(wine):
    X, explainer, diagnosis = wine
    figure, axes = plt.subplots(1, 4)
    assert diagnosis.plot.bandwidth(1, ax=axes[0]) is axes[0]
    assert diagnosis.plot.profile(row=1, ax=axes[1]) is axes[1]
    assert diagnosis.plot.profile("alcohol", ax=axes[2]) is axes[2]
    assert explainer(X.iloc[:1]).plot.bandwidth(ax=axes[3]) is axes[3]
    assert len(axes[0].lines) >= 6
    with pytest.raises(InputError, match="no profile"):
        diagnosis.plot.profile("proof")
    plt.close(figure)


# -- texts ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reviews():
    texts = ["good food and fine music", "bad food", "slow service", "good service and a fine place"] * 5
    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [1, 0, 0, 1] * 5)


@pytest.mark.parametrize(
    ("options", "method"),
    [({"output": "margin"}, "exact"), ({}, "exact"), ({"method": "sampled", "max_calls": 100}, "sampled")],
)
def test_texts_are_diagnosed(reviews, options, method):
    explanation = limes.TextExplainer(reviews, **options)("Good food, bad music, and slow service all day.")
    diagnosis = limes.diagnose(explanation)
    (row,) = diagnosis.rows
    assert (explanation.method, diagnosis.method) == (method, method)
    assert row.profiles == ()
    assert np.isfinite(row.path.values[row.path.current :]).all()
    fit = row.diagnostics["fit"]
    assert 0 < fit.fidelity <= 1
    output = explanation.predictions.size - 1  # the positive class alone
    np.testing.assert_allclose(fit.local_error, explanation.coefficients.local_errors.reshape(-1)[output])
    assert "polyline" in diagnosis.to_html()


def test_all_subsets_of_a_short_text_give_exact_numbers(reviews):
    explainer = limes.TextExplainer(reviews)
    (row,) = limes.diagnose(explainer("Good food, bad music.")).rows
    np.testing.assert_allclose(row.path.values[row.path.current], row.explanation.values, atol=1e-9)
    assert (row.path.errors == 0).all()
    assert row.diagnostics["fit"].fidelity_error == 0


# -- real tables ------------------------------------------------------------------------------------------


def _table(name):
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip("the real tables are not here: set LIMES_DATA")
    table = pd.read_csv(path, keep_default_na=False, na_values=[""]).iloc[:3000]
    X = table.drop(columns="target")
    return X.apply(lambda c: c.astype("category") if c.dtype.kind not in "iuf" else c), table["target"]


@pytest.mark.parametrize(
    "name", ["wine_quality_white", "adult", *repeats(["california_housing", "breast_cancer"], [])]
)
def test_real_tables(name):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True) if name == "breast_cancer" else _table(name)
    two = y.nunique() == 2
    kind = HistGradientBoostingClassifier if two else HistGradientBoostingRegressor
    model = kind(max_iter=20, random_state=0, categorical_features="from_dtype")
    explainer = limes.TabularExplainer(model.fit(X, y), X, output="margin" if two else None)
    diagnosis = limes.diagnose(explainer(X.iloc[:8], progress=False), max_calls=256)
    for finding in diagnosis.findings:
        assert np.isfinite(finding.number)
        assert finding.advice
        assert "nan" not in finding.sentence
        assert "inf" not in finding.sentence.replace("information", "")
    assert str(diagnosis)
    assert all(len(row.measures) >= 10 for row in diagnosis)


def test_a_model_is_no_explanation():
    with pytest.raises(
        InputError,
        match=r"needs an explanation, got LinearRegression: pass limes\.TabularExplainer",
    ):
        limes.diagnose(LinearRegression())


KINDS = (
    "alignment",
    "bandwidth",
    "cancellation",
    "dependence",
    "edge",
    "fidelity",
    "interaction",
    "local error",
    "repetition",
)


def finding(kind):
    return Finding(
        kind=kind, severity="note", features=(), number=0.0, error=0.0, unit="", sentence="", advice=""
    )


@pytest.mark.parametrize("kind", [*KINDS, "sample size", "shrinkage"])
def test_every_kind_of_finding_has_its_section(kind):
    text = page("findings.md")
    assert f"({finding(kind).code})=\n## {kind}\n" in text
    assert f"[{kind}](#{finding(kind).code})" in text  # and a line in the table


def test_the_page_has_a_text_for_every_kind():
    rooms = (Path(limes.__file__).parent / "_diagnostics").glob("*.py")
    kinds = {
        kind for room in rooms for kind in re.findall(r'Finding\(\s*kind="([^"]+)"', room.read_text("utf-8"))
    }
    assert kinds == {*KINDS, "sample size", "shrinkage"}


def test_findings_link_to_the_documentation_once_it_has_an_address(monkeypatch):
    monkeypatch.setattr(finding_module, "documentation", lambda: "https://limes.example")
    assert finding("local error").url == "https://limes.example/findings.html#finding-local-error"
    monkeypatch.setattr(finding_module, "documentation", lambda: "")
    assert finding("edge").url == ""


def test_three_classes_are_diagnosed_without_tables_of_every_bandwidth(monkeypatch):
    """Tables of the double integral take a fifth of a second, and a diagnosis tries two dozen bandwidths."""
    from internals import SoftmaxExpectation

    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X[["alcohol", "hue", "proline"]]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    explanation = limes.TabularExplainer(model, X)(X.iloc[[5]])
    assert explanation.method == "exact"
    assert explanation.contributions is not None  # under another law, tabulated once
    tables = []
    monkeypatch.setattr(SoftmaxExpectation, "_tabulate", lambda *_: tables.append(1))
    assert len(limes.diagnose(explanation)) == 1
    assert not tables


def test_a_row_has_the_name_that_its_explanation_has_and_a_single_output_has_none():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    explanation = limes.TabularExplainer(LinearRegression().fit(X, y), X)(X.iloc[[12, 40]])
    diagnosis = limes.diagnose(explanation)
    assert explanation.ids == (12, 40)
    assert str(diagnosis[0]).startswith("row 12: prediction ")
    assert "row 12: " in str(diagnosis)
    page = diagnosis.to_html()
    assert "<summary>row 12: prediction " in page
    assert "<summary>row 40: prediction " in page
    named = limes.diagnose(limes.TabularExplainer(LinearRegression().fit(X, y), X)(X[:1], ids=["Ann"]))
    assert str(named).startswith("Ann: prediction ")
