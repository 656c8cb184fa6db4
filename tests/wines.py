"""Files of a user of the command line: a table of wines, and a forest fitted to it."""

from __future__ import annotations

import joblib
import skops.io
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier


def write_wines(folder, columns=None, **more):
    """Write the table, with a target and ``more`` columns, and the forest; return features and target."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :columns]
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    skops.io.dump(forest, folder / "forest.skops")
    joblib.dump(forest, folder / "forest.joblib")
    table = X.assign(**more, target=y)
    table.to_csv(folder / "wine.csv", index=False)
    table.to_parquet(folder / "wine.parquet")
    return X, y
