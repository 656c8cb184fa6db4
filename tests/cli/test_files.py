"""Files of tables that the command line reads."""

import pandas as pd

from internals import read_table


def test_a_compressed_table_is_read(tmp_path):
    path = tmp_path / "table.csv.gz"
    pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}).to_csv(path, index=False)
    assert read_table(path).to_dict(as_series=False) == {"a": [1.0, 2.0], "b": ["x", "y"]}
