"""Whatever a model does in a call, it is the error of its row, or nothing, and the program goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import limes
from limes.exceptions import ModelError
from poisons import BACKGROUND, ERRORS, KEPT, STATES, Poisoned, check, explained, rows_of


def test_errors_of_every_kind_are_those_of_their_rows():
    rows = rows_of([*ERRORS])
    check(explained(Poisoned(), rows), explained(Poisoned(calm=True), rows), [*ERRORS])


class Later:
    """A model that acts in one of its calls, by their number."""

    def __init__(self, poison, at):
        self.poison, self.at, self.calls = poison, at, 0

    def predict(self, table):
        self.calls += 1
        if self.calls == self.at:
            answer = self.poison.act(table)
            if answer is not None or self.poison is ERRORS["no answer"]:
                return answer
        return np.sin(table["a"] * table["b"]).to_numpy()


OF_CALLS = {"control": "none", "max_calls": 128, "batch_size": 32, "contributions": False, "law": "truncnorm"}


@pytest.mark.parametrize("errors", ["raise", "row"])
@pytest.mark.parametrize("name", ERRORS)
def test_a_call_raises_a_model_error_with_the_rows_so_far(name, errors):
    """In its last call but two a model was asked for most rows."""
    rows = BACKGROUND[:5]
    calm = Later(ERRORS[name], 0)
    expected = limes.TabularExplainer(calm, BACKGROUND, errors=errors, weights="euclidean", **OF_CALLS)(
        rows, progress=False
    )
    model = Later(ERRORS[name], calm.calls - 2)
    explainer = limes.TabularExplainer(model, BACKGROUND, errors=errors, weights="euclidean", **OF_CALLS)
    with pytest.raises(ModelError, match=f"(?s){ERRORS[name].error}") as caught:
        explainer(rows, progress=False)
    partial = caught.value.partial
    assert len(partial) in (4, 5)
    np.testing.assert_array_equal(partial.coefficients.values[:4], expected.coefficients.values[:4])
    # the model is well again: the same call goes on
    np.testing.assert_array_equal(
        explainer(rows, progress=False).coefficients.values, expected.coefficients.values
    )


LIBRARY = """
import os, sys
sys.path.insert(0, "TESTS")
from poisons import KEPT, STATES, Poisoned, explained, rows_of
out = os.path.abspath(sys.argv[1])
names = [name for name in STATES if name not in KEPT]
rows = rows_of(names)
calm, lines = (explained(Poisoned(calm=calm), rows) for calm in (True, False))
calm.to_parquet(os.path.join(out, "calm.parquet"))
lines.to_parquet(os.path.join(out, "lines.parquet"))
os._exit(0)
""".replace("TESTS", str(Path(__file__).parents[2]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="half of these fork, or change what Windows lacks")
def test_state_that_a_model_leaves_behind_changes_no_row_of_a_program(tmp_path):
    """In a separate process, which then has no streams and other signals."""
    script = subprocess.run(
        [sys.executable, "-c", LIBRARY, "."], cwd=tmp_path, check=False, capture_output=True, timeout=300
    )
    assert script.returncode == 0, script.stderr.decode()
    lines, calm = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("lines", "calm"))
    check(lines, calm, [name for name in STATES if name not in KEPT])
