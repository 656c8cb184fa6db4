"""The drop-in's images: both engines, against limes and against lime itself."""

from __future__ import annotations

import pickle

import lime.lime_image
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits, load_sample_image
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import limes
import limes.compat.lime
from effort import crossed, repeats
from limes.compat.lime.exceptions import LimeError
from limes.compat.lime.lime_image import ImageExplanation, LimeImageExplainer
from limes.exceptions import InputError, ModelError, UnknownOptionError
from oracle import EXACT

ENGINES = pytest.mark.parametrize("chosen", ["limit", "lime"])
IMAGE = np.random.default_rng(0).random((12, 16, 3))


def grid(rows, columns, shape=(12, 16)):
    down, across = (np.arange(n) * k // n for n, k in zip(shape, (rows, columns), strict=True))
    return down[:, None] * columns + across


TWELVE, SIX = grid(3, 4), grid(2, 3)


def model(images):
    """Two places that need each other, and a trend."""
    x = np.asarray(images, dtype=np.float64)
    corner, other = x[:, :4, :4, 0].mean(axis=(1, 2)), x[:, 8:, 12:, -1].mean(axis=(1, 2))
    p = np.clip(0.3 + corner * other + 0.2 * x.mean(axis=(1, 2, 3)), 0, 1)
    return np.column_stack([1 - p, p, p / 2])


def explained(image=IMAGE, fn=model, segments=TWELVE, engine="limit", seed=0, **call):
    explainer = LimeImageExplainer(random_state=seed, engine=engine)
    arguments = {
        "segmentation_fn": lambda image: segments,
        "hide_color": 0,
        "num_samples": 300,
        "progress_bar": False,
    }
    return explainer.explain_instance(image, fn, **arguments | call)


# -- what is answered ----------------------------------------------------------------------------------------


def test_few_superpixels_are_exact():
    explanation = explained(segments=SIX)
    exact = limes.ImageExplainer(model, segments=SIX, fill=0)(IMAGE)
    assert (explanation.engine, explanation.limes.method) == ("limit", "exact")
    assert sorted(explanation.top_labels) == [0, 1, 2]
    for label in range(3):
        coef = dict(explanation.local_exp[label])
        np.testing.assert_allclose(
            [coef[j] for j in range(6)], exact.coefficients.values[0, :, label], rtol=EXACT
        )
        assert explanation.intercept[label] == pytest.approx(
            exact.coefficients.intercepts[0, label], rel=EXACT
        )
        assert explanation.local_pred.by_label[label] == pytest.approx(
            exact.coefficients.surrogate_predictions[0, label], rel=EXACT
        )
        assert explanation.score[label] == pytest.approx(exact.fidelity[0, label], rel=EXACT)
        assert {error for _, error in explanation.standard_errors[label]} == {0.0}


def test_many_are_sampled_with_error_bars_that_hold_the_limit():
    truth = explained(num_samples=4200)
    explanation = explained(num_samples=200)
    assert (truth.limes.method, explanation.limes.method) == ("exact", "sampled")
    limit, errors = dict(truth.local_exp[1]), dict(explanation.standard_errors[1])
    assert all(abs(value - limit[j]) < 5 * errors[j] for j, value in explanation.local_exp[1])


def test_an_estimator_of_flattened_images_is_read():
    digits, names = load_digits(return_X_y=True)
    forest = RandomForestClassifier(10, max_depth=5, random_state=0).fit(digits, names)
    # without black superpixels: a black fill hides these from lime, and limes leaves them out
    image, segments = digits[0].reshape(8, 8) + 1.0, grid(4, 4, (8, 8))
    explanation = explained(image, forest.predict_proba, segments, num_samples=10)
    exact = limes.ImageExplainer(forest, segments=segments, fill=0)(image)
    assert explanation.limes.method == exact.method == "exact"
    coef = dict(explanation.local_exp[0])
    np.testing.assert_allclose(
        [coef[j] for j in range(16)], exact[..., "0"].coefficients.values[0], rtol=EXACT, atol=EXACT
    )
    assert explanation.image.shape == (8, 8, 3)
    assert 0 < explanation.score <= 1


def test_the_engine_lime_has_lime_s_law():
    def runs(make):
        explanation = [
            make(random_state=seed).explain_instance(
                IMAGE,
                model,
                labels=(0, 1),
                hide_color=0,
                segmentation_fn=lambda image: TWELVE,
                num_samples=60,
                top_labels=None,
            )
            for seed in range(repeats(200, 60))
        ]
        return np.array([numbers(one) for one in explanation])

    def numbers(explanation):
        coefs = [dict(explanation.local_exp[k]) for k in (0, 1)]
        last = [float(explanation.score), float(np.ravel(explanation.local_pred)[0])]
        return (
            [coef[j] for coef in coefs for j in range(12)] + [explanation.intercept[k] for k in (0, 1)] + last
        )

    first = runs(lambda **seed: LimeImageExplainer(engine="lime", **seed))
    second = runs(lime.lime_image.LimeImageExplainer)
    # two tests a number, at 1 % together
    level = 0.01 / (2 * first.shape[1])
    assert stats.ttest_ind(first, second, equal_var=False).pvalue.min() > level
    assert min(stats.levene(a, b).pvalue for a, b in zip(first.T, second.T, strict=True)) > level


@pytest.mark.parametrize(
    ("count", "selection"),
    crossed([2, 8], ["auto", "forward_selection", "highest_weights", "lasso_path", "none"]),
)
@ENGINES
def test_fewer_features(chosen, selection, count):
    explainer = LimeImageExplainer(random_state=0, engine=chosen, feature_selection=selection)
    explanation = explainer.explain_instance(
        IMAGE, model, hide_color=0, segmentation_fn=lambda image: TWELVE, num_features=count
    )
    assert len(explanation.local_exp[1]) <= (12 if selection == "none" else count)
    assert {0, 11} <= {j for j, _ in explanation.local_exp[1]}
    assert 0 < explanation.score[1] < 1
    total = explanation.intercept[1] + sum(value for _, value in explanation.local_exp[1])
    assert explanation.local_pred.by_label[1] == pytest.approx(total)


@ENGINES
def test_a_result_depends_on_seed_and_image_alone(chosen):
    explainer = LimeImageExplainer(random_state=0, engine=chosen)

    def pairs(image, **call):
        return explainer.explain_instance(
            image, model, hide_color=0, segmentation_fn=lambda image: TWELVE, num_samples=200, **call
        ).local_exp

    first = pairs(IMAGE)
    pairs(1 - IMAGE)
    assert pairs(IMAGE) == first
    for label, coef in pairs(IMAGE, batch_size=7).items():
        assert dict(coef) == pytest.approx(dict(first[label]))
    explainer = pickle.loads(pickle.dumps(explainer))
    assert pairs(IMAGE) == first


@ENGINES
def test_labels(chosen):
    explanation = explained(engine=chosen, top_labels=2)
    order = np.argsort(-model(IMAGE[None])[0])[:2].tolist()
    assert explanation.top_labels == list(explanation.local_exp) == explanation.available_labels() == order
    # lime explains the largest answer last
    assert explanation.score == explanation.score[order[0]]
    for k in order:
        total = explanation.intercept[k] + sum(value for _, value in explanation.local_exp[k])
        assert explanation.local_pred.by_label[k] == pytest.approx(total)
    both = explained(engine=chosen, labels=(2, 1), top_labels=None)
    assert both.score == both.score[1]
    named = explained(engine=chosen, labels=(2,), top_labels=None)
    assert (named.top_labels, list(named.local_exp)) == (None, [2])
    np.testing.assert_allclose(named.predict_proba, model(IMAGE[None])[0])


@ENGINES
def test_one_number_an_image_is_label_0(chosen):
    for shape in ((-1,), (-1, 1)):
        explanation = explained(
            fn=lambda images, shape=shape: 7 * model(images)[:, 1].reshape(shape), engine=chosen
        )
        assert list(explanation.local_exp) == [0]
        assert explanation.local_exp[0][0][0] in (0, 11)
    with pytest.raises(InputError, match="labels"):
        explained(fn=lambda images: model(images)[:, 1], engine=chosen, top_labels=None)


# -- what lime gets wrong ------------------------------------------------------------------------------------


@ENGINES
def test_segments_of_any_numbers_are_switched_and_shown(chosen):
    names = np.array([1, 2, 3, 40, 41, -5])
    segments = names[SIX]
    effects = np.arange(1.0, 7.0)

    def sums(images):
        on = np.stack([images[:, j == SIX].mean(axis=(1, 2)) for j in range(6)], axis=1)
        return on @ effects

    explanation = explained(np.ones((12, 16, 3)), sums, segments, chosen)
    coef = dict(explanation.local_exp[0])
    # lime's ridge shrinks by some percent
    np.testing.assert_allclose(
        [coef[name] for name in names], effects, rtol=1e-9 if chosen == "limit" else 0.1
    )
    heat = np.vectorize(coef.get)(explanation.segments)
    np.testing.assert_allclose(heat, effects[SIX], rtol=0.1)
    _, mask = explanation.get_image_and_mask(0, num_features=1)
    np.testing.assert_array_equal(mask, segments == -5)
    assert explanation.segments is segments or (explanation.segments == segments).all()


@ENGINES
def test_whole_numbers_are_filled_with_the_nearest(chosen):
    seen = []

    def remember(images):
        seen.append(images.copy())
        return images.mean(axis=(1, 2, 3))

    image = np.zeros((4, 4, 3), dtype=np.uint8)
    image[:, 2:] = 255
    image[0, 0] = 3
    image[0, 1] = 3
    explained(image, remember, np.zeros((4, 4), dtype=int), chosen, num_samples=8, hide_color=None)
    batch = np.concatenate(seen)
    assert batch.dtype == np.uint8
    # a mean of 127.9, of which lime leaves 127
    assert set(batch[:, 0, 0, 0].tolist()) == {3, 128}


@ENGINES
@pytest.mark.parametrize(
    "image",
    [
        IMAGE[..., 0],
        IMAGE[..., :1],
        np.dstack([IMAGE, np.ones((12, 16))]),
        2 * IMAGE - 1,
        255 * IMAGE,
        IMAGE.astype(np.float32),
        (255 * IMAGE).astype(np.uint8),
        IMAGE > 0.5,
        np.zeros((12, 16, 3)),
    ],
    ids=["grey", "one channel", "RGBA", "-1 to 1", "0 to 255", "float32", "uint8", "bool", "black"],
)
def test_every_kind_of_image_works_with_the_default_segmentation(chosen, image):
    explainer = LimeImageExplainer(random_state=0, engine=chosen)
    result = explainer.explain_instance(image, model, num_samples=400, progress_bar=False)
    picture, mask = result.get_image_and_mask(1, positive_only=False)
    channels = image.shape[2] if image.ndim == 3 else 1
    assert picture.shape == (12, 16, max(channels, 3))
    assert mask.shape == result.segments.shape == (12, 16)
    assert picture.dtype == image.dtype


PHOTOGRAPH = load_sample_image("china.jpg")[100:160, 200:270]
# pixels that quickshift takes for colours as they are, and others
SEEN = {"whole numbers": PHOTOGRAPH, "0 to 1": PHOTOGRAPH / 255}
UNSEEN = {
    "0 to 255": PHOTOGRAPH.astype("double"),
    "-1 to 1": (PHOTOGRAPH / 127.5 - 1).astype(np.float32),
    "64 bits": PHOTOGRAPH.astype(np.int64),
}


def default_segments(image, **options):
    explainer = LimeImageExplainer(random_state=1, **options)
    return explainer.explain_instance(image, model, num_samples=10, progress_bar=False).segments


def lime_s_segments(image):
    explainer = lime.lime_image.LimeImageExplainer(random_state=1)
    return explainer.explain_instance(image, model, num_samples=10).segments


@ENGINES
@pytest.mark.parametrize("image", SEEN.values(), ids=SEEN)
def test_segments_are_lime_s(image, chosen):
    np.testing.assert_array_equal(default_segments(image, engine=chosen), lime_s_segments(image))


@pytest.mark.parametrize("image", UNSEEN.values(), ids=UNSEEN)
def test_segments_of_engine_lime_are_lime_s_whatever_the_pixels(image):
    theirs = lime_s_segments(image)
    np.testing.assert_array_equal(default_segments(image, engine="lime"), theirs)
    with limes.compat.lime.engine("lime"):
        np.testing.assert_array_equal(default_segments(image), theirs)
    # the limit segments the photograph that people see
    seen = default_segments(PHOTOGRAPH)
    assert (theirs != seen).any()
    if image.min() >= 0:
        np.testing.assert_array_equal(default_segments(image), seen)


def test_grey_images_become_rgb_as_lime_has_them():
    seen = []
    explained(IMAGE[..., 0], lambda images: seen.append(images.shape[1:]) or model(images))
    assert set(seen) == {(12, 16, 3)}


def test_segments_themselves_or_a_name():
    by_function, by_array = explained(), explained(segmentation_fn=TWELVE)
    assert by_array.local_exp == by_function.local_exp
    assert len(explained(segmentation_fn="grid").local_exp[1]) == 64


@ENGINES
@pytest.mark.parametrize("gradients", [False, True])
def test_tensors_are_answers(chosen, gradients):
    torch = pytest.importorskip("torch")

    def network(images):
        return torch.as_tensor(model(images)).requires_grad_(gradients)

    explanation = explained(fn=network, engine=chosen)
    assert explanation.local_exp == explained(engine=chosen).local_exp


@ENGINES
def test_one_superpixel(chosen):
    explanation = explained(segments=np.ones((12, 16), dtype=int), engine=chosen)
    assert [j for j, _ in explanation.local_exp[1]] == [1]


# -- pictures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("positive_only", "negative_only", "hide_rest", "size"),
    crossed(*[[True, False]] * 3, [(5, 0.0), (3, 0.01), (12, 0.03), (12, -0.02)]),
)
def test_pictures_are_lime_s(positive_only, negative_only, hide_rest, size):
    explanation = explained()
    theirs = lime.lime_image.ImageExplanation(explanation.image, explanation.segments)
    theirs.local_exp = explanation.local_exp
    options = (positive_only, negative_only, hide_rest, *size)
    if positive_only and negative_only:
        with pytest.raises(InputError, match="exclude each other"):
            explanation.get_image_and_mask(1, *options)
        return
    for ours, expected in zip(
        explanation.get_image_and_mask(1, *options), theirs.get_image_and_mask(1, *options), strict=True
    ):
        np.testing.assert_array_equal(ours, expected)


def test_pictures_of_narrow_types():
    segments = TWELVE.astype(np.uint8)
    result = explained((255 * IMAGE).astype(np.uint8), lambda images: model(images / 255), segments)
    picture, mask = result.get_image_and_mask(0, positive_only=False, hide_rest=True)
    assert picture.dtype == np.uint8
    assert mask.min() == -1
    picture[:] = 0
    assert result.image.max() > 0


def test_an_explanation_by_hand():
    explanation = ImageExplanation(IMAGE, SIX)
    explanation.local_exp[1] = [(3, 0.5), (2, -0.2)]
    np.testing.assert_array_equal(explanation.get_image_and_mask(1)[1], SIX == 3)
    page = explanation.as_html()
    assert "filled in by hand" in page
    assert page.count("<tr><td>") == 2


@ENGINES
def test_pages_lists_and_limes_explanation(chosen, tmp_path):
    explanation = explained(segments=TWELVE + 3, engine=chosen, num_features=4)
    assert explanation.as_list(1)[0][0] in ("superpixel 3", "superpixel 14")
    figure = explanation.as_pyplot_figure(1)
    assert len(figure.axes[0].patches) == 4
    plt.close(figure)
    explanation.save_to_file(tmp_path / "page.html", labels=[1])
    page = (tmp_path / "page.html").read_text()
    assert 'class="lx-glass"' in page
    # the surrogate of the four superpixels, not of all; the page says where each is
    assert f"{explanation.local_pred.by_label[1]:.3f}"[:5] in page
    assert f"R² <b>{explanation.score[1]:.3f}<" in page
    # by the names of the list
    assert ("superpixel 14 at" in page, "superpixel 8 at" in page) == (
        True,
        8 in dict(explanation.local_exp[1]),
    )
    assert explanation.limes.output_names == tuple(str(k) for k in explanation.top_labels)
    ax = explanation.limes.plot.image()
    plt.close(ax.figure)
    again = pickle.loads(pickle.dumps(explanation))
    assert again.local_exp == explanation.local_exp
    assert again.score == explanation.score


# -- options -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "call"),
    [
        ("distance_metric", {"distance_metric": "euclidean"}),
        ("model_regressor", {"model_regressor": LinearRegression()}),
        ("num_samples < 58", {"num_samples": 50}),
    ],
)
def test_options_of_engine_lime_alone_choose_it_with_a_reason(option, call):
    result = explained(**call)
    assert (result.engine, result.engine_reason) == ("lime", f"only lime's sampling supports {option}")


def test_a_kernel_of_one_s_own():
    explainer = LimeImageExplainer(kernel=lambda d, kernel_width: np.ones(len(d)), random_state=0)
    result = explainer.explain_instance(IMAGE, model, segmentation_fn=lambda image: TWELVE, num_samples=100)
    assert (result.engine, result.engine_reason) == ("lime", "only lime's sampling supports kernel")


@ENGINES
def test_batches_and_budget(chosen):
    sizes = []
    explained(fn=lambda images: sizes.append(len(images)) or model(images), engine=chosen, batch_size=64)
    assert max(sizes) == 64
    # one for labels; the limit asks about the whole image again, and never twice for the same switches
    assert 280 <= sum(sizes) <= 303


@ENGINES
def test_a_classifier_may_change_its_input(chosen):
    def halves(images):
        images *= 0.5
        return model(images)

    explanation = explained(fn=halves, engine=chosen)
    assert explanation.local_exp == explained(fn=lambda images: model(images * 0.5), engine=chosen).local_exp
    np.testing.assert_array_equal(explanation.image, IMAGE)


@ENGINES
def test_nothing_is_printed(chosen, capfd):
    explained(engine=chosen)
    assert capfd.readouterr() == ("", "")


def test_verbose(capsys):
    for chosen in ("limit", "lime"):
        explainer = LimeImageExplainer(verbose=True, random_state=0, engine=chosen)
        explainer.explain_instance(
            IMAGE, model, top_labels=1, segmentation_fn=lambda image: SIX, num_samples=64
        )
        assert "Prediction_local" in capsys.readouterr().out


def test_numbers_of_one_label_are_those_of_lime_s_label():
    call = {"segmentation_fn": lambda image: SIX, "hide_color": 0, "num_samples": 400}
    theirs = lime.lime_image.LimeImageExplainer(random_state=0).explain_instance(IMAGE, model, **call)
    ours = explained(segments=SIX, engine="lime", num_samples=400)
    # three labels of different sizes, by more than chance moves them
    assert ours.local_pred[0] == pytest.approx(theirs.local_pred[0], abs=0.03)


def test_rows_and_answers_of_lime_s_law():
    explainer = LimeImageExplainer(random_state=0)
    rows, answers = explainer.data_labels(IMAGE, np.zeros_like(IMAGE), TWELVE, model, 50, progress_bar=False)
    assert rows.shape == (50, 12)
    assert (rows[0] == 1).all()
    on = rows[7][TWELVE].astype(bool)
    np.testing.assert_array_equal(answers[7], model(np.where(on[..., None], IMAGE, 0.0)[None])[0])


# -- bad input -----------------------------------------------------------------------------------------------


def raising(images):
    raise ZeroDivisionError("no network today")


@ENGINES
@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        ({"image": np.ones((2, 4, 4, 3))}, InputError, "height, width"),
        ({"image": np.ones((0, 4, 3))}, InputError, "no pixels"),
        ({"image": "cat.png"}, InputError, "no such file"),
        ({"segments": TWELVE[:5]}, InputError, "one label per pixel"),
        ({"segments": np.dstack([TWELVE, TWELVE])}, InputError, "whole numbers"),
        ({"hide_color": (0, 0)}, InputError, "colour of 3 numbers"),
        ({"fn": lambda images: model(images)[:1]}, ModelError, "returned shape"),
        ({"fn": lambda images: model(images)[..., None].repeat(2, 2)}, ModelError, "returned shape"),
        ({"fn": lambda images: np.full((len(images), 2), np.nan)}, ModelError, "finite"),
        ({"fn": lambda images: ["cat"] * len(images)}, ModelError, "numbers"),
        ({"fn": raising}, ModelError, "ZeroDivisionError"),
        ({"fn": 3}, InputError, "callable"),
        ({"labels": (3,), "top_labels": None}, InputError, "0 to 2"),
        ({"num_samples": 0}, InputError, "num_samples"),
        ({"num_features": 0}, InputError, "num_features"),
        ({"hide_color": "red"}, InputError, "fill"),
        ({"top_labels": 1.5}, InputError, "top_labels"),
        ({"segmentation_fn": "quikshift"}, InputError, "did you mean 'quickshift'"),
        ({"distance_metric": "cosinus"}, InputError, "distance_metric='cosinus'"),
        ({"num_sample": 3}, TypeError, "num_sample"),
    ],
)
def test_errors_are_advice(chosen, call, error, says):
    with pytest.raises(error, match=says):
        explained(engine=chosen, **call)


def test_options_are_checked():
    with pytest.raises(UnknownOptionError, match="kernel_width"):
        LimeImageExplainer(kernel_with=3)
    with pytest.warns(UserWarning, match="did you mean 'highest_weights'"):
        explainer = LimeImageExplainer(feature_selection="highest_weight")
    with pytest.raises(InputError, match="did you mean 'highest_weights'"):
        explainer.explain_instance(IMAGE, model, segmentation_fn=lambda image: TWELVE)
    with pytest.raises(InputError, match="kernel_width"):
        LimeImageExplainer(kernel_width=0)
    with pytest.raises(KeyError):
        explained().get_image_and_mask(7)
    with pytest.raises(LimeError, match="only"):
        explained().get_image_and_mask(7)
