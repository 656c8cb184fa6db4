"""Pictures of pairs of features: what acts together in one row, and with which column over many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING
from limes._checks import is_count
from limes._explanation.fit import pairs_at
from limes._explanation.selection import by_size
from limes._explanation.view import is_probability, what_holds
from limes._explanation.wording import adding_up, cell, count, is_missing, number, shorten
from limes._show.axes import LOWERS, RAISES, axes_or_new, colour_bar, ink, ranks, shortened_names, turn
from limes.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from limes._arrays import Floats, Objects
    from limes._explanation import Explanation
    from limes._explanation.fit import Positions
    from limes._show.axes import Canvas

# Seconds that pairs of the rows of a picture may take
_SECONDS = 5.0
# Above this share of the largest number, which has the full colour, letters are white
_DARK = 0.6

# Beside the triangle
_LEGEND = ("Below the diagonal: what two values add together.", "On it: what a value adds besides.")

# -- one row -------------------------------------------------------------------------------------------------


def draw_pairs(one: Explanation, canvas: Canvas, max_features: int) -> Axes:
    """Draw the pairs of one row and output below the diagonal, which has what features add by themselves."""
    if not is_count(max_features):
        raise InputError(f"max_features={max_features!r}; pass 1 or more")
    account = one.contributions
    matrix, order = account.pairs[0], by_size(np.abs(account.pairs[0]).sum(axis=1))
    shown, hidden = order[:max_features], order[max_features:]
    features = [one.feature_names[j] for j in shown]
    below = [shorten(canvas.feature(name), 18) for name in features]
    names = [
        what_holds(one, 0, int(j)).replace(name, canvas.feature(name), 1)
        for j, name in zip(shown, features, strict=True)
    ]
    if hidden.size:
        names.append(count(hidden.size, "other"))
        below.append("others")
    size = len(names)
    axes = axes_or_new(canvas.ax, (7.5, 1.8 + 0.42 * size))
    unit = 100.0 if is_probability(one) else 1.0
    cells = np.full((size, size), np.nan)
    cells[np.tril_indices(size)] = unit * _once(matrix, shown, hidden)[np.tril_indices(size)]
    parts = cells[np.tril_indices(size)].tolist()
    # of a selection of features cells do not lead to the prediction
    base = unit * float(account.base_values[0])
    texts, levels = adding_up(parts, [0.0] * len(parts), base, base + sum(parts), 2)
    reach = float(np.nanmax(np.abs(cells))) or 1.0
    picture = _picture(axes, cells, reach)
    places = zip(*(axis.tolist() for axis in np.tril_indices(size)), strict=True)
    for (i, j), (text, _) in zip(places, texts, strict=True):
        if not float(text):
            continue  # a rounded 0 says less than the colour
        colour = "white" if abs(cells[i, j]) > _DARK * reach else ink()
        written = text.replace("-", "\N{MINUS SIGN}")
        axes.text(j, i, written, color=colour, fontsize=8.5, ha="center", va="center", parse_math=False)
    axes.set_yticks(range(size), labels=shortened_names(axes, names), fontsize=10, parse_math=False)
    axes.set_xticks(range(size), labels=below, fontsize=9, parse_math=False)
    if max(map(len, below)) * size > 70:
        turn(axes)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    points = "percentage points" if unit > 1.0 else canvas.unit
    colour_bar(axes, picture, points, (number(-reach, 2), "0", number(reach, 2)))
    total = levels[2].replace("-", "\N{MINUS SIGN}")
    lines = [*_LEGEND, f"All cells add up to {total}."]
    axes.text(
        *(0.99, 0.99, "\n".join(lines)),
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=9,
        parse_math=False,
    )
    return axes


def _once(matrix: Floats, shown: Positions, hidden: Positions) -> Floats:
    """Each pair once, its whole index below the diagonal; hidden features together are the last one."""
    groups = [[int(j)] for j in shown] + ([[int(j) for j in hidden]] if hidden.size else [])
    sums = np.array([[matrix[np.ix_(a, b)].sum() for b in groups] for a in groups])
    return np.asarray(sums + np.tril(sums, -1))


def _picture(axes: Axes, cells: Floats, reach: float) -> object:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("pairs", [LOWERS, axes.get_facecolor(), RAISES])
    return axes.imshow(cells, cmap=colours, vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest")


# -- many rows -----------------------------------------------------------------------------------------------


def partner_of(explanation: Explanation, j: int, y: Floats, of: str) -> int | None:
    """The column with which j acts most over rows, of one output, with numbers y; None without any."""
    pairs = pairs_at(explanation, range(len(explanation)), _SECONDS) if of == "contributions" else None
    if pairs is None:
        return strongest_partner(explanation.data, j, y)
    sizes = np.abs(pairs[:, j, :, 0]).sum(axis=0)
    sizes[j] = 0.0
    # what is rounding beside the contributions is no pair
    is_rounding = sizes.max(initial=0.0) <= DIFFERENCE_ROUNDING * np.abs(y).sum()
    return None if is_rounding else int(sizes.argmax())


# Rows of like values of a feature, about; most groups of these
_ALIKE, _MOST_SLICES = 15, 10


def strongest_partner(data: Objects, j: int, y: Floats) -> int:
    """The column other than j that explains most of what y, (n,), varies by among rows of like values of j.

    Rows are sliced by column j. In each slice the variance that a line in the ranks of another column
    explains, or the means of its categories, counts less what as many random numbers would.
    """
    alike = _categories(data[:, j]) if has_texts(data[:, j]) else ranks(data[:, j])
    slices = min(_MOST_SLICES, max(1, len(y) // _ALIKE))
    of_slice = alike if has_texts(data[:, j]) else np.floor(np.nan_to_num(alike, nan=-1.0) * slices)
    gains = np.full(data.shape[1], -np.inf)
    for k in range(data.shape[1]):
        if k != j:
            named = has_texts(data[:, k])
            other = _categories(data[:, k]) if named else np.nan_to_num(ranks(data[:, k]), nan=-0.5)
            gains[k] = sum(
                _gain(other[rows], y[rows], named=named)
                for rows in (of_slice == one for one in np.unique(of_slice))
            )
    return int(gains.argmax())


def _categories(cells: Objects) -> Floats:
    return np.unique([cell(value) for value in cells.tolist()], return_inverse=True)[1].astype(float)


def _gain(x: Floats, y: Floats, *, named: bool) -> float:
    """The squares that x explains of y, less those that numbers without a relation would."""
    rest = y - y.mean()
    total = float(rest @ rest)
    if named:
        groups = np.unique(x, return_inverse=True)[1]
        sums, counts = np.bincount(groups, rest), np.bincount(groups)
        explained, freedom = float((sums**2 / counts).sum()), len(counts) - 1
    else:
        away = x - x.mean()
        explained, freedom = float((away @ rest) ** 2 / ((away @ away) or 1.0)), 1
    return explained - total * freedom / max(len(y) - 1, 1)


def has_texts(cells: Objects) -> bool:
    """Whether a column holds categories: no cell is a number, and some cell is not missing."""
    if cells.dtype != object:
        return False
    present = [value for value in cells.tolist() if not is_missing(value)]
    return bool(present) and all(isinstance(value, str | bool) for value in present)
