"""Each diagnostic fires on a model with its flaw, and not on a model without it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import limes
from effort import repeats
from flaws import about, bump, diagnosed, kinds, linear, switching, uniform_table, well_behaved
from internals import Dependence, Edge, Estimate, OutsideValues, RowOutput, _most_correlated, _subsample
from oracle import EXACT

DATA = Path(__file__).parents[2] / os.environ.get("LIMES_DATA", "../shared/data")
WINE = DATA / "tabular" / "wine_quality_white.csv.gz"


# -- cancellation: figure 10 of the 2022 paper ------------------------------------------------------------


def test_all_coefficients_of_a_linear_model_vanish_with_five_bins_and_the_diagnosis_says_so():
    X = uniform_table(4)
    row = np.full((1, 4), 0.5)
    explainer = limes.TabularExplainer(linear([3.0, -3.0, 2.8, 3.0]), X, bins=5)
    explanation = explainer(row)
    assert np.abs(explanation.coefficients.values).max() < 0.05  # of slopes of 3 over a range of 20
    result = about(limes.diagnose(explanation), "cancellation")
    assert {f.features[0] for f in result if f.severity == "warning"} == {"x0", "x1", "x2", "x3"}
    # all of the variance between bins is hidden: 24/25 of what a column gives to f
    shares = {f.features[0]: f.number for f in result}
    assert shares["x0"] == pytest.approx(24 / 25 * 9.0 / (3 * 9.0 + 2.8**2), rel=0.15)


@pytest.mark.parametrize("bins", [4, 5])
def test_outer_bins_hide_nothing(bins):
    X = uniform_table(4)
    diagnosis = diagnosed(linear([3.0, -2.0, 1.5, 2.5]), X, np.array([[9.0, -9.0, 8.0, -9.5]]), bins=bins)
    assert "cancellation" not in kinds(diagnosis)


def test_sampled_cancellation_is_found_as_well():
    X = uniform_table(3)
    model = linear([3.0, -2.0, 2.5])
    result = about(diagnosed(model, X, np.zeros((1, 3)) + 0.5, bins=5, method="sampled"), "cancellation")
    assert {f.features[0] for f in result} >= {"x0", "x2"}
    assert all(f.error > 0 for f in result)


# -- interactions ------------------------------------------------------------------------------------------


def test_a_column_that_adds_nothing_alone_and_all_last_interacts():
    X = uniform_table(3)
    tree = DecisionTreeRegressor(max_depth=4).fit(X, ((X[:, 0] > 0) == (X[:, 1] > 0)) * 4.0 + (X[:, 2] > 0))
    explanation = limes.TabularExplainer(tree, X, bandwidth=20.0)(np.array([[7.0, 7.0, 7.0]]))
    account, diagnosis = explanation.contributions, limes.diagnose(explanation)
    (finding,) = about(diagnosis, "interaction")
    apart, size = np.abs(account.last - account.alone).sum(), np.abs(account.values).sum()
    assert finding.number == pytest.approx(apart / size)
    assert finding.features[:2] == ("x0", "x1")
    assert "x0 with x1" in finding.sentence
    assert str(diagnosis)
    assert "interaction" in diagnosis.to_json()


def test_columns_that_add_up_do_not_interact():
    X = uniform_table(3)
    explanation = limes.TabularExplainer(linear([3.0, -2.0, 1.5]), X)(X[:3])
    diagnosis = limes.diagnose(explanation)
    assert "interaction" not in kinds(diagnosis)
    for row in diagnosis.rows:
        (measure,) = (m for m in row.measures if m.name == "order of features")
        assert measure.value < EXACT


# -- alignment: figure 13 of the 2022 paper ---------------------------------------------------------------


def test_a_bump_aligned_with_the_row_is_an_artifact():
    model, X = bump()
    inside, aligned, far = np.array([[7.0, 7.0], [7.0, -7.0], [-7.0, -7.0]])
    explainer = limes.TabularExplainer(model, X)
    large = explainer(aligned[None]).coefficients.values[0, 0]
    assert large > 0.1  # although the model is 0 all around
    result = about(limes.diagnose(explainer(aligned[None])), "alignment")
    assert [f.features for f in result] == [("x0",)]
    assert result[0].number == 0.0
    assert "alignment" not in kinds(limes.diagnose(explainer(inside[None])))
    # far from the bump in both columns each coefficient is negative, and the model flat: that is one as well,
    # but no linear model's
    assert "alignment" not in kinds(diagnosed(linear([1.0, 1.0]), X, far[None]))


def test_the_artifact_is_found_without_reading_the_model():
    model, X = bump()
    result = diagnosed(model, X, np.array([[7.0, -7.0]]), method="sampled")
    assert [f.features for f in about(result, "alignment")] == [("x0",)]


# -- bandwidth --------------------------------------------------------------------------------------------


def test_the_sign_changes_where_the_inclusion_passes_the_share():
    X = uniform_table(2)
    share = 0.7
    crossing = 1 / np.sqrt(-2 * np.log((1 - share) / share))  # α = 1/(1 + t) = share, two bins
    diagnosis = diagnosed(switching(share), X, np.array([[5.0, 5.0]]), bins=2, bandwidth=1.5)
    path = diagnosis.rows[0].path
    assert path.flips() == [0]
    assert path.nearest_flip(0) == pytest.approx(crossing, rel=0.1)
    finding = about(diagnosis, "bandwidth")
    assert finding[0].severity == "warning"
    assert finding[0].number == pytest.approx(crossing, rel=0.1)
    (measure,) = (m for m in path.measures() if m.name == "sign changes")
    low, high = (float(text) for text in re.findall(r"[\d.]*\d", measure.remark))
    assert low < 1.5 < high
    assert measure.value == 1.0


def test_an_additive_model_has_no_path():
    X = uniform_table(3)
    path = diagnosed(linear([1.0, 2.0, 3.0]), X, np.array([[9.0, 9.0, 9.0]])).rows[0].path
    np.testing.assert_allclose(path.values, np.broadcast_to(path.values[0], path.values.shape), rtol=EXACT)
    assert path.flips() == path.vanished() == []


@pytest.mark.skipif(not WINE.exists(), reason="the wine data is not here: set LIMES_DATA")
def test_signs_change_with_the_bandwidth_on_the_wine_data():
    """Figure 7 of the 2022 paper: a kernel regressor on the wine data."""
    table = pd.read_csv(WINE)
    X, y = table.drop(columns="target"), table["target"]
    model = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", gamma=0.02, alpha=0.1))
    model.fit(X.iloc[::10], y.iloc[::10])
    explainer = limes.TabularExplainer(model, X)
    diagnosis = limes.diagnose(explainer(X.iloc[:10]))
    result = [
        (row, f) for row in diagnosis.rows for f in row.findings if f.kind == "bandwidth" and "sign" in f.unit
    ]
    assert result
    # the finding is true: the explanation to the other side of its ν has the other sign
    row, finding = result[0]
    (j,) = (X.columns.get_loc(name) for name in finding.features)
    other = limes.TabularExplainer(model, X, bandwidth=finding.number**2 / row.path.bandwidth)
    beyond = other(X.iloc[row.number : row.number + 1]).coefficients.values[0, j]
    assert np.sign(beyond) == -np.sign(row.explanation.values[j])


# -- edges ------------------------------------------------------------------------------------------------


def test_a_row_on_an_edge_has_a_finding_with_the_other_side():
    X = np.random.default_rng(0).normal(size=(1000, 3))
    edge = np.percentile(X[:, 1], 75)
    rows = np.array([[1.5, edge - 1e-6, 1.5], [1.5, edge + 1e-6, 1.5], [1.5, edge + 0.4, 1.5]])
    explainer = limes.TabularExplainer(linear([1.0, 1.0, 1.0]), X)
    explanation = explainer(rows)
    below, above, away = limes.diagnose(explanation)
    for row, other in ((below, 1), (above, 0)):
        (finding,) = [f for f in row.findings if f.kind == "edge"]
        assert finding.severity == "warning"
        assert finding.features == ("x1",)
        assert finding.number == pytest.approx(1e-6 / X[:, 1].std(), rel=1e-6)
        np.testing.assert_allclose(
            row.diagnostics["edge"].coef.value, explanation.coefficients.values[other], rtol=0, atol=EXACT
        )
    assert not [f for f in away.findings if f.kind == "edge"]


def test_on_a_grid_of_values_an_edge_is_a_step_away():
    rng = np.random.default_rng(0)
    X = rng.integers(18, 80, size=(2000, 2)).astype(float)
    edge = np.percentile(X[:, 0], 50)  # a whole number that rows have
    explainer = limes.TabularExplainer(linear([1.0, 1.0]), X)
    explanation = explainer([[edge, 70.0]])
    assert explanation.warnings == ()
    reading = limes.diagnose(explanation).rows[0].diagnostics["edge"]
    assert reading.distance == pytest.approx(1 / X[:, 0].std(), rel=0.2)
    assert reading.severity is None


def row_output(values, errors):
    d = len(values)
    names = tuple(f"x{j}" for j in range(d))
    numbers = dict.fromkeys(("intercept", "prediction", "surrogate", "surrogate_error"), 0.0)
    return RowOutput(
        names=names,
        conditions=names,
        output="y",
        values=np.array(values),
        errors=np.array(errors),
        fit=lambda: (0.0, 0.0),
        **numbers,
    )


@pytest.mark.parametrize("unknown", [np.inf, np.nan])
def test_an_unknown_error_of_the_explanation_is_none_and_one_beyond_the_edge_hides_all(unknown):
    beyond = Estimate(np.array([0.5, 2.0, 0.0]), np.array([0.1, 0.0, unknown]))
    edge = Edge(
        row=row_output([1.0, 2.0, 4.0], [unknown, 0.0, 0.0]),
        column=0,
        distance=0.0,
        value=0.0,
        beyond="x0 > 0",
        coef=beyond,
    )
    np.testing.assert_allclose(edge.changes, np.array([0.5 - 2 * 0.1, 0.0, 0.0]) / 4.0)


# -- dependence -------------------------------------------------------------------------------------------


def test_a_feature_that_only_rows_which_do_not_occur_need_is_named():
    X = np.random.default_rng(0).normal(size=(1000, 5))
    X[:, 3] = -2.0 * X[:, 1]

    def model(x):  # where x3 = -2 x1, which is everywhere, this is x0
        return x[:, 0] + 5.0 * (x[:, 3] + 2.0 * x[:, 1])

    (finding,) = about(diagnosed(model, X, X[[(X[:, 0] + X[:, 1]).argmax()]]), "dependence")
    assert set(finding.features) <= {"x0", "x1", "x3"}
    assert finding.number == pytest.approx(1.0, abs=0.2)
    assert "x1 and x3 have the rank correlation -1.00" in finding.sentence


@pytest.mark.parametrize("bandwidth", [0.3, None])
def test_independent_columns_are_not_blamed_for_corners(bandwidth):
    X = np.random.default_rng(0).normal(size=(1000, 5))
    corner = np.full((1, 5), 2.0)
    diagnosis = diagnosed(linear(np.ones(5)), X, corner, bandwidth=bandwidth)
    assert "dependence" not in kinds(diagnosis)


def test_a_part_of_a_long_background_has_no_row_twice():
    """A row would be its own neighbour, at a distance of 0."""
    part = _subsample(np.arange(3000.0)[:, None], np.random.default_rng(0))
    assert part.shape == (1000, 1)
    assert (np.diff(part[:, 0]) > 0).all()


def test_the_most_correlated_columns_are_those_of_spearman_whatever_their_units():
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    rows = 1e-4 * np.column_stack(
        [a, np.full(300, 5.0), rng.normal(size=300), -np.exp(a + rng.normal(size=300)), a]
    )
    numeric = np.array([True, True, True, True, False])
    first, second, result = _most_correlated(rows, numeric, tuple("abcde"))
    assert (first, second) == ("a", "d")
    assert result == pytest.approx(stats.spearmanr(rows[:, 0], rows[:, 3]).statistic, rel=1e-12)
    assert _most_correlated(rows[:, :2], numeric[:2], ("a", "b")) is None


def test_dependence_that_changes_no_coefficient_is_no_finding():
    """The columns determine each other, and the model needs none of them."""
    rng = np.random.default_rng(0)
    city = rng.choice(["Rome", "Oslo", "Lima", "Bonn"], 1000)
    country = pd.Series(city).map({"Rome": "Italy", "Oslo": "Norway", "Lima": "Peru", "Bonn": "Germany"})
    X = pd.DataFrame({"city": city, "country": country, "age": rng.normal(size=1000)})
    diagnosis = diagnosed(lambda t: t["age"].to_numpy(), X, X.iloc[:1], max_calls=1024)
    assert "dependence" not in kinds(diagnosis)
    (outside,) = [m for m in diagnosis.rows[0].measures if m.name == "outside the data"]
    assert outside.value > 0.5


@pytest.mark.parametrize(
    ("joint", "severity"),
    # apart by 1 - joint, with standard errors of 0.05 for each law: two of them must fit in between
    [(0.0, "warning"), (0.1, "note"), (0.3, "note"), (0.4, None)],
)
def test_laws_are_apart_only_beyond_their_errors(joint, severity):
    errors = np.array([0.0, 0.05])
    result = Dependence(
        row=row_output([2.0, 2.0], [0.0, 0.1]),
        product=Estimate(np.array([2.0, 2.0]), 2.0 * errors),
        joint=Estimate(np.array([1.0, joint]), errors),
        outside=OutsideValues(rows=100, real=0.4, shuffled=0.1),
    )
    assert result.apart == pytest.approx(1.0 - joint)
    assert result.error == pytest.approx(0.05 * np.sqrt(2))
    assert [f.severity for f in result.findings()] == ([] if severity is None else [severity])


def adult_like(n=1500, seed=0):
    """Columns as dependent as those of census tables: a spouse's sex, a degree and its years of school."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=n)
    married = rng.random(n) < 0.6
    relation = np.where(married, np.where(sex == 1, 2, 1), 0)
    schooling = rng.integers(4, 17, size=n)
    degree = schooling // 4
    return np.column_stack([sex, relation, schooling, degree, 2.0 * schooling + rng.normal(size=n)])


def test_the_scaffolding_attack_is_reported():
    """Slack et al. 2020: a detector of perturbed rows hides a rule that follows the sex alone."""
    X = adult_like()
    options = {"categorical": [0, 1, 3], "rng": 0}
    law = limes.TabularExplainer(lambda x: x[:, 0], X, **options).design(X[0])
    drawn = law.draw(np.random.default_rng(1).random((1500, 5)))[0]
    detector = RandomForestClassifier(50, random_state=0).fit(
        np.concatenate([X, drawn]), np.repeat([1, 0], [len(X), 1500])
    )

    def scaffold(x):
        return np.where(detector.predict(x) == 1, x[:, 0] == 1, x[:, 2] > 10).astype(float)

    np.testing.assert_array_equal(scaffold(X)[:200], X[:200, 0])  # who looks at its answers sees the bias
    rows = X[:20]
    fooled = limes.TabularExplainer(scaffold, X, **options)(rows, progress=False)
    explanation = limes.TabularExplainer(scaffold, X, law="joint", **options)(rows, progress=False)
    assert np.mean(np.abs(fooled.coefficients.values).argmax(axis=1) == 0) <= 0.2
    assert np.mean(np.abs(explanation.coefficients.values).argmax(axis=1) == 0) == 1.0
    for diagnosis in (limes.diagnose(fooled[:5], fooled.explainer), limes.diagnose(explanation[:5])):
        findings = about(diagnosis, "dependence")
        assert len(findings) >= 4
        assert all("law='joint'" in finding.advice for finding in findings)


# -- false alarms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", range(repeats(4, 1)))
def test_well_behaved_models_raise_no_alarm(block):
    """5 % at most in each block."""
    alarms, size = 0, repeats(50, 25)
    for seed in range(size * block, size * block + size):
        case = well_behaved(seed)
        diagnosis = diagnosed(
            case.model, case.X, case.row[None], control="additive", max_calls=512, calls=512
        )
        alarms += bool(diagnosis.findings)
    assert alarms <= 0.05 * size


# -- effective sample size --------------------------------------------------------------------------------


@pytest.mark.parametrize(("bandwidth", "reported"), [(0.2, True), (None, False)])
def test_a_bandwidth_at_which_no_weighted_row_counts(bandwidth, reported):
    X = np.random.default_rng(5).normal(size=(300, 8))
    options = {} if bandwidth is None else {"bandwidth": bandwidth}
    result = about(diagnosed(linear(np.arange(1.0, 9.0)), X, X[:1], **options), "sample size")
    assert bool(result) is reported
    # of 5,000 rows one in 4^8 leaves no bin, and others weigh e^{-12.5} for each that they leave
    assert all(f.number < 1 for f in result)
