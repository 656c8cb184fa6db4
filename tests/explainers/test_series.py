"""Series: exact against every perturbed series, which this file composes step by step."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge

import limes
import words
from internals import CHECK_CALLS, drawn_lanes
from limes import SeriesExplainer
from limes.exceptions import InputError, ModelError, UnknownOptionError

RNG = np.random.default_rng(0)
STEPS = 24
SERIES = np.cumsum(RNG.standard_normal(STEPS))
PAIR = np.stack([SERIES, RNG.standard_normal(STEPS)], axis=1)
TRAINING = np.cumsum(RNG.standard_normal((80, STEPS)), axis=1)


def largest(batch):
    """No sum over segments."""
    flat = batch.reshape(len(batch), -1)
    return flat.max(axis=1) - 0.3 * flat[:, 2] * flat[:, -3]


def sixths(steps, count):
    """Where segments of equal length begin and end."""
    return [(steps * j // count, steps * (j + 1) // count) for j in range(count)]


def every_series(series, spans, fill):
    """The series of every subset of segments [(start, end), ...]."""
    composed = []
    for z in words.subsets(len(spans)):
        one = np.array(series, dtype=float)
        for (start, end), kept in zip(spans, z, strict=True):
            if not kept:
                one[start:end] = fill[start:end]
        composed.append(one)
    return np.stack(composed)


assert_exact = partial(words.assert_exact, kind="words")


def straight(series, spans):
    """Lines from the value before each segment to the one behind it."""
    line = np.array(series, dtype=float)
    for start, end in spans:
        before = series[start - 1] if start else series[end]
        behind = series[end] if end < len(series) else before
        for k, step in enumerate(range(start, end), start=1):
            line[step] = before + (behind - before) * k / (end - start + 1)
    return line


@pytest.mark.parametrize("bandwidth", [0.25, 1.0, np.inf])
@pytest.mark.parametrize("fill", ["mean", "line", 0.5, "steps"])
def test_functions_are_exact_by_all_subsets(fill, bandwidth):
    spans = sixths(STEPS, 6)
    hidden = {
        "mean": np.full(STEPS, SERIES.mean()),
        "line": straight(SERIES, spans),
        "steps": TRAINING.mean(axis=0),
    }.get(fill, np.full(STEPS, 0.5))
    filled = TRAINING.mean(axis=0) if fill == "steps" else fill
    explanation = SeriesExplainer(largest, count=6, fill=filled, bandwidth=bandwidth)(SERIES)
    assert_exact(explanation, largest(every_series(SERIES, spans, hidden)), bandwidth)
    assert explanation.model_calls <= 64 + CHECK_CALLS


@pytest.mark.parametrize("model", [Ridge(), RandomForestRegressor(9, random_state=0)])
def test_estimators_are_read(model):
    model.fit(TRAINING, TRAINING[:, 5] - TRAINING[:, 20])
    spans = sixths(STEPS, 8)
    explanation = SeriesExplainer(model, count=8, method="exact", max_calls=1)(SERIES)
    composed = every_series(SERIES, spans, np.full(STEPS, SERIES.mean()))
    assert_exact(explanation, model.predict(composed))
    assert explanation.model_calls == 0


def test_probabilities_of_classifiers_are_read():
    model = LogisticRegression(C=0.01).fit(TRAINING, TRAINING[:, 5] > TRAINING[:, 20])
    explanation = SeriesExplainer(model, count=8, method="exact", max_calls=1)(SERIES)
    composed = every_series(SERIES, sixths(STEPS, 8), np.full(STEPS, SERIES.mean()))
    assert explanation.output_names == ("False", "True")
    assert_exact(explanation[..., "True"], model.predict_proba(composed)[:, 1])


def test_channels_together_and_apart():
    model = Ridge().fit(RNG.standard_normal((60, 2 * STEPS)), RNG.standard_normal(60))
    spans = sixths(STEPS, 4)
    mean = np.broadcast_to(PAIR.mean(axis=0), PAIR.shape)
    together = SeriesExplainer(model, count=4, max_calls=1, method="exact")(PAIR)
    composed = every_series(PAIR, spans, mean)
    assert_exact(together, model.predict(composed.reshape(len(composed), -1)))
    frame = pd.DataFrame(PAIR, columns=["ecg", "flow"])
    apart = SeriesExplainer(model, count=4, channels="apart", max_calls=1, method="exact")(frame)
    assert apart.feature_names[:1] + apart.feature_names[-1:] == ("ecg, 0 to 5", "flow, 18 to 23")
    # one channel behind the other is one long series
    joined = every_series(PAIR.T.ravel(), sixths(2 * STEPS, 8), mean.T.ravel())
    order = np.stack([joined[:, :STEPS], joined[:, STEPS:]], axis=2)
    assert_exact(apart, model.predict(order.reshape(len(order), -1)))


def test_channels_first():
    seen = []

    def model(batch):
        seen.append(batch.shape)
        return batch[:, 1, :3].sum(axis=1) * batch[:, 0, -1]

    explanation = SeriesExplainer(model, count=4, layout="first", fill=0.0)(PAIR)
    composed = every_series(PAIR, sixths(STEPS, 4), np.zeros(PAIR.shape))
    assert_exact(explanation, composed[:, :3, 1].sum(axis=1) * composed[:, -1, 0])
    assert {shape[1:] for shape in seen} == {(2, STEPS)}


@pytest.mark.parametrize("model", [largest, Ridge().fit(TRAINING, TRAINING[:, 3])])
def test_bands_of_frequencies(model):
    explanation = SeriesExplainer(model, segments="frequency", count=4)(SERIES)
    answer = getattr(model, "predict", model)
    # the discrete Fourier transform as a matrix
    steps = np.arange(STEPS)
    waves = np.exp(2j * np.pi * np.outer(steps, steps) / STEPS)
    weights = waves.conj() @ SERIES / STEPS
    edges = [1, 4, 7, 10, 13]
    composed = []
    for z in words.subsets(4):
        one = np.full(STEPS, SERIES.mean())
        for first, last, kept in zip(edges[:-1], edges[1:], z, strict=True):
            for k in range(first, last):
                both = {k, STEPS - k}
                one = one + kept * sum(waves[:, m] * weights[m] for m in both).real
        composed.append(one)
    assert_exact(explanation, answer(np.stack(composed)))
    assert explanation.feature_names[0] == "0.0417 to 0.125 cycles a step"
    np.testing.assert_allclose(explanation.predictions[0], answer(SERIES[None])[0], rtol=1e-12)


def test_change_points_are_where_a_series_changes():
    levels = np.repeat([0.0, 5.0, -3.0, 1.0], [7, 11, 4, 18])
    series = levels + 0.1 * RNG.standard_normal(levels.size)
    explanation = SeriesExplainer(lambda x: x[:, 7:18].mean(axis=1), segments="changepoint", count=4)(series)
    assert explanation.feature_names == ("0 to 6", "7 to 17", "18 to 21", "22 to 39")


def test_real_prices():
    prices = np.load(Path(mpl.get_data_path()) / "sample_data" / "goog.npz")["price_data"]
    closes = np.log(prices["adj_close"].astype(float))
    windows = np.lib.stride_tricks.sliding_window_view(np.diff(closes), 31)
    model = RandomForestRegressor(20, min_samples_leaf=5, random_state=0)
    model.fit(windows[:-100, :30], windows[:-100, 30])
    days = [str(day) for day in prices["date"][-31:-1]]
    series = pd.Series(windows[-1, :30], index=days)
    explanation = SeriesExplainer(model, count=10)(series)
    composed = every_series(series.to_numpy(), sixths(30, 10), np.full(30, series.mean()))
    d, answers = 10, model.predict(composed)
    _, coef, _ = words.surrogate(words.law("words", d, 0.25), answers)
    np.testing.assert_allclose(
        explanation.coefficients.values[0], coef, rtol=1e-9, atol=1e-9 * np.abs(coef).max()
    )
    assert explanation.feature_names[0] == f"{days[0]} to {days[2]}"
    assert "exact: read off the model" in str(explanation)


def test_many_segments_are_sampled_within_their_errors():
    spans = sixths(STEPS, 12)
    exact = SeriesExplainer(largest, count=12, max_calls=4104)(SERIES)
    assert_exact(exact, largest(every_series(SERIES, spans, np.full(STEPS, SERIES.mean()))))
    sampled = SeriesExplainer(largest, count=12, max_calls=512, method="sampled")(SERIES)
    assert (sampled.coefficients.standard_errors > 0).all()
    assert (
        np.abs(sampled.coefficients.values - exact.coefficients.values)
        < 5 * sampled.coefficients.standard_errors
    ).all()


def test_several_series_and_a_round_trip():
    explainer = SeriesExplainer(largest, count=5)
    several = explainer([SERIES, SERIES[:11]])
    assert [len(one.feature_names) for one in several] == [5, 5]
    np.testing.assert_array_equal(several[0].coefficients.values, explainer(SERIES).coefficients.values)
    restored = limes.Explanation.from_json(several[0].to_json())
    np.testing.assert_array_equal(restored.coefficients.values, several[0].coefficients.values)
    axes = restored.plot.series(title="pulse")
    assert axes.get_title(loc="left").startswith("pulse")
    assert 'class="lx-series"' in restored.to_html()
    assert limes.diagnose(several[0]).rows


def test_a_damaged_file_is_refused():
    explanation = SeriesExplainer(largest, count=5)(SERIES)
    damaged = limes.Explanation.from_json(explanation.to_json().replace('"ticks":["0"', '"tocks":["0"'))
    damaged.provenance["stretches"][damaged.conditions[0][0]] = [["x", 1, 2]]
    with pytest.raises(InputError, match="damaged"):
        damaged.plot.series()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segments": "equals"}, "did you mean 'equal'"),
        ({"segments": [0, 1]}, "whole number a step"),
        ({"segments": "frequency", "fill": 0.0}, "have no effect on bands"),
        ({"segments": "frequency", "fill": "zero"}, "have no effect on bands"),
        ({"fill": "means"}, "did you mean 'mean'"),
        ({"fill": [1.0, 2.0]}, "one a step"),
        ({"fill": np.nan}, "finite numbers"),
        ({"count": 0}, "count must be a whole number"),
        ({"channels": "apart"}, "needs a series"),
        ({"layout": "middle"}, "layout='middle'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        SeriesExplainer(largest, **options)(SERIES)


def test_bands_of_a_series_are_the_same_in_any_batch():
    """Sums of bands do not round by the number of rows beside them."""
    rng = np.random.default_rng(0)
    item = limes.SeriesPart(segments="frequency", count=12).parse(rng.standard_normal((61, 2)))
    z = (rng.random((200, 12)) < 0.5).astype(float)
    together = item.compose(z)
    for size in (1, 3, 7):
        parts = [item.compose(z[i : i + size]) for i in range(0, len(z), size)]
        np.testing.assert_array_equal(np.concatenate(parts), together)


def test_numbers_that_could_be_of_steps_or_of_channels_are_refused():
    """A fill of n numbers for n steps and n channels has to say which it is of."""
    square, numbers = RNG.standard_normal((3, 3)), np.array([0.5, 1.5, 2.5])
    with pytest.raises(InputError, match=r"\(3, 1\) for one a step, or \(1, 3\) for one a channel"):
        SeriesExplainer(largest, fill=numbers)(square)
    for fill in (numbers[:, None], numbers[None]):
        part = limes.SeriesPart(count=3, fill=fill).parse(square)
        np.testing.assert_array_equal(part.compose(np.zeros((1, 3)))[0], np.broadcast_to(fill, (3, 3)))


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (np.array([1.0, np.nan]), "nan at step 1, channel 0"),
        (np.array(["a"]), "a series is numbers"),
        (np.array([]), "got shape"),
        (3.0, "got shape"),
        ([SERIES, np.array([np.inf])], "series 1: the series has inf"),
    ],
)
def test_bad_series(series, message):
    with pytest.raises(InputError, match=message):
        SeriesExplainer(largest)(series)


TURNED = RNG.standard_normal((3, 50))


@pytest.mark.parametrize(
    ("series", "layout", "words_of_it"),
    [
        (TURNED, None, ["(3, 50)", "series.T", "layout='first'", "3 series of 50 steps", "layout='last'"]),
        (TURNED[:1], None, ["(1, 50)", "series[0]"]),
        (pd.DataFrame(TURNED), None, ["(3, 50)", "3 series of 50 steps"]),
        (TURNED.tolist(), "as an array", ["series.T"]),
        (np.stack([TURNED, TURNED]), None, ["series 0", "series.T"]),
        (TURNED, "first", ["series.T", "(steps, channels)"]),
    ],
)
def test_fewer_steps_than_channels_are_refused_with_the_remedies(series, layout, words_of_it):
    if layout == "as an array":
        series, layout = np.array(series), None
    with pytest.raises(InputError) as error:
        SeriesExplainer(largest, layout=layout)(series)
    assert all(word in str(error.value) for word in words_of_it)


def test_the_remedies_of_warnings_work():
    def second(batch):
        return batch[:, 1, 10:20].mean(axis=1)

    turned = SeriesExplainer(second, count=5, fill=0.0, layout="first")(TURNED.T)
    composed = every_series(TURNED.T, sixths(50, 5), np.zeros((50, 3)))
    assert_exact(turned, composed[:, 10:20, 1].mean(axis=1))
    several = SeriesExplainer(largest, count=5)(list(np.asarray(TURNED)))
    assert [len(one.feature_names) for one in several] == [5, 5, 5]
    confirmed = SeriesExplainer(largest, layout="last")(TURNED)
    assert confirmed.feature_names == ("0", "1", "2")
    assert confirmed.warnings == ()
    part = {"s": limes.SeriesPart(count=5, layout="first", fill=0.0)}
    composite = limes.CompositeExplainer(lambda parts: second(parts["s"]), part)({"s": TURNED.T})
    assert composite.coefficients.values == pytest.approx(turned.coefficients.values)
    with pytest.raises(InputError, match=r"series\.T"):
        limes.CompositeExplainer(lambda parts: second(parts["s"]), {"s": limes.SeriesPart()})({"s": TURNED})


@pytest.mark.parametrize("matrix", [TRAINING[:3], TRAINING[:1], pd.DataFrame(TRAINING[:3])])
def test_a_matrix_for_an_estimator_of_as_many_columns_is_several_series(matrix):
    model = Ridge().fit(TRAINING, TRAINING[:, 0])
    several = SeriesExplainer(model, count=4)(matrix)
    assert [one.predictions[0] for one in several] == pytest.approx(model.predict(np.asarray(matrix)))


@pytest.mark.parametrize(
    ("channels", "layout", "warned"), [(25, None, True), (25, "last", False), (9, None, False)]
)
def test_many_channels_are_a_warning(channels, layout, warned):
    series = RNG.standard_normal((40, channels))
    texts = SeriesExplainer(lambda batch: batch[:, 3, 0], count=4, layout=layout)(series).warnings
    assert any("one series of 40 steps and 25 channels" in text for text in texts) == warned


def test_other_mistakes():
    with pytest.raises(UnknownOptionError, match="did you mean 'segments'"):
        SeriesExplainer(largest, segment=4)
    with pytest.raises(InputError, match="fitted on 24 numbers"):
        SeriesExplainer(Ridge().fit(TRAINING, TRAINING[:, 0]))(SERIES[:9])
    with pytest.raises(ModelError, match="batch of"):
        SeriesExplainer(lambda batch: 1 / 0)(SERIES)
    with pytest.raises(InputError, match="channel='x' is neither"):
        SeriesExplainer(largest)(PAIR).plot.series(channel="x")
    with pytest.raises(InputError, match="no series to draw"):
        SeriesExplainer(largest, segments="frequency", count=4)(SERIES).plot.series()


def test_several_series_that_are_cut_short_are_counted_as_series():
    calls = []

    def stops(batch):
        calls.append(len(batch))
        if len(calls) > 3:
            raise KeyboardInterrupt
        return batch[:, 0]

    with pytest.raises(limes.exceptions.Interrupted, match="of 3 series are explained"):
        SeriesExplainer(stops, count=4)([SERIES, SERIES + 1.0, SERIES + 2.0], progress=False)


def test_the_line_in_a_page_goes_through_every_value():
    (lane,) = drawn_lanes(SeriesExplainer(largest, count=5)(SERIES), 0, 0)
    assert lane["path"].startswith("M")
    x, y = np.array([point.split() for point in lane["path"][1:].split("L")], dtype=float).T
    # a picture of 1000 x 100, in tenths, whose heights grow downwards
    np.testing.assert_allclose(x, 1000 * (np.arange(STEPS) + 0.5) / STEPS, atol=0.051)
    share = (y.max() - y) / np.ptp(y)
    np.testing.assert_allclose(share, (SERIES - SERIES.min()) / np.ptp(SERIES), atol=0.003)
    assert 0 < y.min() < y.max() < 100


class Conv1d:
    """Stand in for a network of torch: it has parts, and fails where channels are not second."""

    def modules(self):
        yield self

    def __call__(self, series):
        if np.shape(series)[1] != 3:
            raise RuntimeError("expected input to have 3 channels")
        return np.asarray(series).mean(axis=(1, 2))


def test_a_network_of_convolutions_is_told_its_layout():
    series = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(limes.exceptions.ModelError, match=r"have 3 channels; .*: pass layout='first'"):
        SeriesExplainer(Conv1d(), count=4)(series)
    explanation = SeriesExplainer(Conv1d(), count=4, layout="first")(series)
    np.testing.assert_allclose(explanation.predictions, series.mean())
    with pytest.raises(limes.exceptions.ModelError) as caught:
        SeriesExplainer(Conv1d(), count=4, layout="last")(series)
    assert "pass layout" not in str(caught.value)
