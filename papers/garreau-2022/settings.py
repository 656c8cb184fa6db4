"""Parts that several figures share: training sets, models, panels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.kernel_ridge import KernelRidge
from sklearn.tree import DecisionTreeRegressor

import limes
from papers.common.boxes import boxes
from papers.common.tabular import Compared, TabularLime

DATA = Path(os.environ.get("LIMES_DATA", Path(__file__).parents[3] / "shared" / "data")) / "tabular"
# Rows of the wine table that kernel machines are trained on
_TRAINED = 400


def present(*names: str) -> bool:
    """Whether the tables are there."""
    return all((DATA / f"{name}.csv.gz").exists() for name in names)


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns and target."""
    frame = pd.read_csv(DATA / f"{name}.csv.gz")
    return frame.drop(columns="target").astype(float), frame["target"].to_numpy(float)


@cache
def wine() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """White wine (Cortez et al.), columns and target of mean 0 and variance 1, in random order; names."""
    X, y = table("wine_quality_white")
    order = np.random.default_rng(0).permutation(len(X))
    Z, target = ((X - X.mean()) / X.std()).to_numpy()[order], ((y - y.mean()) / y.std())[order]
    return Z, target, [name.replace("_", " ") for name in X]


@cache
def wine_kernel(width: float = 5.0) -> KernelRidge:
    """Kernel ridge with exp(-‖x - ζ‖²/(2 width²)) and a penalty of 1."""
    Z, target, _ = wine()
    return KernelRidge(kernel="rbf", gamma=0.5 / width**2, alpha=1.0).fit(Z[:_TRAINED], target[:_TRAINED])


@cache
def wine_lime() -> TabularLime:
    """LIME's statistics of all rows."""
    return TabularLime.learnt(wine()[0])


def uniform(d: int, *, bins: int = 4, rows: int = 1000, seed: int = 0) -> tuple[np.ndarray, TabularLime]:
    """A training set of 𝒰([-10, 10]) columns, and LIME's statistics of it."""
    train = np.random.default_rng(seed).uniform(-10, 10, size=(rows, d))
    return train, TabularLime.learnt(train, bins)


def cart(train: np.ndarray, target: np.ndarray, *, depth: int = 3) -> tuple[DecisionTreeRegressor, Any]:
    """A CART tree, and the form that is read off it."""
    tree = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(train, target)
    return tree, limes.models.read(tree)


def numbered(d: int) -> list[str]:
    """1 .. d."""
    return [str(j + 1) for j in range(d)]


def panel(ax: Any, result: Compared, title: str, names: Sequence[str] = ()) -> None:
    """Boxes against theory."""
    boxes(ax, names or numbered(result.runs.shape[1]), result.runs, theory=result.limit.coef)
    ax.set_title(title, fontsize=9)
    ax.set_ylabel("coefficient", fontsize=9)
    if not names:
        ax.set_xlabel("feature", fontsize=9)
