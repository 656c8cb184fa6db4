"""Contributions of long tables add up to the predictions, to the same bits wherever a table is cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, VotingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import limes
from coalitions import game, shapley
from internals import Source, explain_files, fits
from jobs import read
from limes.exceptions import InputError
from limes.scale import explain_frame

COLUMNS = ("age", "sex", "bmi", "bp")
CONTRIBUTIONS = [f"contribution_{name}" for name in COLUMNS]
ERRORS = [f"error_contribution_{name}" for name in COLUMNS]


@pytest.fixture(scope="module")
def patients():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X[[*COLUMNS]], y


def sampled(patients, **options):
    X, y = patients
    forest = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    return limes.TabularExplainer(lambda rows: forest.predict(rows), X, max_calls=1024, **options)


def by_parts(X, explainer, cuts, **options):
    frames = [explain_frame(explainer, X.iloc[a:b], **options) for a, b in pairwise([0, *cuts, len(X)])]
    return pd.concat(frames, ignore_index=True).drop(columns="row")


def missed(table, layout="wide"):
    """How far base and contributions are from the predictions, as a share of the predictions' range."""
    if layout == "long":
        sums = table.groupby(["row", "output"])[["contribution"]].sum()["contribution"]
        first = table.groupby(["row", "output"])[["base", "prediction"]].first()
    else:
        first, sums = table, table.filter(regex="^contribution_").sum(axis=1, skipna=False)
    return (first["base"] + sums - first["prediction"]).abs().max() / np.ptp(table["prediction"])


MODELS = {
    "forest": RandomForestClassifier(8, max_depth=6, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=20, random_state=0),
    "linear": Ridge(),
    "polynomial": make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge()),
    "kernels": SVR(C=10, gamma=20),
    "kernel ridge": KernelRidge(kernel="rbf", gamma=20),
    "rates": PoissonRegressor(),
    "probabilities": make_pipeline(StandardScaler(), LogisticRegression()),
    "network": MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", max_iter=50, random_state=0),
    "sum": VotingRegressor([("a", DecisionTreeRegressor(max_depth=4)), ("b", Ridge())]),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_contributions_have_the_same_bits_however_a_table_is_cut(patients, name):
    X, y = patients
    classes = name in ("forest", "probabilities")
    explainer = limes.TabularExplainer(MODELS[name].fit(X, y > 140 if classes else y), X)
    some = X.iloc[:60].reset_index(drop=True)
    whole = by_parts(some, explainer, [], contributions=True)
    assert missed(whole) < 1e-9
    assert (whole[ERRORS] == 0).all(axis=None)
    cut = by_parts(some, explainer, [1, 2, 9, 40], contributions=True)
    pd.testing.assert_frame_equal(whole, cut, check_exact=True)


@pytest.mark.parametrize("options", [{}, {"law": "joint"}, {"weights": "euclidean"}])
def test_sampled_contributions_on_request_have_errors(patients, options):
    explainer = sampled(patients, **options)
    some = patients[0].iloc[:7].reset_index(drop=True)
    default = by_parts(some, explainer, [])
    assert not {"base", *CONTRIBUTIONS} & {*default}
    whole = by_parts(some, explainer, [], contributions=True)
    assert (whole[ERRORS] >= 0).all(axis=None)
    assert (whole[ERRORS] > 0).any(axis=None)
    assert missed(whole) < 1e-9
    rest = whole.drop(columns=["base", *CONTRIBUTIONS, *ERRORS])
    pd.testing.assert_frame_equal(rest, default, check_exact=True)
    cut = by_parts(some, explainer, [1, 5], contributions=True)
    pd.testing.assert_frame_equal(whole, cut, check_exact=True)
    contributions = explainer(some).contributions
    assert np.allclose(
        whole[CONTRIBUTIONS], contributions.values, rtol=1e-9, atol=1e-9 * np.abs(contributions.values).max()
    )
    assert np.allclose(whole[ERRORS], contributions.standard_errors, rtol=1e-6, atol=1e-9)


def test_contributions_are_those_of_all_coalitions():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X[[*COLUMNS]].round(1)  # few values, which the law enumerates
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X.to_numpy(), y)
    explainer = limes.TabularExplainer(tree, X.to_numpy(), law="empirical")
    table = explain_frame(explainer, X.iloc[:3].set_axis(explainer.feature_names, axis=1))
    for i in range(3):
        row = X.iloc[i].to_numpy()
        expected, _, _ = shapley(game(tree, explainer, row))
        assert np.allclose(table.filter(regex="^contribution_").iloc[i], expected[:, 0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_several_outputs_have_a_base_each(layout):
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :3]
    explainer = limes.TabularExplainer(RandomForestClassifier(5, random_state=0).fit(X, y), X)
    table, contributions = explain_frame(explainer, X, layout), explainer(X).contributions
    assert missed(table, layout) < 1e-9
    bases = table["base"].to_numpy().reshape(178, 3, -1)[:, :, 0]
    assert np.allclose(bases, contributions.base_values, rtol=1e-12)
    values = table["contribution"] if layout == "long" else table.filter(regex="^contribution_")
    assert np.allclose(
        values.to_numpy().reshape(178, 3, 3), contributions.values.swapaxes(1, 2), rtol=1e-9, atol=1e-14
    )


def test_a_row_without_an_explanation_has_no_contributions(patients):
    X, y = patients
    explainer = limes.TabularExplainer(Ridge().fit(X, y), X)
    broken = X.iloc[:9].astype(object)
    broken.iloc[4, 2] = "heavy"
    for layout in ("wide", "long"):
        table = explain_frame(explainer, broken, layout, contributions=True)
        bad = table["error"].notna()
        assert table.loc[bad, "row"].tolist() == [4]
        numbers = table.filter(regex="contribution|base")
        assert numbers[bad].isna().all(axis=None)
        assert numbers[~bad].notna().all(axis=None)


def test_rows_without_exact_contributions_are_sampled_only_on_request(patients, monkeypatch):
    X, y = patients
    explainer = limes.TabularExplainer(Ridge().fit(X, y), X)
    some, exact = X.iloc[:9], fits.exact_contributions

    def refusing(form, expectation, family, x, cells):
        if (x == some.iloc[3].to_numpy()).all(axis=1).any():
            raise InputError("this row is refused")
        return exact(form, expectation, family, x, cells)

    monkeypatch.setattr(fits, "exact_contributions", refusing)
    table = explain_frame(explainer, some)
    assert table["error"].isna().all()
    assert np.flatnonzero(table[["base", *CONTRIBUTIONS]].isna().any(axis=1)).tolist() == [3]
    table = explain_frame(explainer, some, contributions=True)
    assert missed(table) < 1e-9
    assert np.flatnonzero((table[ERRORS] > 0).any(axis=1)).tolist() == [3]


def test_a_small_budget_has_contributions_and_a_smaller_one_is_refused():
    X = load_diabetes(as_frame=True).data
    explainer = limes.TabularExplainer(lambda rows: rows["bmi"], X, max_calls=64)
    for contributions in (True, False):
        assert explain_frame(explainer, X.iloc[:3], contributions=contributions)["error"].isna().all()
    with pytest.raises(InputError, match="max_calls=12 is too few"):
        limes.TabularExplainer(lambda rows: rows["bmi"], X, max_calls=12)


def test_impossible_options_are_refused(patients):
    literals = limes.Literals.fit(patients[0], bins=2)
    rules = limes.SparseExplainer(Ridge().fit(*patients), k=1, literals=literals)
    assert "base" not in explain_frame(rules, patients[0].iloc[:2])
    with pytest.raises(InputError, match="a rule has no contributions"):
        explain_frame(rules, patients[0].iloc[:2], contributions=True)
    with pytest.raises(InputError, match="contributions='yes'"):
        explain_frame(sampled(patients), patients[0].iloc[:2], contributions="yes")


def test_column_names_never_collide():
    X = pd.DataFrame(
        {"x": [0.0, 1.0, 2.0, 3.0], "error_x": [1.0, 0.0, 1.0, 0.0], "contribution_x": 4 * [1.0]}
    )
    explainer = limes.TabularExplainer(Ridge().fit(X, X["x"]), X)
    table = explain_frame(explainer, X, contributions=True)
    assert len({*table}) == len([*table]) == 11 + 4 * 3


def test_a_folder_has_contributions_in_all_parts_or_none(patients, tmp_path):
    X, y = patients
    X.to_parquet(tmp_path / "in.parquet", index=False)
    explainer = limes.TabularExplainer(Ridge().fit(X, y), X)

    def run(**options):
        return explain_files(
            Source.of(tmp_path / "in.parquet"),
            explainer,
            tmp_path / "out",
            run={},
            rows_per_part=100,
            progress=False,
            **options,
        )

    summary = run()
    table = read(tmp_path / "out")
    assert missed(table) < 1e-9
    for name in COLUMNS:
        mean, error = summary.mean_contributions[name]
        assert mean == pytest.approx(table[f"contribution_{name}"].abs().mean(), rel=1e-12)
        assert error == 0
    assert run().resumed == len(X)
    for options, now in (({"contributions": False}, "none"), ({"contributions": True}, "all")):
        with pytest.raises(InputError, match=f"contributions was 'exact', is '{now}'"):
            run(**options)


def test_the_joint_law_has_exact_contributions_of_read_models(patients):
    X, y = patients
    explainer = limes.TabularExplainer(DecisionTreeRegressor(max_depth=4).fit(X, y), X, law="joint")
    whole = by_parts(X.iloc[:40].reset_index(drop=True), explainer, [])
    assert missed(whole) < 1e-9
    assert not {*ERRORS} & {*whole}
    cut = by_parts(X.iloc[:40].reset_index(drop=True), explainer, [1, 2, 9])
    pd.testing.assert_frame_equal(whole, cut, check_exact=True)


@pytest.mark.parametrize(("option", "columns"), [(False, []), (True, ["base", *CONTRIBUTIONS, *ERRORS])])
def test_the_explainers_own_option_is_the_default(patients, option, columns):
    X, y = patients
    explainer = limes.TabularExplainer(Ridge().fit(X, y), X, contributions=option)
    table = explain_frame(explainer, X.iloc[:3])
    assert [name for name in table if name == "base" or "contribution" in name] == columns
    assert "base" in explain_frame(explainer, X.iloc[:3], contributions=True)
    assert "base" not in explain_frame(explainer, X.iloc[:3], contributions=False)
