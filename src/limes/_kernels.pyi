"""Types of the compiled loops; ``kernels/`` holds their sources, and states what each computes."""

from collections.abc import Sequence
from typing import Any

from numpy import int32, uint8, uint64
from numpy.typing import NDArray

from limes._arrays import Bools, Floats, Ints, Places

# forest_layout.cpp
def preorder(feature: Ints, left: Ints, right: Ints, roots: Ints, edges: Ints, is_left: Bools, /) -> int: ...
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
) -> None: ...
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
) -> None: ...

# cells.cpp
def locate(
    rows: Floats, points: Floats, starts: Ints, is_level: Bools, missing: Ints, cells: Ints, /
) -> None: ...

# tree_walks.cpp
def add_walks(
    trees: Trees, value: Floats, end: Floats, starts: Floats, orders: Ints, values: Floats, /
) -> None: ...

# splits.cpp
class Splits:
    def __init__(
        self,
        columns: int,
        depth: Places,
        has_leaf: Bools,
        column: Places,
        parent: Places,
        side: Places,
        leaves: Floats,
        /,
    ) -> None: ...

# forest_row.cpp
class Intervals:
    def __init__(
        self,
        splits: Splits,
        column: Ints,
        same: Ints,
        lower: Ints,
        upper: Ints,
        missing: Bools,
        above: Ints,
        is_left: Bools,
        start: Ints,
        /,
    ) -> None: ...

def explain_law(
    splits: Splits,
    intervals: Intervals,
    functionals: Floats,
    mixing: Floats,
    first: int,
    last: int,
    mean: Floats,
    contrast: Floats,
    /,
) -> None: ...
def explain_row(
    splits: Splits, table: Floats, cells: Places, first: int, last: int, mean: Floats, contrast: Floats, /
) -> None: ...

# forest_block.cpp
def instructions() -> list[str]: ...
def explain_block(
    splits: Splits, table: Floats, cells: Places, mean: Floats, contrast: Floats, only: str, /
) -> None: ...
def effects_block(
    splits: Splits, table: Floats, shares: Floats, cells: Places, effects: Floats, only: str, /
) -> None: ...
def squares_of_pool(
    cells: Places,
    answers: Floats,
    factors: Floats,
    curves: Floats,
    bases: Floats,
    weights: Floats,
    squares: Floats,
    only: str,
    /,
) -> None: ...

# forest_contributions.cpp
def edge_masses(
    splits: Splits,
    intervals: Intervals,
    functionals: Floats,
    mixing: Floats,
    left_out: Bools,
    masses: Floats,
    /,
) -> None: ...
def add_contributions(
    splits: Splits,
    intervals: Intervals,
    masses: Floats,
    cells: Places,
    places: Places,
    members: Bools,
    first: Ints,
    trees: Places,
    t: Floats,
    weights: Floats,
    base: Floats,
    sums: Floats,
    only: str,
    /,
) -> None: ...
def add_single_rows(
    splits: Splits,
    intervals: Intervals,
    masses: Floats,
    cells: Places,
    places: Places,
    members: Bools,
    first: Ints,
    trees: Places,
    t: Floats,
    weights: Floats,
    base: Floats,
    sums: Floats,
    only: str,
    /,
) -> None: ...

# between_rows.cpp
def add_between(
    trees: Trees, value: Floats, x: Floats, other: Floats, base: Floats, sums: Floats, /
) -> None: ...

# forest_pairs.cpp
def add_forest_pairs(
    splits: Splits,
    intervals: Intervals,
    masses: Floats,
    cells: Places,
    places: Places,
    members: Bools,
    first: Ints,
    trees: Places,
    t: Floats,
    weights: Floats,
    pairs: Floats,
    only: str,
    /,
) -> None: ...

# joint_contributions.cpp
def add_joint_contributions(
    trees: Trees,
    value: Floats,
    first: int,
    last: int,
    x: Floats,
    background: Floats,
    weights: Floats,
    base: Floats,
    sums: Floats,
    /,
) -> None: ...

# joint_pairs.cpp
def add_joint_pairs(
    trees: Trees,
    value: Floats,
    first: int,
    last: int,
    x: Floats,
    background: Floats,
    weights: Floats,
    pairs: Floats,
    /,
) -> None: ...

# joint_background.cpp
class JointBackground:
    def __init__(
        self, trees: Trees, value: Floats, first: int, last: int, background: Floats, room: int, /
    ) -> None: ...
    @property
    def end(self) -> int: ...
    @property
    def bytes(self) -> int: ...

def add_against(background: JointBackground, x: Floats, base: Floats, sums: Floats, /) -> None: ...

# trees.cpp
class Trees:
    def __init__(
        self,
        columns: int,
        feature: Ints,
        threshold: Floats,
        left: Ints,
        right: Ints,
        missing_left: Bools,
        set_of: Ints,
        sets: Bools,
        roots: Ints,
        /,
    ) -> None: ...

def add_leaves(trees: Trees, x: Floats, value: Floats, total: Floats, /) -> None: ...

# tuple_masses.cpp
class Tests:
    def __init__(self, trees: Trees, nodes: Ints, /) -> None: ...

def test_rows(tests: Tests, x: Floats, flags: Bools, /) -> None: ...
def tuple_masses(
    splits: Splits,
    intervals: Intervals,
    tests: Tests,
    of_group: Ints,
    x: Floats,
    counts: Places,
    ends: Ints,
    scales: Floats,
    rows: Floats,
    masses: Floats,
    /,
) -> None: ...

# tree_bounds.cpp
def bound_leaves(
    trees: Trees,
    ends: Floats,
    missing: Bools,
    codes: Bools,
    value: Floats,
    bounds: Floats,
    undecided: Ints,
    /,
) -> None: ...

# leaf_boxes.cpp
class Leaves:
    def __init__(
        self,
        tree: Ints,
        value: Floats,
        first: NDArray[int32],
        last: NDArray[int32],
        bits: NDArray[uint64],
        sizes: Ints,
        /,
    ) -> None: ...

class LeafBoxes:
    def __init__(
        self,
        leaves: Leaves,
        first: Ints,
        last: Ints,
        bits: NDArray[uint64],
        reached: Ints,
        base: float,
        limit: float,
        /,
    ) -> None: ...
    @property
    def low(self) -> float: ...
    @property
    def cut(self) -> int: ...
    @property
    def is_full(self) -> bool: ...
    def advance(self, most: int, first: Ints, last: Ints, bits: NDArray[uint64], /) -> int: ...

# presence.cpp
def presence_paths(
    word_of: Ints,
    value_of: Floats,
    fill: Floats,
    words: int,
    trees: Trees,
    leaf: Ints,
    product: Ints,
    word: Ints,
    present: Bools,
    /,
) -> tuple[int, int]: ...

# words.cpp
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
) -> None: ...

# subsets.cpp
def add_subsets(
    c: Floats,
    a: Floats,
    b: Floats,
    base: Floats,
    member: Ints,
    member_start: Ints,
    excess: Floats,
    excess_start: Ints,
    kept: Ints,
    weights: Floats,
    seed: int,
    effects: Floats,
    totals: Floats,
    /,
) -> None: ...

# waves.cpp
def add_waves(
    on_real: Floats,
    on_imaginary: Floats,
    off: Floats,
    width: Ints,
    real: Floats,
    imaginary: Floats,
    within: Floats,
    profile: Floats,
    loss: Floats,
    /,
) -> None: ...

# node_products.cpp
def add_node_products(
    means: Sequence[Floats],
    replaced: Sequence[Floats],
    patterns: Ints,
    weights: Floats,
    sums: Floats,
    changes: Floats,
    /,
) -> None: ...

# kept_products.cpp
def add_kept_products(
    means: Floats,
    along: Floats,
    across: Floats,
    patterns: Ints,
    start: Ints,
    first: Ints,
    second: Ints,
    shares: Floats,
    weights: Floats,
    sums: Floats,
    changes: Floats,
    only: str,
    /,
) -> None: ...

# exponentials.cpp
def add_exponentials(
    value: Floats,
    weight: Floats,
    start: Ints,
    nodes: Floats,
    equidistant: int,
    offsets: Floats,
    sums: Floats,
    /,
) -> None: ...

# switches.cpp
def add_products(
    on: Floats, off: Floats, law: Floats, every: Floats, within: Floats, mean: Floats, coef: Floats, /
) -> None: ...

# pairwise.cpp
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
    q: Floats,
    /,
) -> tuple[float, float]: ...
def best_pair(
    gram: Floats, moments: Floats, ones: Floats, swept: Floats, square: float, target: float, below: float, /
) -> tuple[float, int, int]: ...
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
) -> None: ...

# pool.cpp
def pool_sums(
    cells: NDArray[Any], instances: NDArray[Any], weights: Floats, values: Floats, sums: Floats, /
) -> None: ...
def pool_gram(
    cells: NDArray[Any],
    instances: NDArray[Any],
    weights: Floats,
    gram: Floats,
    squares: Floats,
    numbers: Floats,
    /,
) -> None: ...
def pool_errors(
    cells: NDArray[Any],
    instances: NDArray[Any],
    weights: Floats,
    answers: Floats,
    residuals: Floats,
    differs: NDArray[uint8],
    limits: Floats,
    coef: Floats,
    center: Floats,
    powers: Floats,
    moved: Floats,
    totals: Floats,
    sides: Floats,
    separate: bool,
    /,
) -> None: ...
