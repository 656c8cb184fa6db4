"""Categories that the background lacks: explained as the model treats them, or an error of the row."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import limes
import oracle
from limes.exceptions import CellError

rng = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {name: rng.choice([*levels], 200) for name, levels in (("race", "abc"), ("sex", "fm"), ("job", "xyz"))}
)
ANSWERS = 2.0 * (TABLE.race == "a") * (TABLE.sex == "f") + (TABLE.job == "x") + 0.1 * rng.normal(size=200)
ROWS = TABLE.iloc[:4].copy()
ROWS.loc[1, "race"] = "Martian"
IGNORES = OneHotEncoder(handle_unknown="ignore")
RATIO = np.exp(-0.5 / (0.75 * np.sqrt(3)) ** 2)


def pipeline(model, encoder=IGNORES, y=ANSWERS):
    return make_pipeline(make_column_transformer((encoder, [*TABLE])), model).fit(TABLE, y)


def enumerated(predict, row):
    """Means E[f | cell] by enumeration, as contrasts of the row's cells with the others, (d,)."""
    shares = {name: TABLE[name].value_counts(normalize=True) for name in TABLE}

    def law(name, inside):
        """Levels and probabilities: of the row's own cell alone, of the others alone, or of all."""
        levels = [*shares[name].index]
        weights = shares[name].to_numpy() * np.where(np.array(levels) == row[name], 1.0, RATIO)
        if inside is not None:
            weights = weights * (np.array(levels) == row[name] if inside else np.array(levels) != row[name])
        return ([row[name]], np.ones(1)) if inside else (levels, weights / weights.sum())

    def mean(column, inside):
        laws = [law(name, inside if name == column else None) for name in TABLE]
        cells = pd.DataFrame([*itertools.product(*(levels for levels, _ in laws))], columns=[*TABLE])
        weights = np.prod([*itertools.product(*(q for _, q in laws))], axis=1)
        return weights @ predict(cells)

    return np.array([mean(name, True) - mean(name, False) for name in TABLE])


@pytest.mark.parametrize(
    "model", [Ridge(), RandomForestRegressor(5, random_state=0), GradientBoostingRegressor(n_estimators=10)]
)
@pytest.mark.parametrize(
    "encoder", [IGNORES, OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)]
)
def test_a_new_category_is_explained_as_the_model_treats_it(model, encoder):
    model = pipeline(model, encoder)
    explainer = limes.TabularExplainer(model, TABLE)
    explanation = explainer(ROWS, progress=False)
    assert (explanation.method, explanation.conditions[1][0], explanation.data[1][0]) == (
        "exact",
        "race = Martian",
        "Martian",
    )
    expected = np.stack([enumerated(model.predict, row) for _, row in ROWS.iterrows()])
    np.testing.assert_allclose(explanation.coefficients.values, expected, rtol=0, atol=oracle.EXACT)
    np.testing.assert_allclose(explanation.predictions, model.predict(ROWS), rtol=oracle.EXACT)
    # other rows are explained as without it
    others = explainer(ROWS.iloc[[0, 2, 3]], progress=False)
    np.testing.assert_allclose(
        explanation[[0, 2, 3]].coefficients.values,
        others.coefficients.values,
        rtol=oracle.EXACT,
        atol=oracle.EXACT,
    )
    assert limes.diagnose(explanation, progress=False)
    assert "Martian" in explanation.to_html()


def test_classes_and_other_kinds_of_tables():
    model = pipeline(LogisticRegression(), y=ANSWERS > 1)
    expected = limes.TabularExplainer(model, TABLE)(ROWS, progress=False)
    assert expected.method == "exact"

    for kind in (pl.from_pandas, lambda frame: frame.astype("string")):
        explanation = limes.TabularExplainer(model, kind(TABLE))(kind(ROWS), progress=False)
        np.testing.assert_allclose(
            explanation.coefficients.values, expected.coefficients.values, rtol=1e-9, atol=1e-12
        )
    missing = TABLE.copy()
    missing.loc[5, "race"] = None
    model = make_pipeline(make_column_transformer((IGNORES, [*TABLE])), Ridge()).fit(missing, ANSWERS)
    explanation = limes.TabularExplainer(model, missing)(ROWS, progress=False)
    assert explanation.conditions[1][0] == "race = Martian"
    np.testing.assert_allclose(explanation.predictions, model.predict(ROWS), rtol=oracle.EXACT)


REFUSALS = {
    "the encoder": (lambda: pipeline(Ridge(), OneHotEncoder()), TABLE),
    "a black box": (lambda: lambda table: table["race"].str.len().to_numpy(float), TABLE),
    "declared categories": (lambda: pipeline(Ridge()), TABLE.astype("category")),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_value_that_the_model_refuses_is_an_error_of_its_row(refusal):
    make, background = REFUSALS[refusal]
    model = make()
    with pytest.raises(CellError, match="row 1, column 'race': 'Martian' does not occur in the background"):
        limes.TabularExplainer(model, background, max_calls=256)(ROWS, progress=False)
    result = limes.TabularExplainer(model, background, max_calls=256, errors="row")(ROWS, progress=False)
    assert (result.ids, [row for row, _ in result.errors]) == ((0, 2, 3), [1])


def with_codes(table):
    """A table with a column that its dtype lists, one of numbers that an encoder has, and one of booleans."""
    return pd.DataFrame(
        {
            "race": pd.Categorical(table.race, [*"abcd"]),
            "sex": table.sex.map({"f": 3, "m": 7}),
            "job": table.job == "x",
        }
    )


@pytest.mark.parametrize("law", [None, "joint"])
@pytest.mark.parametrize(
    ("column", "new"), [("race", "d"), ("race", "c"), ("sex", 7), ("sex", 5), ("job", True)]
)
def test_categories_of_all_kinds_may_be_new(column, new, law):
    """Only texts were taken: categories that a dtype lists, and codes of an encoder, were refused."""
    whole = with_codes(TABLE)
    before = make_column_transformer((IGNORES, [*whole]))
    model = make_pipeline(before, RandomForestRegressor(5, random_state=0)).fit(whole, ANSWERS)
    background = whole[whole[column] != new].iloc[:12]
    row = whole.iloc[[0]].copy()
    row[column] = pd.Series([new], index=row.index).astype(whole[column].dtype)
    explanation = limes.TabularExplainer(model, background, law=law, bandwidth=np.inf)(row, progress=False)
    assert codes_of(explanation.row_warnings) == [["unseen"]]
    np.testing.assert_allclose(explanation.predictions, model.predict(row), rtol=oracle.EXACT)
    laws = [background[[name]].reset_index(drop=True) for name in whole]
    places = np.array([*itertools.product(range(12), repeat=3)]) if law is None else np.arange(12)[:, None]
    drawn = [its.iloc[places[:, j % places.shape[1]]].reset_index(drop=True) for j, its in enumerate(laws)]

    def worth(kept):
        cells = pd.concat(drawn, axis=1)
        for name in kept:
            cells[name] = pd.Series([row[name].iloc[0]] * len(cells)).astype(whole[name].dtype)
        return model.predict(cells).mean()

    expected = []
    for name in whole:
        first, second = (other for other in whole if other != name)
        gains = [worth([name, *its]) - worth(its) for its in ([], [first], [second], [first, second])]
        expected.append(np.array([2, 1, 1, 2]) @ gains / 6)
    np.testing.assert_allclose(
        explanation.contributions.values[0], expected, rtol=oracle.EXACT, atol=oracle.EXACT
    )


def test_categories_of_polars_may_be_new():
    frame = pl.from_pandas(TABLE).with_columns(
        pl.col("race").cast(pl.Enum([*"abcd"])), pl.col("sex").cast(pl.Categorical)
    )
    model = make_pipeline(make_column_transformer((IGNORES, [*TABLE])), Ridge()).fit(frame, ANSWERS)
    for column, new in (("race", "c"), ("sex", "m")):
        its = pl.col(column).cast(pl.String)
        explainer = limes.TabularExplainer(model, frame.filter(its != new))
        row = frame.filter(its == new).head(1)
        explanation = explainer(row, progress=False)
        np.testing.assert_allclose(explanation.predictions, model.predict(row), rtol=oracle.EXACT)
        assert codes_of(explanation.row_warnings) == [["unseen"]]


def test_rows_lead_from_a_reference_of_other_categories_and_without_a_number():
    """One row as the law has one category a column, and the encoded codes of others were refused."""
    whole = with_codes(TABLE).assign(age=np.where(np.arange(200) % 5 == 0, np.nan, np.arange(200.0)))
    encoder = make_column_transformer((IGNORES, ["race", "sex", "job"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestRegressor(5, random_state=0)).fit(whole, ANSWERS)
    reference = whole.iloc[[1]]
    explanation = limes.TabularExplainer(model, reference=reference)(whole, progress=False)
    account = explanation.contributions
    np.testing.assert_allclose(account.base_values, model.predict(reference)[0], rtol=oracle.EXACT)
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(whole), rtol=oracle.EXACT, atol=oracle.EXACT)


def test_a_new_category_loses_no_row_and_a_bad_cell_loses_its_row():
    rows = ROWS.copy()
    rows.loc[2, "sex"] = None
    result = limes.TabularExplainer(pipeline(Ridge()), TABLE, errors="row")(rows, progress=False)
    assert (result.ids, [row for row, _ in result.errors]) == ((0, 1, 3), [2])
    with pytest.raises(CellError, match="row 2, column 'sex'"):
        limes.TabularExplainer(pipeline(Ridge()), TABLE)(rows, progress=False)


@pytest.mark.parametrize("cell", [pd.NA, {"a": 1}, {1}, ([1],)])
@pytest.mark.parametrize("column", ["race", "sex"])
def test_odd_cells_among_new_categories_name_their_row(column, cell):
    """pandas' NA and cells without a hash ended the search for new categories with a TypeError."""
    table = TABLE.assign(race=pd.Categorical(TABLE.race))
    explainer = limes.TabularExplainer(pipeline(Ridge()), table, errors="row")
    rows = ROWS.astype({"race": object, "sex": object})
    rows.at[2, column] = cell
    rows.at[1, "race"] = TABLE.race[0]
    result = explainer(rows, progress=False)
    assert result.ids == (0, 1, 3)
    ((row, error),) = result.errors
    assert row == 2
    assert f"column {column!r}: {cell!r} is " in error


def test_a_model_that_is_fitted_again_is_read_again():
    model = pipeline(Ridge())
    explainer = limes.TabularExplainer(model, TABLE)
    explainer(ROWS, progress=False)
    model.fit(TABLE, -ANSWERS)
    result = explainer(ROWS, progress=False)
    np.testing.assert_allclose(result.predictions, model.predict(ROWS), rtol=oracle.EXACT)
    expected = np.stack([enumerated(model.predict, row) for _, row in ROWS.iterrows()])
    np.testing.assert_allclose(result.coefficients.values, expected, rtol=0, atol=oracle.EXACT)


def codes_of(rows):
    return [[warning.code for warning in row if warning.code in ("outside", "unseen")] for row in rows]


@pytest.mark.parametrize("groups", [None, {"who": ["race", "sex"]}])
def test_whoever_explains_a_category_without_a_row_says_so(groups):
    """A service had the contributions of a category that the background lacks without any code."""
    explainer = limes.TabularExplainer(pipeline(Ridge()), TABLE, groups=groups)
    expected = [[], ["unseen"], [], []]
    explanation = explainer(ROWS, progress=False)
    assert codes_of(explanation.row_warnings) == expected
    assert codes_of(explainer.contributions(ROWS, progress=False).contributions.row_warnings) == expected
    assert "race = Martian does not occur in the background" in str(explanation[1])
    explain, rows = explainer.compiled(), ROWS.to_dict("records")
    assert [list(codes) for codes in explain(ROWS).warnings] == expected
    assert [list(its.warnings[0]) for its in explain.each(rows)] == expected
    assert [list(explain(row).warnings[0]) for row in rows] == expected
    assert codes_of(explainer.between(ROWS.iloc[[1]], ROWS.iloc[[0]]).row_warnings) == [["unseen"]]
