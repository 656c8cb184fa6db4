"""The number of background rows that a rule covers, and the rules of several rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes
from limes.exceptions import InputError

X, Y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
MODEL = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, Y)
LITERALS = limes.Literals.fit(X, bins=4)


def holds(condition, frame):
    """Rows of which a condition such as ``23.2 < bmi <= 25.7`` holds, with pandas' own parser."""
    return frame.eval(condition).to_numpy()


def test_coverage_is_the_share_of_rows_of_which_all_facts_hold():
    explanation = limes.SparseExplainer(MODEL, k=2, literals=LITERALS)(X.iloc[:8])
    for i in range(len(explanation)):
        one = explanation[i]
        facts = [one.conditions[0][j] for j in np.flatnonzero(one.coefficients.values[0])]
        assert len(facts) == 2
        counted = np.logical_and.reduce([holds(fact, X) for fact in facts])
        # conditions are rounded to be read: rows next to a cut may be counted on the other side
        assert one.certificate.coverage == pytest.approx(counted.mean(), abs=2 / len(X))
        assert one.certificate.coverage >= 1 / len(X)
    of_first = explanation[0].certificate
    counted = f"in {round(of_first.coverage * len(X))} of the background's {len(X)} rows"
    assert counted in " ".join(str(of_first).split())


def test_coverage_of_literals_that_flip():
    signs = LITERALS.transform(X)
    explanation = limes.SparseExplainer(
        lambda z: z[:, 0] - 0.5 * z[:, 5], k=2, literals=LITERALS, neighbourhood="flips"
    )(X.iloc[[3]])
    chosen = np.flatnonzero(explanation.coefficients.values[0])
    counted = (signs[:, chosen] == signs[3, chosen]).all(axis=1).mean()
    assert explanation.certificate.coverage == counted


def test_without_a_background_there_is_no_coverage():
    explanation = limes.SparseExplainer(lambda z: z[:, 0], k=1)([[1, -1]])
    assert explanation.certificate.coverage is None
    assert "coverage" not in str(explanation.certificate)
    again = limes.Explanation.from_json(explanation.to_json())
    assert again.certificate.coverage is None


def test_rules_of_several_rows():
    explanation = limes.SparseExplainer(MODEL, k=2, literals=LITERALS)(X.iloc[:3])
    assert explanation.rules() == tuple(explanation[i].rule() for i in range(3))
    with pytest.raises(InputError, match="SparseExplainer"):
        limes.TabularExplainer(MODEL, X)(X.iloc[:2]).rules()
    assert isinstance(pd.Series(explanation.rules()).iloc[0], str)


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_a_table_of_rules(layout):
    explainer = limes.SparseExplainer(MODEL, k=2, literals=LITERALS)
    frame = X.iloc[:3].copy()
    frame.loc[1, "bmi"] = np.inf
    result = limes.scale.explain_frame(explainer, frame, layout)
    alone = explainer(X.iloc[[0, 2]])
    by_row = result.groupby("row").first()
    assert by_row["rule"].isna().tolist() == by_row["error"].notna().tolist() == [False, True, False]
    assert by_row["rule"].dropna().tolist() == list(alone.rules())
    if layout == "wide":
        columns = [f"value_{name}" for name in X.columns]
        np.testing.assert_array_equal(by_row.loc[[0, 2], columns], alone.coefficients.values)


def test_a_table_of_rules_about_literals_that_flip_is_refused():
    explainer = limes.SparseExplainer(lambda z: z[:, 0], k=1, literals=LITERALS, neighbourhood="flips")
    with pytest.raises(InputError, match="features are literals"):
        limes.scale.explain_frame(explainer, X)
