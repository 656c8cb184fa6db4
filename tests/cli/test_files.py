"""Files that the command line reads."""

import pandas as pd
import skops.io
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from internals import files, read_table


def test_a_compressed_table_is_read(tmp_path):
    path = tmp_path / "table.csv.gz"
    pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}).to_csv(path, index=False)
    assert read_table(path).to_dict(as_series=False) == {"a": [1.0, 2.0], "b": ["x", "y"]}


def test_a_selection_of_columns_by_dtype_needs_no_trust(tmp_path):
    """As scikit-learn's own examples select texts: dtype_include=object."""
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]}).astype({"b": object})
    encoder = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_include=object)), remainder="passthrough"
    )
    model = make_pipeline(encoder, LinearRegression()).fit(X, [1.0, 2.0, 4.0])
    skops.io.dump(model, tmp_path / "model.skops")
    loaded = files.load_model(tmp_path / "model.skops", trust=None, trust_pickle=False)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
