"""Rows that an exact expectation refuses are sampled separately; the others stay exact."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from tests.oracle import EXACT

import limes
from computed_once import ComputedOnce
from limes.exceptions import ModelError

COLUMNS = ["a", "b"]


def tables():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2)) * 30
    return pd.DataFrame(x, columns=COLUMNS), (x.sum(axis=1) + rng.normal(size=60) > 0).astype(int)


X, Y = tables()


def steep(scale=1.0):
    """A logistic model whose margin spreads so far that its quadrature keeps no nine digits somewhere."""
    model = LogisticRegression().fit(X, Y)
    model.coef_, model.intercept_ = np.full((1, 2), scale), np.zeros(1)
    return model


def mean_and_contrasts(model, row, bandwidth):
    """β on the tensor grid of the background's own values: law="empirical" has no others."""
    matrix = X.to_numpy()
    edges = [np.quantile(column, [0.25, 0.5, 0.75]) for column in matrix.T]
    cells = [np.searchsorted(e, column, side="left") for e, column in zip(edges, matrix.T, strict=True)]
    at = [np.searchsorted(e, value, side="left") for e, value in zip(edges, row, strict=True)]
    same = [(cell == its).astype(float) for cell, its in zip(cells, at, strict=True)]
    weight = np.multiply.outer(*(np.exp(-(1.0 - z) / (2.0 * bandwidth**2)) for z in same))
    grid = np.stack(np.meshgrid(*matrix.T, indexing="ij"), axis=-1).reshape(-1, 2)
    f = model.predict_proba(pd.DataFrame(grid, columns=COLUMNS))[:, 1].reshape(weight.shape)
    contrasts = []
    for axis, z in enumerate(same):
        z = z[:, None] if axis == 0 else z[None]
        inside, outside = weight * z, weight * (1.0 - z)
        contrasts.append((inside * f).sum() / inside.sum() - (outside * f).sum() / outside.sum())
    return np.array(contrasts)


def test_refused_rows_are_sampled_and_the_others_exact():
    model = steep()
    explanation = limes.TabularExplainer(model, X, bandwidth=0.2, law="empirical", max_calls=4096)(X)
    methods = np.array(explanation.row_methods)
    assert set(methods) == {"exact", "sampled"}
    assert explanation.method == "sampled"
    assert explanation.model_calls == 0  # the read model answers
    account = explanation.contributions  # exact at some rows, walked to behind the link at others
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, rtol=1e-9, atol=1e-12)
    for i, row in enumerate(X.to_numpy()):
        truth = mean_and_contrasts(model, row, 0.2)
        difference, errors = (
            explanation.coefficients.values[i, :, 1] - truth,
            explanation.coefficients.standard_errors[i, :, 1],
        )
        if methods[i] == "exact":
            assert not errors.any()
            assert difference == pytest.approx(0.0, abs=1e-9)
            assert not any("expectation is not exact" in text for text in explanation.row_warnings[i])
        else:
            assert (errors > 0).all()
            assert (np.abs(difference) < 5.0 * errors).all()
            (text,) = (w for w in explanation.row_warnings[i] if w.code == "sampled")
            assert "its expectation is not exact: an expectation of about" in text
            assert not explanation.row_converged[i] or (errors.max() < 0.015 * np.abs(truth).max() * 1.2)
    count = int((methods == "sampled").sum())
    assert f"{count} of 60 rows have no exact expectation" in explanation.reason


def of_three_classes():
    model = LogisticRegression().fit(X, np.digitize(X.sum(axis=1), [-30, 30]))
    model.coef_ *= 0.6
    return model


# a model, options under which it is read, and a row that is exact and one that is refused
REFUSED = ComputedOnce(
    {
        "a narrow bandwidth": lambda: (steep(), {"bandwidth": 0.2}, (0, 4)),
        "the law of values": lambda: (steep(), {"bandwidth": 0.2, "law": "empirical"}, (0, 4)),
        "a held column": lambda: (steep(), {"bandwidth": 0.2, "hold": ["a"]}, (0, 4)),
        "ridge": lambda: (steep(), {"bandwidth": 0.2, "ridge": 1.0}, (0, 4)),
        "three classes": lambda: (of_three_classes(), {"bandwidth": 0.2}, (0, 3)),
        "smooth weights": lambda: (steep(5.0), {"bandwidth": 0.2, "weights": "euclidean"}, (0, 4)),
        "slopes": lambda: (steep(5.0), {"bandwidth": 0.1, "bins": None}, (0, 5)),
    }
)


@pytest.mark.parametrize("name", REFUSED)
def test_auto_raises_for_no_row(name):
    model, options, positions = REFUSED[name]
    rows = X.iloc[list(positions)]
    explainer = limes.TabularExplainer(model, X, max_calls=512, rng=0, **options)
    explanation = explainer(rows, progress=False)
    assert explanation.row_methods == ("exact", "sampled")
    assert np.isfinite(explanation.coefficients.values).all()
    assert [errors.any() for errors in explanation.coefficients.standard_errors] == [False, True]
    # a row's numbers depend on no other row of the call
    alone = explainer(rows.iloc[[1]], progress=False)
    assert alone.coefficients.values == pytest.approx(
        explanation.coefficients.values[[1]], rel=EXACT, abs=1e-300
    )
    # what is computed when it is first read
    assert explanation.fidelity.shape == explanation.fidelity_errors.shape
    assert len(explanation[1].effects) == explanation[1].coefficients.values.size


IRIS = load_iris()


def classes_of_iris():
    """Three classes so far apart that what a column does last to the first one keeps no nine digits."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e3, max_iter=3000))
    return model.fit(IRIS.data, IRIS.target)


def test_a_row_whose_account_is_refused_is_computed_once(monkeypatch):
    from internals import KeptRows, SoftmaxExpectation

    model, rows = classes_of_iris(), IRIS.data[[125, 70]]
    explainer = limes.TabularExplainer(model, IRIS.data, max_calls=512, rng=0)
    computed, tabulated = [], []
    of, tabulate = KeptRows.of, SoftmaxExpectation._tabulate

    def counted(family, x, cells, t):
        computed.append(len(x))
        return of(family, x, cells, t)

    def counted_tables(self, columns):
        tabulated.append(sum(column.size for column in columns))
        return tabulate(self, columns)

    monkeypatch.setattr(KeptRows, "of", counted)
    monkeypatch.setattr(SoftmaxExpectation, "_tabulate", counted_tables)
    account = explainer.contributions(rows[:1], progress=False).contributions
    assert account.standard_errors.any()
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict_proba(rows[:1]), rtol=1e-9, atol=1e-12)
    assert computed == [1]
    # tables of four cells a column, which all rows share, and none of the row's laws
    assert tabulated == [16]
    # among others it is refused with them, and alone
    both = explainer.contributions(rows, progress=False).contributions
    assert computed == [1, 2, 1, 1]
    assert both.standard_errors.any(axis=(1, 2)).tolist() == [True, False]
    np.testing.assert_array_equal(both.values[:1], account.values)


@pytest.fixture(scope="module")
def mixed():
    explainer = limes.TabularExplainer(steep(), X, bandwidth=0.2, max_calls=1024, rng=0)
    return explainer, explainer(X, progress=False)


def test_each_row_keeps_its_method(mixed):
    explainer, explanation = mixed
    first = {kind: explanation.row_methods.index(kind) for kind in ("exact", "sampled")}
    for kind, i in first.items():
        one = explanation[i]
        assert (one.method, one.row_methods) == (kind, (kind,))
        assert bool(one.coefficients.standard_errors.any()) == (kind == "sampled")
    assert explanation[first["exact"]].reason == ""
    again = limes.Explanation.from_json(explanation.to_json())
    assert again.row_methods == explanation.row_methods
    copy = pickle.loads(pickle.dumps(explainer))(X, progress=False)
    assert copy.row_methods == explanation.row_methods
    assert copy.coefficients.values == pytest.approx(explanation.coefficients.values, rel=EXACT)
    assert explanation.provenance["tolerance"] == "1.5%"


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_a_long_table_has_the_method_of_each_row(mixed, layout):
    explainer, explanation = mixed
    frame = limes.scale.explain_frame(explainer, X, layout=layout)
    assert frame["error"].isna().all()
    each = len(frame) // len(X)
    assert frame["method"].tolist() == [method for method in explanation.row_methods for _ in range(each)]


def test_pages_and_diagnoses_take_such_rows(mixed):
    _, explanation = mixed
    some = explanation[[0, explanation.row_methods.index("sampled")]]
    assert "no exact expectation" in some.to_html()
    assert len(limes.diagnose(some)) == 2
    assert len(some.interactions(1)) == 4


def test_exact_alone_names_the_row_or_skips_it(mixed):
    _, explanation = mixed
    refused = [i for i, method in enumerate(explanation.row_methods) if method == "sampled"]
    options = {"bandwidth": 0.2, "method": "exact"}
    with pytest.raises(
        ModelError, match=rf"row {refused[0]} has no exact expectation.*method='auto'"
    ) as failure:
        limes.TabularExplainer(steep(), X, **options)(X)
    assert len(failure.value.partial) == len(X) - len(refused)
    kept = limes.TabularExplainer(steep(), X, **options, errors="row")(X)
    assert [name for name, _ in kept.errors] == refused
    assert list(kept.ids) == [i for i in range(len(X)) if i not in refused]
    assert kept.method == "exact"
    assert kept.coefficients.values == pytest.approx(
        np.delete(explanation.coefficients.values, refused, axis=0), rel=EXACT, abs=1e-15
    )
    with pytest.raises(ModelError, match=f"row {refused[0]} has no exact"):
        limes.TabularExplainer(steep(), X, **options, errors="row")(X.iloc[[refused[0]]])


def test_a_rule_is_sampled_around_a_row_that_is_refused(monkeypatch):
    """Its neighbourhood hardly ever refuses a row: the refusal is put in its place."""
    from internals import LinkedExpectation

    literals = limes.Literals.fit(X)
    options = {"literals": literals, "k": 1, "output": 1, "samples": 400, "fresh": 400, "rng": 0}
    explainers = {
        kind: limes.SparseExplainer(steep(0.1), method=kind, **options) for kind in ("auto", "exact")
    }
    whole, refused = LinkedExpectation.moments, X.to_numpy()[3]

    def moments(self, design, row=None):
        if row is not None and np.array_equal(row, refused):
            raise ModelError("known to 1e-3 only")
        return whole(self, design, row)

    monkeypatch.setattr(LinkedExpectation, "moments", moments)
    explanation = explainers["auto"](X.iloc[2:5])
    assert explanation.row_methods == ("exact", "sampled", "exact")
    assert "sampled, as its expectation is not exact: known to 1e-3 only" in explanation.row_warnings[1]
    assert not explanation.coefficients.standard_errors[[0, 2]].any()
    assert explanation.coefficients.standard_errors[1].any()
    with pytest.raises(ModelError, match="row 3 has no exact expectation: known to 1e-3 only"):
        explainers["exact"](X.iloc[2:5])


def test_a_row_that_the_form_has_no_number_for_is_an_error():
    """The model itself refuses it: Box-Cox takes positive numbers only."""
    X = np.random.default_rng(0).lognormal(size=(60, 2))
    model = make_pipeline(PowerTransformer("box-cox"), Ridge()).fit(X, X.sum(axis=1))
    explainer = limes.TabularExplainer(model, X, law="empirical")
    assert explainer.method == "exact"
    with pytest.raises(ModelError, match=r"^row 1: the model has no finite answer, but"):
        explainer([[1.0, 2.0], [0.0, 1.0]])
    lines = limes.scale.explain_frame(explainer, pd.DataFrame([[1.0, 2.0], [0.0, 1.0]], columns=["x0", "x1"]))
    assert lines["error"].isna().tolist() == [True, False]
