"""Helpers of boosted trees' tests: hostile rows, tables with categories, coefficients by enumeration."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pandas as pd

import limes
import oracle
from internals import (
    BinWeights,
    CannotRead,
    ModelCaller,
    Rows,
    categorical,
    exact_expectation,
    fit_rows,
    read_output,
    resolve,
)
from limes.designs import ProductDesign, ProductFamily

EXTREMES = np.array([0.0, -0.0, 1e-35, -1e-35, 1e-40, 1e30, -1e30])


def numbers(n=300, d=3, seed=0, missing=0.15):
    """A table of numbers with ties, zeros and missing values, and a target with interactions."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x[:, 0] = np.round(x[:, 0], 1)
    x[rng.random(n) < 0.2, 1] = 0.0
    y = x[:, 0] * (1 + x[:, 1]) + np.where(x[:, -1] > 0.3, 2.0, -1.0) + 0.1 * rng.normal(size=n)
    x[rng.random((n, d)) < missing] = np.nan
    return x, y


def edge_rows(form, x, count=1500, seed=1, extremes=EXTREMES, missing=True):
    """Rows on thresholds, on float64 and float32 numbers beside them, on extremes, zeros and NaN."""
    rng = np.random.default_rng(seed)
    rows = x[rng.integers(len(x), size=count)].copy()
    for j in range(x.shape[1]):
        cuts = form.threshold[form.feature == j]
        cuts = cuts[np.isfinite(cuts) & (np.abs(cuts) < 1e38)]
        single = cuts.astype(np.float32)
        beside = [np.nextafter(single, np.float32(s)).astype(float) for s in (np.inf, -np.inf)]
        places = np.concatenate([cuts, single.astype(float), *beside, *(0.5 * (single + b) for b in beside)])
        places = np.concatenate(
            [places, np.nextafter(places, -np.inf), np.nextafter(places, np.inf), extremes]
        )
        chosen = rng.random(count) < 0.7
        rows[chosen, j] = rng.choice(places, chosen.sum())
        if missing:
            rows[rng.random(count) < 0.1, j] = np.nan
    return rows


def assert_same(form, expected, x, tolerance):
    result, expected = form.predict(x), np.asarray(expected, dtype=float)
    assert result.shape == expected.shape
    assert len(x) >= 1000
    scale = max(1.0, np.abs(expected).max())
    worst = np.argmax(np.abs(result - expected).reshape(len(x), -1).max(axis=1))
    assert np.abs(result - expected).max() <= tolerance * scale, (x[worst], result[worst], expected[worst])


def assert_reads(model, x, *, output=None, tolerance=1e-12, **rows):
    """The form of a model, after it was compared with the model's own answers."""
    form = limes.models.read(model, output)
    assert not isinstance(form, limes.models.forms.BlackBox), form.reason
    x = np.concatenate([x, edge_rows(form, x, **rows)])
    assert_same(form, ModelCaller(model, resolve(model, output), np.asarray)(x), x, tolerance)
    if isinstance(form, limes.models.forms.Forest):
        assert_paths_agree(form, x)
    return form


# Values that a column of numbers or categories may hold although they are not expected
HOSTILE = np.array([-np.inf, -1.0, 0.5, 2.0**31, 1e300, np.inf, np.nan])


def assert_paths_agree(form, x, count=24, seed=2):
    """``predict``, ``reduce`` and the expectation answer the same at rows with hostile values.

    Explanations come from the expectation: under a design of one atom a column it must give f(row).
    """
    rng = np.random.default_rng(seed)
    rows = x[rng.integers(len(x), size=count)].copy()
    hostile = rng.random(rows.shape) < 0.3
    rows[hostile] = rng.choice(HOSTILE, hostile.sum())
    expected = form.predict(rows)
    allowed = 1e-12 * max(1.0, np.abs(expected).max()) * max(1, form.roots.size) ** 0.5
    np.testing.assert_allclose(form.reduce().predict(rows), expected, rtol=0, atol=allowed)
    family = ProductFamily(tuple(categorical(column) for column in rows.T), BinWeights(1e-3))
    for few in (rows, rows[:5]):  # many rows and few go different ways
        its, predictions = Rows(family, few, family.cells(few)), form.predict(few)
        quiet = {"progress": lambda _: nullcontext(id)}
        fitted = fit_rows(exact_expectation(form), its, predictions, **quiet)
        np.testing.assert_allclose(fitted.at_instance, predictions, rtol=0, atol=allowed)


def reason(model, output=None):
    """Why a model is left to sampling."""
    form = limes.models.read(model, output)
    assert isinstance(form, limes.models.forms.BlackBox)
    return form.reason


# -- tables with categories -------------------------------------------------------------------------------

LEVELS = {
    "color": ["blue", "green", "red", "violet"],
    "size": ["S", "M", "L"],  # ordered, not by the alphabet
    "code": [3, 10, 30],
}


def mixed(n=300, seed=0, missing=True):
    """Numbers, texts, ordered categories, and numbers that are categories, with a target."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.normal(size=n), *(rng.integers(len(v), size=n) for v in LEVELS.values())])
    y = codes[:, 0] + 3.0 * (codes[:, 1] == 2) * (codes[:, 0] > 0) - 2.0 * (codes[:, 3] == 1) + codes[:, 2]
    if missing:
        codes[rng.random(n) < 0.1, 0] = np.nan
        codes[rng.random(n) < 0.1, 1] = np.nan
    return as_frame(codes), y


def as_frame(codes):
    """A pandas frame of which ``codes`` has the places of the categories."""
    table = {"number": codes[:, 0]}
    for j, (name, levels) in enumerate(LEVELS.items(), start=1):
        at = np.where(np.isnan(codes[:, j]), -1, codes[:, j]).astype(int)
        table[name] = pd.Categorical.from_codes(at, levels, ordered=name == "size")
    return pd.DataFrame(table)


def as_codes(frame):
    """The other way."""
    parts = [frame["number"].to_numpy(dtype=float)]
    for name in LEVELS:
        at = frame[name].cat.codes.to_numpy(dtype=float)
        parts.append(np.where(at < 0, np.nan, at))
    return np.column_stack(parts)


def as_size(frame):
    return frame["size"].cat.codes.to_numpy(dtype=float)


def assert_coefficients_of_frame(model, frame, *, output=None, tolerance=oracle.EXACT, rows=2):
    """Explained end to end, and by enumeration of all cells of the background: categories, NaN and all.

    The background's own values are the law inside a bin, so that the grid is finite and the model itself
    can be asked everywhere.
    """
    explainer = limes.TabularExplainer(model, frame, output=output, method="exact", law="empirical")
    explanation = explainer(frame[:rows])
    codes = as_codes(frame)
    wanted = resolve(model, output)
    for i in range(rows):
        truth = enumerated(codes, codes[i], lambda x: ModelCaller(model, wanted, as_frame)(x))
        assert oracle.error(explanation.coefficients.values[i], truth.coef, truth.size) < tolerance
        assert oracle.error(explanation.coefficients.intercepts[i], truth.intercept, truth.size) < tolerance
    return explanation


def assert_coefficients(model, x, *, output=None, tolerance=oracle.EXACT, rows=2):
    """The same for a table of numbers."""
    result = limes.TabularExplainer(model, x, output=output, method="exact", law="empirical")(x[:rows])
    wanted = resolve(model, output)
    for i in range(rows):
        truth = enumerated(x, x[i], ModelCaller(model, wanted, np.asarray), categorical=())
        assert oracle.error(result.coefficients.values[i], truth.coef, truth.size) < tolerance
    return result


def enumerated(x, row, f, categorical=(1, 2, 3)):
    """The surrogate at a row on the grid of all values of the background, cells being quartile bins."""
    columns, cells = [], []
    for j in range(x.shape[1]):
        values, counts = np.unique(x[:, j], return_counts=True)
        present = x[~np.isnan(x[:, j]), j]
        edges = np.unique(np.percentile(present, [25, 50, 75]))
        cell = values if j in categorical else np.array([(edges < v).sum() for v in values], dtype=float)
        cell = np.where(np.isnan(values), 99.0, cell)
        same = (values == row[j]) | (np.isnan(values) & np.isnan(row[j]))
        cells.append(cell[same][0])
        column = oracle.atoms_column(values, counts, cell)
        columns.append(oracle.bin_weighted(column, cells[-1], 0.75 * np.sqrt(x.shape[1])))
    return oracle.truth(columns, f, cells)


def assert_limit(form, f, seed=0, tolerance=oracle.EXACT):
    """β under truncated normals in bins, against a grid with one point between two thresholds."""
    rng = np.random.default_rng(seed)
    edges, means, stds, columns, cells = [], [], [], [], []
    instance = rng.normal(size=form.size)
    for j in range(form.size):
        cuts = form.threshold[form.feature == j]
        edges.append(np.sort(rng.normal(size=5)) + np.array([-3, -1, 0, 1, 3]))
        means.append(rng.uniform(edges[j][:-1], edges[j][1:]))
        stds.append(rng.uniform(0.2, 2.0, 4))
        column = oracle.binned_column(edges[j], means[j], stds[j], breaks=cuts)
        cells.append(oracle.bin_of(edges[j], instance[j]))
        columns.append(oracle.bin_weighted(column, cells[j], 0.7).collapsed(cuts))
    truth = oracle.truth(columns, f, cells)
    surrogate = limes.limit(ProductDesign.from_bins(edges, means, stds, instance, 0.7), form)
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < tolerance
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < tolerance


def read_frame(model, frame, output=None):
    """The form of a model on a frame, as the explainer reads it, or the black box that it stays."""
    from internals import Table

    table = Table.fit(frame)
    try:
        return read_output(model, resolve(model, output), table.schema), table
    except CannotRead as error:
        return limes.models.forms.BlackBox(model, str(error)), table


def reason_of(model, frame):
    """Why a model is not read where nothing is known of the user's columns."""
    form = limes.models.read(model)
    assert isinstance(form, limes.models.forms.BlackBox), frame
    return form.reason
