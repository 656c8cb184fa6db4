"""Compiled loops; ``kernels/`` holds their source, with the formulas."""

from numpy.typing import NDArray

from limes._arrays import Bools, Floats, Ints, Places

def preorder(feature: Ints, left: Ints, right: Ints, roots: Ints, edges: Ints, is_left: Bools, /) -> int:
    """Write node, parent's position, depth, column and last edge on it, (5, N), depth first; return N."""

def intervals(
    column: Ints,
    same: Ints,
    is_left: Bools,
    rank: Ints,
    missing_left: Bools,
    whole: Ints,
    bounds: Ints,
    missing: Bools,
    /,
) -> None:
    """Write the ranks (2, N) between which x[column] reaches each edge, and whether a missing value does."""

def tabulate(
    column: Ints,
    same: Ints,
    lower: Ints,
    upper: Ints,
    missing: Bools,
    above: Ints,
    is_left: Bools,
    functionals: Floats,
    start: Ints,
    mixing: Floats,
    table: Floats,
    /,
) -> None:
    """Write ratios and changes of the edges below every split, (S, 4, W)."""

def explain_row(
    column: Places,
    parent: Places,
    side: Places,
    leaves: Floats,
    table: Floats,
    cells: Places,
    starts: NDArray,
    mean: Floats,
    contrast: Floats,
    /,
) -> None:
    """Add a forest's mean (k,) and contrasts (d, k) at one row."""

def explain_block(
    depth: Places,
    has_leaf: Bools,
    column: Places,
    parent: Places,
    side: Places,
    leaves: Floats,
    table: Floats,
    cells: Places,
    mean: Floats,
    contrast: Floats,
    only: str,
    /,
) -> None:
    """Add a forest's means (n, k) and contrasts (n, d, k) at n rows; ``only`` names instructions."""

def instructions() -> list[str]:
    """Sets of instructions of this processor, the widest first."""

def add_leaves(
    x: Floats,
    feature: Ints,
    threshold: Floats,
    left: Ints,
    right: Ints,
    missing_left: Bools,
    set_of: Ints,
    sets: Bools,
    value: Floats,
    roots: Ints,
    total: Floats,
    /,
) -> None:
    """Add the leaf values that rows x (n, d) reach to total (n, k)."""

def presence_paths(
    word_of: Ints,
    value_of: Floats,
    fill: Floats,
    words: int,
    feature: Ints,
    threshold: Floats,
    left: Ints,
    right: Ints,
    set_of: Ints,
    sets: Bools,
    roots: Ints,
    leaf: Ints,
    product: Ints,
    word: Ints,
    present: Bools,
    /,
) -> tuple[int, int]:
    """Write a text's paths, as far as arrays reach; return the numbers of paths and factors."""

def add_node(
    y: Floats,
    c: Floats,
    within: Floats,
    width: int,
    weight: float,
    profile: Floats,
    loss: Floats,
    start: Floats,
    rest: Floats,
    /,
) -> None:
    """Add one quadrature node of a text's linear model on normalised TF-IDF."""

def add_products(
    on: Floats, off: Floats, law: Floats, every: Floats, within: Floats, mean: Floats, coef: Floats, /
) -> None:
    """Add means and coefficients of products over switches (m, d)."""

def tighten(
    gram: Floats,
    moments: Floats,
    ones: Floats,
    swept: Floats,
    slots: int,
    square: float,
    target: float,
    eta: float,
    enough: float,
    tries: int,
    shares: Floats,
    /,
) -> tuple[float, float]:
    """Write shares of the best pairwise bound; return its η and floor."""

def best_pair(
    gram: Floats, moments: Floats, ones: Floats, swept: Floats, square: float, target: float, below: float, /
) -> tuple[float, int, int]:
    """Return the least objective of two more literals, and their places."""

def sweep_in(
    gram: Floats,
    moments: Floats,
    ones: Floats,
    swept: Floats,
    place: int,
    rest_gram: Floats,
    rest_moments: Floats,
    rest_ones: Floats,
    gains: Floats,
    /,
) -> None:
    """Write what is left of a node's matrices when one literal is swept in."""
