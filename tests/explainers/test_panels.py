"""Tables of several series, and indices that name no steps: advice that works, or names by position."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import limes
from limes.exceptions import InputError


def total(batch):
    return np.asarray(batch).reshape(len(batch), -1).sum(axis=1)


def explain(series, **options):
    return limes.SeriesExplainer(total, count=3, fill=0.0, **options)(series)


VALUES = np.random.default_rng(0).normal(size=(4, 9))
CASES_STEPS = pd.MultiIndex.from_product([[10, 11, 12, 13], range(9)], names=["case", "step"])
DAYS = pd.date_range("2024-01-01", periods=9)
STACKS = {
    "levels": pd.Series(VALUES.ravel(), CASES_STEPS),
    "levels of a frame": pd.DataFrame({"a": VALUES.ravel(), "b": -VALUES.ravel()}, CASES_STEPS),
    "levels with days": pd.Series(VALUES.ravel(), pd.MultiIndex.from_product([list("abcd"), DAYS])),
    "three levels": pd.Series(VALUES.ravel(), pd.MultiIndex.from_product([["x", "y"], [1, 2], range(9)])),
    "a level that is constant": pd.Series(
        VALUES.ravel(), pd.MultiIndex.from_product([range(4), ["only"], range(9)])
    ),
    "concatenated": pd.concat([pd.Series(one) for one in VALUES]),
    "concatenated days": pd.concat([pd.Series(one, DAYS) for one in VALUES]),
    "concatenated frames": pd.concat([pd.DataFrame({"a": one, "b": one}) for one in VALUES]),
    "of several lengths": pd.concat([pd.Series(one[: 9 - i]) for i, one in enumerate(VALUES)]),
    "texts": pd.concat([pd.Series(one, list("abcdefghi")) for one in VALUES]),
}
NESTED = {
    "nested frame": pd.DataFrame({"a": [pd.Series(one) for one in VALUES]}),
    "nested frame of two": pd.DataFrame({name: [pd.Series(one) for one in VALUES] for name in "ab"}),
    "nested arrays": pd.DataFrame({"a": list(VALUES)}),
    "series of arrays": pd.Series(list(VALUES)),
    "array of arrays": np.array([VALUES[0], VALUES[1][:5], VALUES[2], VALUES[3]], dtype=object),
    "dict": {"a": VALUES[0], "b": VALUES[1]},
}


@pytest.mark.parametrize("name", [*STACKS, *NESTED])
def test_several_series_in_one_table_are_refused_with_advice_that_works(name):
    """The message's own expression gives the series one by one."""
    table = (STACKS | NESTED)[name]
    with pytest.raises(InputError) as error:
        explain(table)
    message = str(error.value)
    (advice,) = re.search(
        r"pass (?:a list, )?(\[.*\]|numpy\S*\(.*\)|list\(series\))(?:,|$)", message
    ).groups()
    names = {"series": table, "frame": table, "numpy": np}
    passed = eval(advice, names)  # noqa: S307 - the message's own expression
    if name == "dict":
        assert explain(passed).predictions == pytest.approx([VALUES[:2].sum()])
        return
    explanations = explain(passed)
    sums = np.sum([np.asarray(one, dtype=float).sum() for one in passed])
    assert len(explanations) == 4
    assert sum(one.predictions.item() for one in explanations) == pytest.approx(sums)
    if name not in ("of several lengths", "array of arrays"):
        columns = 2 if "frame" in name and np.ndim(table) == 2 and np.shape(table)[1] == 2 else 1
        factor = 0.0 if name == "levels of a frame" else columns
        assert sums == pytest.approx(factor * VALUES.sum(), abs=1e-9)


ONE = {
    "a case of a panel": (STACKS["levels"].loc[[11]], "0 to 2", None),
    "a case without its level": (STACKS["levels"].loc[11], "0 to 2", None),
    "a case of three levels": (STACKS["three levels"].loc[["y"], [2], :], "0 to 2", None),
    "days behind a name": (STACKS["levels with days"].loc[["c"]], "2024-01-01 to 2024-01-03", None),
    "days": (pd.Series(VALUES[0], DAYS), "2024-01-01 to 2024-01-03", None),
    "falling": (pd.Series(VALUES[0], range(9, 0, -1)), "9 to 7", None),
    "texts": (pd.Series(VALUES[0], list("ihgfebcda")), "i to g", None),
    "repeated stamps": (pd.Series(VALUES[0], DAYS[[0, 0, 0, 1, 1, 1, 2, 2, 2]]), "0 to 2", "2024-01-01"),
    "one stamp": (pd.Series(VALUES[0], [5] * 9), "0 to 2", "'5' several times"),
    "an hour twice": (pd.Series(VALUES[0], DAYS[[0, 1, 2, 3, 3, 4, 5, 6, 7]]), "0 to 2", "2024-01-04"),
    "a name twice": (pd.Series(VALUES[0], list("abcabdefg")), "0 to 2", "'a' several times"),
    "out of order": (
        pd.Series(VALUES[0], DAYS[[0, 2, 1, 3, 4, 5, 6, 7, 8]]),
        "2024-01-01 to",
        "not in order",
    ),
    "numbers out of order": (pd.Series(VALUES[0], [0, 2, 1, 3, 4, 5, 6, 7, 8]), "0 to 1", "not in order"),
}


@pytest.mark.parametrize("name", ONE)
def test_one_series_has_names_of_its_own_segments(name):
    series, first, remark = ONE[name]
    explanation = explain(series)
    assert explanation.feature_names[0].startswith(first)
    assert len(set(explanation.feature_names)) == 3
    sums = np.asarray(series).reshape(3, 3).sum(axis=1)
    np.testing.assert_allclose(explanation.coefficients.values[0], sums, atol=1e-9)
    if remark is None:
        assert explanation.warnings == ()
    else:
        (warning,) = explanation.warnings
        assert remark in warning


def test_channels_of_one_name_are_told_apart():
    frame = pd.DataFrame(VALUES[:2].T, columns=["a", "a"])
    explanation = explain(frame, channels="apart")
    assert explanation.feature_names[0] == "a (0), 0 to 2"
    assert len(set(explanation.feature_names)) == 6
