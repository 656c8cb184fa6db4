r"""Contributions of a function of which all rows that a game has are asked about: exact for any function.

The game v(S) = E f(ξ on S, Z elsewhere) has few rows where columns have few values, or a background few rows.
With independent columns the answers to a grid of values are averaged column by column, with the column's
probabilities or at ξ_j; with rows that occur v(S) is a weighted mean over these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from limes._arrays import Floats
from limes._shapley.coalitions import account_of_states
from limes._shapley.exact import RowContributions
from limes._shapley.game_controls import GameLaw, IndependentDraws, OccurringDraws
from limes._shapley.pairs import indices_of_game
from limes._shapley.starts import same
from limes.designs._exchangeable import LARGEST_ENUMERATION

# Rows that are compared with each other, at most
_COMPARED = 1 << 16


def enumerated(
    law: GameLaw, prediction: Floats, ask: Callable[[Floats], Floats], most: int
) -> RowContributions | None:
    """Contributions by at most ``most`` answers; None where the game has more rows."""
    columns = np.flatnonzero(law.varies)
    game = _game(law, prediction, ask, most)
    if game is None:
        return None
    account = account_of_states(game[None], prediction, columns.size)
    whole = np.zeros((4, 1, law.row.size, prediction.size))
    whole[:, :, columns] = account.values, account.errors, account.alone, account.last
    values, errors, alone, last = whole
    return replace(account, values=values, errors=errors, alone=alone, last=last)


def enumerated_indices(
    law: GameLaw, prediction: Floats, ask: Callable[[Floats], Floats], most: int
) -> Floats | None:
    """Shapley interaction indices (d, d, k) by the same answers; None where there are more."""
    columns = np.flatnonzero(law.varies)
    game = _game(law, prediction, ask, most) if columns.size > 1 else None
    if game is None:
        return None
    indices = np.zeros((law.row.size, law.row.size, prediction.size))
    # the first column is the lowest bit of a set's number
    by_column = game.reshape(*(2,) * columns.size, -1).transpose(*range(columns.size)[::-1], columns.size)
    indices[columns[:, None], columns] = indices_of_game(by_column)
    return indices


def _game(law: GameLaw, prediction: Floats, ask: Callable[[Floats], Floats], most: int) -> Floats | None:
    """The values of all sets of the columns that vary, (2^m, k)."""
    if not 0 < int(law.varies.sum()) <= LARGEST_ENUMERATION:
        return None
    if isinstance(law, IndependentDraws):
        return _of_grid(law, ask, most)
    return _of_background(law, prediction, ask, most)


def _of_grid(law: IndependentDraws, ask: Callable[[Floats], Floats], most: int) -> Floats | None:
    """The game of all sets, (2^m, k), by a grid of the values that columns have."""
    if law.rounding:  # of a density there are more
        return None
    columns, axes, means = np.flatnonzero(law.varies).tolist(), [], []
    for j in columns:
        values, weights = law.support(j)
        axis = np.unique(np.append(values[weights > 0], law.row[j]))
        at = same(axis[:, None], values)
        axes.append(axis)
        means.append(np.stack([at @ weights, same(axis, law.row[j]).astype(np.float64)]))
        if prod(its.size for its in axes) > most:
            return None
    grid = np.stack([its.ravel() for its in np.meshgrid(*axes, indexing="ij")], axis=1)
    x = np.tile(law.row, (len(grid), 1))
    x[:, columns] = grid
    answers = np.asarray(ask(x)).reshape(*(its.size for its in axes), -1)
    game = np.moveaxis(answers, -1, 0)
    for mean in means:
        game = np.tensordot(game, mean, axes=(1, 1))
    # the first column is the lowest bit of a set's number
    return np.asarray(game.transpose(*range(len(columns), 0, -1), 0).reshape(1 << len(columns), -1))


def _of_background(
    law: OccurringDraws, prediction: Floats, ask: Callable[[Floats], Floats], most: int
) -> Floats | None:
    """The same by all mixtures of the row and those of a background."""
    weights, columns = law.weights, np.flatnonzero(law.varies)
    rows = weights > 0
    sets, count = 1 << columns.size, int(rows.sum())
    if law.starts.omitted is not None or sets * count > _COMPARED:
        return None
    kept = np.zeros((sets, 1, law.row.size), dtype=np.bool_)
    kept[:, 0, columns] = (np.arange(sets)[:, None] >> np.arange(columns.size)) & 1
    mixed = np.where(kept[1:-1], law.row, law.starts.background[rows])
    distinct, place = np.unique(mixed.reshape(-1, law.row.size), axis=0, return_inverse=True)
    if len(distinct) > most:
        return None
    answers = np.asarray(ask(distinct)).reshape(len(distinct), -1) if len(distinct) else prediction[None]
    game = np.empty((sets, prediction.size))
    game[0], game[-1] = weights @ law.starts.answers, prediction
    share = weights[rows] / weights[rows].sum()
    game[1:-1] = np.einsum("r,srk->sk", share, answers[place.reshape(sets - 2, count)])
    return game
