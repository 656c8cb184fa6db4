"""Input of series explainers: dtypes, indices, layouts, answers. It is explained right, or refused.

The oracle is arithmetic: the mean of a series falls by a segment's share where the segment is 0.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import limes
from limes.exceptions import InputError, ModelError

rng = np.random.default_rng(0)
S = rng.normal(size=40)
M = rng.normal(size=(40, 2))
HOURS = pd.date_range("2024-01-01", periods=40, freq="h")
FOUR = {"count": 4, "fill": 0.0, "contributions": False}


def mean(batch):
    batch = np.asarray(batch, dtype=float)
    return batch.reshape(len(batch), -1).mean(axis=1)


def expected(values):
    values = np.asarray(values, dtype=float).reshape(40, -1)
    return np.array([values[i : i + 10].sum() / values.size for i in range(0, 40, 10)])


# series, their numbers, and the name of the first segment
SERIES = {
    "a column": (S[:, None], S, "0 to 9"),
    "a list": (S.tolist(), S, "0 to 9"),
    "a tuple": (tuple(S.tolist()), S, "0 to 9"),
    "single": (S.astype(np.float32), S.astype(np.float32), "0 to 9"),
    "half": (S.astype(np.float16), S.astype(np.float16), "0 to 9"),
    "bytes": ((S * 10).astype(np.int8), (S * 10).astype(np.int8), "0 to 9"),
    "unsigned": ((S * 10 + 90).astype(np.uint8), (S * 10 + 90).astype(np.uint8), "0 to 9"),
    "booleans": (S > 0, S > 0, "0 to 9"),
    "big-endian": (S.astype(">f8"), S, "0 to 9"),
    "strided": (np.repeat(S, 2)[::2], S, "0 to 9"),
    "read-only": (np.frombuffer(S.tobytes()), S, "0 to 9"),
    "hours": (pd.Series(S, index=HOURS), S, "2024-01-01 00:00 to 2024-01-01 09:00"),
    "hours of a zone": (
        pd.Series(S, index=HOURS.tz_localize("Asia/Tokyo")),
        S,
        "2024-01-01 00:00:00+09:00 to 2024-01-01 09:00:00+09:00",
    ),
    "months": (
        pd.Series(S, index=pd.period_range("2020-01", periods=40, freq="M")),
        S,
        "2020-01 to 2020-10",
    ),
    "Float64": (pd.Series(S, dtype="Float64"), S, "0 to 9"),
    "arrow": (pd.Series(S, dtype="double[pyarrow]"), S, "0 to 9"),
    "polars": (pl.Series(S), S, "0 to 9"),
    "pyarrow": (pa.array(S), S, "0 to 9"),
    "two channels": (M, M, "0 to 9"),
    "a frame": (pd.DataFrame(M, columns=["x", "y"], index=HOURS), M, "2024-01-01 00:00 to"),
    "a frame of polars": (pl.DataFrame(M, schema=["x", "y"]), M, "0 to 9"),
    "lists of channels": (M.tolist(), M, "0 to 9"),
}


@pytest.mark.parametrize(("series", "values", "name"), SERIES.values(), ids=SERIES)
def test_series(series, values, name):
    explainer = limes.SeriesExplainer(mean, **FOUR)
    # a list of lists is several series
    explanation = explainer(np.array(series) if isinstance(series, list) and series == M.tolist() else series)
    assert explanation.method == "exact"
    assert explanation.feature_names[0].startswith(name)
    np.testing.assert_allclose(explanation.coefficients.values[0], expected(values), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(explanation.predictions[0], np.mean(values, dtype=float), rtol=1e-9)


def test_containers():
    explainer = limes.SeriesExplainer(mean, **FOUR)
    other = S[::-1]
    for several in ([S, other], [S.tolist(), other.tolist()], [pd.Series(S), pd.Series(other)]):
        first, second = explainer(several)
        np.testing.assert_allclose(first.coefficients.values[0], expected(S), rtol=1e-9)
        np.testing.assert_allclose(second.coefficients.values[0], expected(other), rtol=1e-9)
    first, second = explainer(np.stack([S, other])[..., None])
    np.testing.assert_allclose(second.coefficients.values[0], expected(other), rtol=1e-9)
    # lengths may differ
    _, short = limes.SeriesExplainer(mean, **FOUR)([S, S[:20]])
    np.testing.assert_allclose(short.coefficients.values[0], S[:20].reshape(4, 5).sum(axis=1) / 20, rtol=1e-9)


ANSWERS = {
    "a list": (list, None),
    "one column": (lambda y: y[:, None], "0"),
    "a frame": (lambda y: pd.DataFrame({"up": y, "down": -y}), "up"),
    "mappings": (lambda y: [{"down": -v, "up": v} for v in y], "up"),
    "pyarrow": (lambda y: pa.table({"up": y, "down": -y}), "up"),
    "a scalar of one series": (lambda y: float(y[0]) if len(y) == 1 else y, None),
}


@pytest.mark.parametrize(("form", "name"), ANSWERS.values(), ids=ANSWERS)
def test_answers(form, name):
    explanation = limes.SeriesExplainer(lambda batch: form(mean(batch)), **FOUR)(S)
    explanation = explanation if name is None else explanation[..., name]
    np.testing.assert_allclose(explanation.coefficients.values.ravel(), expected(S), rtol=1e-9)


def plain(series):
    return np.array(series, dtype=float)


GAPS = np.where(S > 1, np.nan, S)
# Refused input, the message, the series after its advice, and that series' numbers
REFUSED = {
    "complex": (S * 1j, "got complex128: convert them", np.abs, np.abs(S)),
    "objects": (S.astype(object), r"numpy\.array\(series, dtype=float\)", plain, S),
    "decimals": ([Decimal(repr(v)) for v in S.tolist()], "got object: convert them", plain, S),
    "numbers as texts": ([repr(v) for v in S.tolist()], r"convert them, such as by numpy\.array", plain, S),
    "days": (
        np.array([dt.timedelta(days=i) for i in range(40)], dtype="m8[D]"),
        r"got timedelta64\[D\]: convert them",
        plain,
        np.arange(40.0),
    ),
    "gaps": (GAPS, "has nan at step .*: fill gaps first", np.nan_to_num, np.nan_to_num(GAPS)),
    "gaps of pandas": (
        pd.Series(GAPS, dtype="Float64"),
        "fill gaps first",
        lambda s: s.fillna(0.0),
        np.nan_to_num(GAPS),
    ),
    "a mask": (
        np.ma.masked_greater(S, 1.0),
        r"masked steps: pass series\.filled",
        lambda s: s.filled(0.0),
        np.where(S > 1, 0, S),
    ),
    "channels first": (M.T, r"pass series\.T if it is \(channels, steps\)", lambda s: s.T, M),
    "one of several": (S[None], r"series\[0\] if it is one of 40 steps", lambda s: s[0], S),
    "four axes": (S.reshape(1, 1, 40, 1), "pass several series as a list", lambda s: [s.ravel()], S),
    "nothing": ([], r"got shape \(0,\)", lambda _: S, S),
    "a mapping": (
        {"a": S},
        r"pass numpy\.column_stack\(list\(",
        lambda s: np.column_stack(list(s.values())),
        S,
    ),
}


@pytest.mark.parametrize(("series", "message", "advice", "values"), REFUSED.values(), ids=REFUSED)
def test_refused_input_has_advice_that_works(series, message, advice, values):
    explainer = limes.SeriesExplainer(mean, **FOUR)
    with pytest.raises(InputError, match=message):
        explainer(series)
    explanation = explainer(advice(series))
    explanation = explanation[0] if isinstance(explanation, list) else explanation
    np.testing.assert_allclose(explanation.coefficients.values[0], expected(values), rtol=1e-9, atol=1e-12)


def test_a_number_of_segments():
    with pytest.raises(InputError, match="segments=4 is a number: pass it as count=4"):
        limes.SeriesExplainer(mean, segments=4, fill=0.0)(S)
    explanation = limes.SeriesExplainer(mean, count=4, fill=0.0)(S)
    np.testing.assert_allclose(explanation.coefficients.values[0], expected(S), rtol=1e-9)


def test_answers_that_are_no_numbers():
    with pytest.raises(ModelError, match=r"return numbers, such as of days"):
        limes.SeriesExplainer(lambda batch: pd.to_timedelta(mean(batch), unit="D"), **FOUR)(S)
    with pytest.raises(ModelError, match=r"masked numbers: return \.filled"):
        limes.SeriesExplainer(lambda batch: np.ma.masked_less(mean(batch), 9.0), **FOUR)(S)
