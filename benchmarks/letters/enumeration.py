"""Interventional Shapley values of XGBoost's trees, by an enumeration of all sets of columns.

Nothing here imports the library. A tree of depth 3 asks about seven columns at most, so that the game of one
row and one background row has 128 sets; the values of trees add up. Columns of a pipeline's encoding that
come from one column of the table are one player.
"""

from __future__ import annotations

from itertools import combinations
from math import factorial
from typing import Any

import numpy as np


class Tree:
    """One tree of ``trees_to_dataframe``: nodes in its order, leaves as their own children."""

    def __init__(self, frame: Any, columns: dict[str, int]) -> None:
        ids = {name: i for i, name in enumerate(frame["ID"])}
        is_leaf = frame["Feature"] == "Leaf"
        self.value = np.where(is_leaf, frame["Gain"], 0.0)
        self.column = np.array(
            [-1 if leaf else columns[f] for f, leaf in zip(frame["Feature"], is_leaf, strict=True)]
        )
        self.split = frame["Split"].fillna(0.0).to_numpy(np.float32)
        self.yes, self.no, self.missing = (
            np.array(
                [
                    i if leaf else ids[to]
                    for i, (to, leaf) in enumerate(zip(frame[name], is_leaf, strict=True))
                ]
            )
            for name in ("Yes", "No", "Missing")
        )

    def children(self, x: np.ndarray) -> np.ndarray:
        """Where each node sends rows (n, e) of the encoding, (n, nodes)."""
        values = x[:, np.maximum(self.column, 0)]
        down = np.where(values < self.split, self.yes, self.no)
        return np.where(np.isnan(values), self.missing, down)

    def shapley(self, x: np.ndarray, background: np.ndarray, players: np.ndarray) -> np.ndarray:
        """Values of rows x (n, e) against the background's rows, in the mean: (n, players)."""
        result = np.zeros((len(x), int(players.max()) + 1))
        of_node = np.where(self.column >= 0, players[np.maximum(self.column, 0)], -1)
        used = [int(player) for player in np.unique(of_node) if player >= 0]
        ours, theirs = self.children(x)[:, None], self.children(background)[None]
        worth = {}
        for size in range(len(used) + 1):
            for kept in combinations(used, size):
                down = np.where(np.isin(of_node, kept), ours, theirs)
                at = np.zeros(down.shape[:2], dtype=np.int64)
                for _ in range(3):
                    at = np.take_along_axis(down, at[..., None], axis=2)[..., 0]
                worth[kept] = self.value[at].mean(axis=1)
        total = factorial(len(used))
        for kept, value in worth.items():
            weight = (
                factorial(len(kept)) * factorial(len(used) - len(kept) - 1) if len(kept) < len(used) else 0
            )
            for player in set(used) - {*kept}:
                with_it = worth[tuple(sorted({*kept, player}))]
                result[:, player] += weight / total * (with_it - value)
        return result


def trees(booster: Any) -> list[Tree]:
    """The trees of a booster, whose columns are f0, f1, ..."""
    frame = booster.trees_to_dataframe()
    names = booster.feature_names or [f"f{j}" for j in range(booster.num_features())]
    columns = {name: j for j, name in enumerate(names)}
    return [Tree(part, columns) for _, part in frame.groupby("Tree")]
