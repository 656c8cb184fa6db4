"""The recipe of docs/scale.md for Ray: `explain_frame` by `map_batches`; skipped without ray."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import limes

# of ray's own modules, imported and at work
pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install ray")
    pa = pytest.importorskip("pyarrow")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
    yield ray, pa
    ray.shutdown()


def test_batches_of_a_dataset_give_the_lines_of_the_whole_frame(ray):
    ray, pa = ray
    rng = np.random.default_rng(0)
    background = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    weights = np.array([1.0, -2.0, 0.5])
    explainer = limes.TabularExplainer(
        lambda rows: np.tanh(rows.to_numpy()) @ weights, background, rng=0, max_calls=1024
    )
    rows = background.assign(loan_id=range(60))
    rows.loc[7, "b"] = np.inf
    dataset = ray.data.from_arrow(pa.Table.from_pandas(rows, preserve_index=False)).repartition(3)
    result = dataset.map_batches(
        lambda batch: limes.scale.explain_frame(explainer, batch, keys=["loan_id"]),
        batch_format="pyarrow",
        batch_size=16,
    )
    actual = result.to_pandas().sort_values("loan_id", ignore_index=True)
    expected = limes.scale.explain_frame(explainer, rows, keys=["loan_id"])
    assert actual["loan_id"].tolist() == list(range(60))
    for name in expected:
        one, other = actual[name], expected[name]
        assert one.isna().tolist() == other.isna().tolist()
        assert one.dropna().tolist() == other.dropna().tolist(), name
    assert expected["error"].notna().tolist() == [i == 7 for i in range(60)]
