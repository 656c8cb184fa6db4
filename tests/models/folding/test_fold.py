"""Folding: f(φ(x)) of random forests, sums and products equals f at φ(x), and bricks integrate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limes
import oracle
import strategies
from effort import crossed
from internals import (
    Affine,
    Bump,
    CannotRead,
    Codebook,
    Combination,
    CurveMap,
    Decay,
    Filled,
    Identity,
    Interval,
    Linear,
    Lookup,
    LookupMap,
    ModelColumn,
    MonotoneMap,
    Polynomial,
    Power,
    Quadratic,
    Reduced,
    Shape,
    SmoothFunctions,
    Stacked,
    Step,
    StepMap,
    Sum,
    SumOfProducts,
    _float_of,
    _key_of,
    _tree_rewriting,
    fold,
    identity_map,
    on_common_domains,
    then,
)
from limes.models import forms

NAN = np.array([np.nan])
NAMES = ("a", "b", "c")


# -- maps of one column -----------------------------------------------------------------------------------


def scaled(slope, center, value=0.0, *, kinks=()):
    return MonotoneMap(
        lambda v: (np.asarray(v, float) - center) * slope + value,
        Affine(slope, center, value),
        falling=slope < 0,
        kinks=kinks,
    )


def filled(value):
    return MonotoneMap(lambda v: np.where(np.isnan(v), value, v), Affine(1.0), plain=True, kinks=())


LOG = MonotoneMap(lambda v: np.log(np.asarray(v, float)), start=0.0, kinks=())
CLIP = MonotoneMap(lambda v: np.clip(v, -0.5, 0.8), kinks=(-0.5, 0.8))


def random_map(rng, kinds=("scaled", "falling", "filled", "bins", "categories", "open", "cube", "log")):
    kind = rng.choice(kinds)
    makers = {
        "scaled": lambda: scaled(rng.uniform(0.3, 3), rng.normal(), rng.normal()),
        "falling": lambda: scaled(-rng.uniform(0.3, 3), rng.normal()),
        "filled": lambda: then(then(identity_map(), filled(rng.normal())), scaled(rng.uniform(0.3, 3), 0.3)),
        "bins": lambda: StepMap(np.sort(rng.normal(size=4)), rng.normal(size=5), rng.normal()),
        "categories": lambda: LookupMap(np.arange(3.0), rng.normal(size=5), closed=True),
        "open": lambda: LookupMap(np.arange(3.0), rng.normal(size=5), closed=False),
        "cube": lambda: MonotoneMap(lambda v: np.asarray(v, float) ** 3 + v),
        "log": lambda: LOG,
    }
    return makers[kind]()


def values_of(columns, x):
    """Return what the model sees of rows x."""
    return np.stack([np.asarray(c.map(x[:, c.source]), float) for c in columns], axis=1)


def rows(rng, columns, extra, n=400):
    """Rows of whole numbers, other numbers and NaN, and the given numbers with their neighbours."""
    x = rng.choice([0.0, 1.0, 2.0, 3.0, -1.0, 0.5, np.nan], (n, 3)) + rng.choice([0, 0, rng.normal()], (n, 3))
    near = np.concatenate([extra, np.nextafter(extra, np.inf), np.nextafter(extra, -np.inf), [0.3]])
    x = np.where(rng.random(x.shape) < 0.5, rng.choice(near[np.isfinite(near)], x.shape), x)
    for c in on_common_domains(columns):
        if isinstance(c.map, LookupMap) and c.map.closed:
            x[:, c.source] = rng.choice([*c.map.keys, np.nan], n)
    return x


def compare(form, columns, x, tolerance=1e-12):
    folded = fold(form, columns, NAMES)
    assert folded.size == 3
    expected = form.predict(values_of(columns, x))
    np.testing.assert_allclose(folded.predict(x), expected, rtol=tolerance, atol=tolerance)
    return folded


@given(strategies.rngs)
def test_a_folded_forest_predicts_what_the_forest_predicts(rng):
    columns = [ModelColumn(int(rng.integers(3)), random_map(rng)) for _ in range(4)]
    probe = np.concatenate([np.asarray(c.map(np.array([0.0, 1.0, 2.0, 0.7, -1.3])), float) for c in columns])
    places = [np.unique(probe[np.isfinite(probe)])] * 4
    outputs = (2,) if rng.random() < 0.3 else ()
    trees = [strategies.random_tree(rng, places, 4, outputs) for _ in range(3)]
    form = strategies.as_forest(trees, 4, outputs)
    x = rows(rng, columns, np.concatenate([places[0], rng.normal(size=20)]))
    folded = fold(form, columns, NAMES)
    edges = folded.threshold[(folded.set_of < 0) & (folded.feature >= 0)]
    x = np.concatenate([x, rows(rng, columns, np.append(edges, 0.1))])
    expected = np.stack([strategies.walk(trees, row) for row in values_of(columns, x)])
    np.testing.assert_allclose(folded.predict(x), expected, rtol=1e-12, atol=1e-12)


@given(strategies.rngs)
def test_a_forest_that_splits_by_category_folds_behind_codes_and_behind_nothing(rng):
    sets = rng.random((4, 5)) < 0.5
    tree = strategies.as_forest([strategies.random_tree(rng, [np.array([0.5, 1.5, 2.5])] * 2, 3)], 2)
    inner = tree.feature == 0
    tree = forms.Forest(
        **{**vars(tree), "set_of": np.where(inner, rng.integers(0, 4, inner.size), -1), "sets": sets}
    )
    tracks = [
        identity_map(),
        filled(2.0),
        LookupMap(np.arange(3.0), np.array([4.0, 0.0, 9.0, np.nan, 1.0]), closed=True),
        StepMap(np.array([0.2, 1.0]), np.array([3.0, 1.0, 0.0]), np.nan),
    ]
    columns = [ModelColumn(1, tracks[rng.integers(4)]), ModelColumn(0, scaled(2.0, 0.1))]
    compare(tree, columns, rows(rng, columns, np.array([0.2, 1.0, 3.0, 4.0])))


@pytest.mark.parametrize("closed", [True, False])
def test_one_column_read_as_number_and_as_category(closed):
    rng = np.random.default_rng(0)
    codes = LookupMap(np.array([0.0, 2.0, 7.0]), np.array([1.0, 0.0, 5.0, -1.0, -2.0]), closed)
    columns = [ModelColumn(0, codes), ModelColumn(0, scaled(0.5, 1.0)), ModelColumn(2, identity_map())]
    x = rows(rng, columns, np.array([0.0, 2.0, 7.0]))
    tree = strategies.as_forest([strategies.random_tree(rng, [np.array([-0.5, 0.5, 2.0])] * 3, 5)], 3)
    compare(tree, columns, x)
    linear = Linear(np.array([1.0, -2.0, 0.0]), 0.5)
    result = compare(linear, columns, x[~np.isnan(x).any(axis=1)])
    assert isinstance(result.reduce().functions[0], Lookup if closed else Stacked)


def test_copies_of_subtrees_are_kept_small_or_refused(monkeypatch):
    """30 one-of-many tests of two columns in a row: at most one region for each pair of intervals."""
    cuts = np.arange(30.0)
    columns = [ModelColumn(k % 2, StepMap(cuts, (np.arange(31) == k).astype(float), 0.0)) for k in range(30)]
    n = 61
    feature = np.full(n, -1)
    left, right = np.full(n, -1), np.full(n, -1)
    feature[0:60:2], left[0:60:2], right[0:60:2] = np.arange(30), np.arange(2, 62, 2), np.arange(1, 61, 2)
    tree = forms.Forest(
        feature=feature,
        threshold=np.full(n, 0.5),
        left=left,
        right=right,
        missing_left=np.zeros(n, dtype=bool),
        value=np.random.default_rng(0).normal(size=n),
        roots=np.zeros(1, dtype=np.int64),
        intercept=np.zeros(()),
        size=30,
    )
    x = np.random.default_rng(1).uniform(-1, 31, (2000, 3))
    x[::7, 0] = np.nan
    folded = compare(tree, columns, x)
    assert folded.feature.size < 2 * 32 * 32
    monkeypatch.setattr(_tree_rewriting, "_ALWAYS_FINE", 100)
    monkeypatch.setattr(_tree_rewriting, "_GROWTH", 1)
    with pytest.raises(CannotRead, match="would grow from 61 to more than 100 nodes"):
        fold(tree, columns, NAMES)


# -- sums and products ------------------------------------------------------------------------------------


def bricks(rng, m):
    """Families of m functions of every kind."""
    cuts = np.sort(rng.normal(size=3))
    low = rng.normal(size=m)
    return {
        Identity: Identity(),
        Power: Power(rng.integers(0, 3, m)),
        Polynomial: Polynomial(rng.normal(size=(m, 3)), 0.4, rng.normal(size=m)),
        Bump: Bump(rng.normal(size=m), 0.7),
        Interval: Interval(low, low + rng.uniform(0, 2, m), rng.random(m) < 0.5),
        Step: Step(cuts, rng.normal(size=(m, 4)), rng.normal(size=m)),
        Shape: Shape(np.sin),
        SmoothFunctions: SmoothFunctions(lambda x: np.stack([np.abs(x), np.cos(x)]), (0.0,)),
        Decay: Decay(rng.normal(size=m), 1.7),
        Filled: Filled(Power(rng.integers(0, 3, m)), rng.normal(size=m), rng.normal(size=m)),
        Stacked: Stacked((Power(rng.integers(0, 3, m)), Identity())),
    }


LINES = {
    "rising": scaled(0.7, 0.2, 0.1),
    "falling": scaled(-1.3, 0.2),
    "filled": then(then(identity_map(), filled(0.3)), scaled(2.0, 0.5)),
    "bins": StepMap(np.array([-0.5, 0.1, 0.9]), np.array([1.0, -1.0, 0.3, 2.0]), 0.7),
    "flag": StepMap(np.zeros(0), np.zeros(1), 1.0),
    "bent": then(scaled(0.7, 0.2, 0.1), CLIP),
    "smooth": then(scaled(-1.3, 0.2), MonotoneMap(np.tanh, kinks=())),
}


def test_keys_of_floats_are_in_their_order_and_neighbours_one_apart():
    largest = np.finfo(float).max
    x = np.array([-largest, -1.0 - np.finfo(float).eps, -0.1, -5e-324, 0.0, 5e-324, 0.1, 0.3, largest])
    np.testing.assert_array_equal(_float_of(_key_of(x)), x)
    np.testing.assert_array_equal(_key_of(np.nextafter(x[:-1], np.inf)) - _key_of(x[:-1]), 1)


@pytest.mark.parametrize(
    ("line", "kind", "outputs"), crossed(LINES, bricks(np.random.default_rng(0), 3), [(), (2,)])
)
def test_a_sum_of_any_bricks_folds_and_integrates(line, kind, outputs):
    rng = np.random.default_rng(3)
    families = [bricks(rng, 3)[kind], bricks(rng, 3)[Step], None]
    loadings = [rng.normal(size=(len(f(NAN)) if f else 1, *outputs)) for f in families]
    terms = Sum(tuple(families), tuple(loadings), rng.normal(size=outputs))
    columns = [ModelColumn(0, LINES[line]), ModelColumn(0, scaled(1.5, -0.3)), ModelColumn(1, identity_map())]
    x = np.column_stack([np.linspace(-3, 3, 61), np.zeros(61), np.zeros(61)])
    x[5, 0] = np.nan
    folded = fold(Reduced(terms), columns, NAMES)
    expected = terms.predict(values_of(columns, x))
    np.testing.assert_allclose(folded.predict(x), expected, rtol=1e-12, atol=1e-12)
    assert_limit(folded, lambda r: terms.predict(values_of(columns, r)))


def assert_limit(folded, f):
    """The exact surrogate against quadrature, with panels that end wherever these functions may break."""
    edges, means, stds = [np.array([-1.2, 0.1, 1.5])] * 2, [np.array([-0.4, 0.9])] * 2, [np.ones(2) * 0.6] * 2
    one = ([np.array([0.0, 1.0])], [np.array([0.5])], [np.array([0.0])])
    edges, means, stds = edges + one[0], means + one[1], stds + one[2]
    design = limes.designs.ProductDesign.from_bins(edges, means, stds, [0.5, -0.3, 0.5], 0.8)
    terms = folded.reduce()
    surrogate = limes.limit(design, folded)
    breaks = [breaks_of(function) for function in terms.functions]
    columns = [
        oracle.bin_weighted(oracle.binned_column(e, m, s, breaks=b, resolution=0.5), oracle.bin_of(e, i), 0.8)
        for e, m, s, b, i in zip(edges, means, stds, breaks, [0.5, -0.3, 0.5], strict=True)
    ]
    truth = oracle.truth(columns, f, [1, 0, 0])
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < oracle.EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < oracle.EXACT


def breaks_of(function):
    """Where a brick may jump."""
    inner = getattr(function, "families", ()) or (
        (function.function,) if hasattr(function, "function") else ()
    )
    result = [p for f in inner for p in breaks_of(f)]
    for name in ("cuts", "lower", "upper", "breaks", "center" if isinstance(function, Decay) else ""):
        result += np.asarray(getattr(function, name, [])).tolist()
    return [p for p in result if np.isfinite(p)]


@pytest.mark.parametrize("kind", [Power, Polynomial, Bump, Interval, Step, Decay])
@pytest.mark.parametrize("line", [k for k in LINES if k != "flag"])
def test_a_product_folds_and_integrates(kind, line):
    rng = np.random.default_rng(4)
    m = 6
    families = (bricks(rng, m)[kind], bricks(rng, m)[Step], bricks(rng, m)[kind])
    codes = LookupMap(np.array([0.0, 1.0]), np.array([0.3, -0.8, 0.0, 1.5]), closed=True)
    columns = [ModelColumn(0, LINES[line]), ModelColumn(0, LINES["flag"]), ModelColumn(1, scaled(1.5, -0.3))]
    terms = SumOfProducts(families, rng.normal(size=m), np.array(0.3))
    x = np.column_stack([np.linspace(-3, 3, 61), rng.normal(size=61), np.zeros(61)])
    x[5, 0] = np.nan
    folded = fold(Reduced(terms), columns, NAMES)
    expected = terms.predict(values_of(columns, x))
    np.testing.assert_allclose(folded.predict(x), expected, rtol=1e-12, atol=1e-12)
    assert_limit(folded, lambda r: terms.predict(values_of(columns, r)))
    both = [
        ModelColumn(0, codes),
        ModelColumn(0, LookupMap(codes.keys, codes.values[::-1].copy(), closed=True)),
        columns[2],
    ]
    x[:, 0] = rng.choice([0.0, 1.0, np.nan], 61)
    compare(Reduced(terms), both, x)


def test_products_of_one_column_with_itself():
    columns = [
        ModelColumn(0, scaled(2.0, 0.1)),
        ModelColumn(0, scaled(0.5, 0.3, 1.0)),
        ModelColumn(1, LINES["bins"]),
    ]
    x = np.column_stack([np.linspace(-2, 2, 41), np.linspace(-1, 3, 41), np.zeros(41)])
    linear = (Power(np.array([1, 0, 1])), Power(np.array([0, 1, 1])), Power(np.array([2, 1, 0])))
    compare(Reduced(SumOfProducts(linear, np.array([1.0, -2.0, 0.5]), np.zeros(()))), columns, x)
    boxes = tuple(Interval(np.array([-1.0]), np.array([0.6]), np.array([False])) for _ in range(3))
    compare(Reduced(SumOfProducts(boxes, np.ones(1), np.zeros(()))), columns, x)
    cubes = Reduced(
        SumOfProducts((Power(np.array([2])), Power(np.array([1])), None), np.ones(1), np.zeros(()))
    )
    with pytest.raises(CannotRead, match="column 'a': the model multiplies two functions of one column"):
        fold(cubes, columns, NAMES)


# -- forms that keep their kind ---------------------------------------------------------------------------


def test_scalers_keep_linear_quadratic_and_gaussian_forms():
    rng = np.random.default_rng(5)
    maps = [scaled(0.5, 3.0), scaled(-2.0, 1.0, 0.5), scaled(1.0, 0.0), scaled(3.0, 0.1)]
    x = rng.normal(size=(50, 3))
    examples = [
        Linear(rng.normal(size=(4, 2)), rng.normal(size=2)),
        Quadratic(rng.normal(size=(4, 4)), rng.normal(size=4), 0.3),
        forms.GaussianKernels(rng.normal(size=(7, 4)), rng.normal(size=7), 0.9, 0.1),
    ]
    all_of_them = [ModelColumn(source, track) for source, track in zip((2, 0, 2, 1), maps, strict=True)]
    for form in examples:
        assert type(compare(form, all_of_them, x)) is type(form)
    both = Combination(examples[1:], np.array([1.0, -0.5]), np.array(2.0))
    assert isinstance(compare(both, all_of_them, x), Combination)
    # where a column is left out, it may be missing
    two_of_three = [ModelColumn(source, track) for source, track in zip((2, 0, 2, 0), maps, strict=True)]
    x[:, 1] = np.nan
    for form in (*examples, both):
        compare(form, two_of_three, x)
    # and where what is missing is filled in before an effect of 0
    harmless = [*all_of_them[:3], ModelColumn(1, then(filled(0.3), maps[3]))]
    compare(Linear(np.array([1.0, 2.0, 3.0, 0.0])), harmless, x)


def test_numbers_far_from_zero_lose_no_digits():
    """Seconds since 1970, standardised: neither coefficient nor product may be written out in x."""
    rng = np.random.default_rng(6)
    columns = [ModelColumn(0, scaled(1e-1, 1.7e9)), ModelColumn(1, scaled(1.0, 0.0))]
    x = np.column_stack([1.7e9 + rng.integers(-30, 30, 100), rng.normal(size=100)])
    for form in (Linear(np.array([1.0, 2.0])), Quadratic(np.ones((2, 2)), np.ones(2))):
        folded = fold(form, columns, ("t", "u"))
        np.testing.assert_allclose(folded.predict(x), form.predict(values_of(columns, x)), rtol=1e-13)


# -- maps -------------------------------------------------------------------------------------------------


@given(strategies.rngs, st.sampled_from(["scaled", "falling", "cube", "filled"]))
def test_cuts_are_the_last_number_before_the_map_passes(rng, kind):
    track = random_map(rng, (kind,))
    levels = np.concatenate([rng.normal(size=20) * 10.0 ** rng.integers(-3, 4), [0.0]])
    cuts = track.cut(levels)
    after = np.nextafter(cuts, np.inf)
    if track.falling:
        assert (track(cuts) > levels).all()
        assert (track(after) <= levels).all()
    else:
        assert (track(cuts) <= levels).all()
        assert (track(after) > levels).all()


def test_cuts_at_the_ends():
    np.testing.assert_array_equal(identity_map().cut(np.array([-np.inf, np.inf])), [-np.inf, np.inf])
    np.testing.assert_array_equal(scaled(-1.0, 0.0).cut(np.array([-np.inf, np.inf])), [np.inf, -np.inf])
    np.testing.assert_array_equal(CLIP.cut(np.array([-0.6, -0.5, 0.8])), [-np.inf, -0.5, np.inf])
    assert LOG.cut(np.array([-np.inf])) == 0.0


def test_a_map_that_falls_back_in_its_last_digit():
    """A few numbers beside a threshold are on the wrong side of it: trees follow them, nothing else does."""

    def uneven(by):
        odd = lambda v: np.asarray(v, float).view(np.int64) % 2 == 1  # noqa: E731
        return MonotoneMap(lambda v: np.where(odd(v), np.asarray(v) - by, v))

    track = uneven(1e-15)
    with pytest.raises(CannotRead, match="not monotone in the last digit of float64"):
        track.cut(np.array([0.7]))
    near = 0.7 + np.arange(-40, 41) * 2.0**-53
    tree = strategies.as_forest(
        [[(0, 0.7, 1, 2, True, 0.0), *[(-1, 0.0, -1, -1, False, v) for v in (1.0, 2.0)]]], 1
    )
    x = np.stack([near, near, near], axis=1)
    folded = compare(tree, [ModelColumn(1, track)], x)
    assert folded.feature.size > 9
    with pytest.raises(CannotRead, match="it is not monotone; use StandardScaler"):
        fold(tree, [ModelColumn(1, uneven(1e-10))], NAMES)


@pytest.mark.parametrize("threshold", [-1.0, -5e-324, 0.0, 5e-324, 0.25, np.inf])
@pytest.mark.parametrize("missing_left", [True, False])
def test_a_square_crosses_a_threshold_twice_once_or_nowhere(threshold, missing_left):
    square = CurveMap(lambda y: np.square(y)[None], even=True)
    tree = strategies.as_forest(
        [[(0, threshold, 1, 2, missing_left, 0.0), *[(-1, 0.0, -1, -1, False, v) for v in (1.0, 2.0)]]], 1
    )
    x = np.array([0.0, 5e-324, 1e-170, 1e-160, 0.5, np.nextafter(0.5, 1.0), 3.0, np.nan])
    x = np.concatenate([x, -x])
    compare(tree, [ModelColumn(0, square)], np.tile(x[:, None], len(NAMES)))


def test_forms_behind_a_logarithm():
    bins = then(LOG, StepMap(np.array([0.0]), np.array([1.0, 2.0]), 9.0))
    np.testing.assert_array_equal(bins(np.array([-1.0, 0.5, 1.0, 1.5, np.nan])), [9.0, 1.0, 1.0, 2.0, 9.0])
    with pytest.raises(CannotRead, match="impute first"):
        then(LOG, filled(0.0))
    with pytest.raises(CannotRead, match="turns the order around"):
        then(scaled(-1.0, 0.0), LOG)
    shifted = then(scaled(1.0, 2.0), LOG)
    assert shifted.start == 2.0
    assert np.isnan(shifted(np.array([np.nextafter(2.0, 0.0)])))[0]


def test_codebooks_refuse_unknown_values():
    book = Codebook({"x": 0.0, "y": 1.0}, None, None)
    levels = LookupMap(np.arange(2.0), np.array(["x", "z", None, None], dtype=object), closed=True)
    with pytest.raises(CannotRead, match="'z' was not in the training data"):
        then(levels, book)
    composed = then(
        LookupMap(np.arange(2.0), np.array(["y", "x", None, None], dtype=object), closed=True), book
    )
    np.testing.assert_array_equal(composed(np.array([0.0, 1.0, np.nan])), [1.0, 0.0, np.nan])
    with pytest.raises(CannotRead, match="categories such as 'x', but the column is taken as numbers"):
        then(identity_map(), book)
    with pytest.raises(CannotRead, match="after another step has changed them"):
        then(scaled(2.0, 0.0), Codebook({1.0: 0.0}, None, None))
    with pytest.raises(CannotRead, match="differently from the others"):
        then(identity_map(), lambda v: v)
    with pytest.raises(CannotRead, match="share no category"):
        on_common_domains(
            [
                ModelColumn(0, LookupMap(np.array([k]), np.array([1.0, np.nan, np.nan]), closed=True))
                for k in (1.0, 2.0)
            ]
        )


def test_steps_that_cannot_be_folded_have_a_reason():
    cube = ModelColumn(0, MonotoneMap(lambda v: np.asarray(v, float) ** 3))
    with pytest.raises(CannotRead, match="column 'a': it is read in front of trees only"):
        fold(Linear(np.ones(1)), [cube], ("a",))
    with pytest.raises(CannotRead, match="column 'a': it is read in front of trees only"):
        fold(forms.GaussianKernels(np.zeros((1, 1)), np.ones(1), 1.0), [cube], ("a",))
    with pytest.raises(CannotRead, match="column 'a': it is read in front of trees only"):
        fold(Quadratic(np.ones((1, 1)), np.ones(1)), [cube], ("a",))
    with pytest.raises(CannotRead, match="reads 2 columns and is given 1"):
        fold(Linear(np.ones(2)), [cube], ("a",))
    half = LookupMap(np.array([0.5, 1.0]), np.array([0.0, 1.0, 0.0, 0.0]), closed=True)
    tree = strategies.as_forest(
        [[(0, 0.5, 1, 2, True, 0.0), *[(-1, 0.0, -1, -1, False, v) for v in (1.0, 2.0)]]], 1
    )
    with pytest.raises(CannotRead, match=r"column 'a': trees split it by its categories.*such as 0.5"):
        fold(tree, [ModelColumn(0, half)], ("a",))
    by_set = forms.Forest(**{**vars(tree), "set_of": np.array([0, -1, -1]), "sets": np.ones((1, 2), bool)})
    with pytest.raises(CannotRead, match="takes it for categories, and a step before the model scales it"):
        fold(by_set, [ModelColumn(0, scaled(2.0, 0.0))], ("a",))
    with pytest.raises(CannotRead, match="object cannot be folded"):
        fold(type("object", (), {"size": 1})(), [cube], ("a",))
