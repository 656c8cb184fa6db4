"""Columns of many levels behind an encoder and trees: against enumeration of all rows of the law."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

import limes
from internals import forest
from oracle import EXACT

LEVELS, ROWS = 400, 3000
RNG = np.random.default_rng(0)
# one level has nearly half of the rows, and most occur once or twice
CODE = np.where(RNG.random(ROWS) < 0.45, 0, RNG.integers(LEVELS, size=ROWS))
TABLE = pd.DataFrame({"city": [f"c{code}" for code in CODE], "kind": RNG.choice(list("xyz"), size=ROWS)})
Y = np.sin(CODE) + (TABLE["kind"] == "x") * np.cos(3 * CODE) + 0.1 * RNG.normal(size=ROWS)


def coefficients(model, row, bandwidth):
    """E_w[f | z_j = 1] - E_w[f | z_j = 0], and E_w f, by all combinations of levels."""
    laws = []
    for name in TABLE:
        share = TABLE[name].value_counts(normalize=True)
        laws.append(share * np.where(share.index == row[name], 1.0, np.exp(-0.5 / bandwidth**2)))
    city, kind = (law / law.sum() for law in laws)
    grid = pd.DataFrame({"city": np.repeat(city.index, len(kind)), "kind": np.tile(kind.index, len(city))})
    f = model.predict(grid).reshape(len(city), len(kind))
    betas = []
    for by_level, law, value in (
        (f @ kind.to_numpy(), city, row["city"]),
        (city.to_numpy() @ f, kind, row["kind"]),
    ):
        same = np.asarray(law.index == value)
        q = law.to_numpy()
        betas.append(by_level[same][0] - by_level[~same] @ q[~same] / q[~same].sum())
    return np.array(betas), city.to_numpy() @ f @ kind.to_numpy()


@pytest.mark.parametrize("shared", [True, False], ids=["shared tables", "tables of the rows' cells"])
@pytest.mark.parametrize(
    "encoder",
    [
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        OneHotEncoder(handle_unknown="ignore"),
        TargetEncoder(),
    ],
    ids=lambda encoder: type(encoder).__name__,
)
def test_forests_behind_encoders_of_many_levels_are_exact(encoder, shared, monkeypatch):
    if not shared:
        monkeypatch.setattr(forest, "_FEW_CELLS", 100)
        monkeypatch.setattr(forest, "_LARGEST_OF_MANY", 1)
    columns = make_column_transformer((encoder, ["city"]), (OneHotEncoder(), ["kind"]))
    model = make_pipeline(columns, RandomForestRegressor(5, max_depth=9, random_state=0)).fit(TABLE, Y)
    explainer = limes.TabularExplainer(model, TABLE, method="exact", bandwidth=0.9)
    rows = TABLE.iloc[[*range(20), int(np.flatnonzero(CODE == 0)[0])]]
    explanation = explainer(rows, progress=False)
    size = np.abs(Y).max()
    for i in range(len(rows)):
        betas, mean = coefficients(model, rows.iloc[i], 0.9)
        np.testing.assert_allclose(explanation.coefficients.values[i], betas, atol=EXACT * size, rtol=0)
    account = explanation.contributions
    np.testing.assert_allclose(account.base_values[-1], mean, atol=EXACT * size, rtol=0)
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, atol=EXACT * size, rtol=0)


def test_a_linear_model_of_many_levels_is_exact():
    columns = make_column_transformer((OneHotEncoder(), ["city", "kind"]))
    model = make_pipeline(columns, Ridge()).fit(TABLE, Y)
    explanation = limes.TabularExplainer(model, TABLE, method="exact", bandwidth=0.9)(
        TABLE[:5], progress=False
    )
    for i in range(5):
        betas, _ = coefficients(model, TABLE.iloc[i], 0.9)
        np.testing.assert_allclose(
            explanation.coefficients.values[i], betas, atol=EXACT * np.abs(Y).max(), rtol=0
        )


def test_more_levels_than_4096_are_read():
    many = pd.DataFrame({"city": [f"c{i % 5000}" for i in range(6000)], "x": RNG.normal(size=6000)})
    encoder = make_column_transformer((OrdinalEncoder(), ["city"]), remainder="passthrough")
    forest_of_many = RandomForestRegressor(3, max_depth=6, random_state=0)
    model = make_pipeline(encoder, forest_of_many).fit(many, np.sin(np.arange(6000) % 5000))
    explanation = limes.TabularExplainer(model, many, method="exact")(many[:2], progress=False)
    account = explanation.contributions
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(many[:2]), atol=EXACT, rtol=0)
