"""Images: exact against every perturbed image; accepted types of input; bad input."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVR

import limes
import onnx_models as onnx
import words
from effort import repeats
from internals import CHECK_CALLS
from limes import Explanation, ImageExplainer, Preprocess
from limes.exceptions import InputError, Interrupted, ModelError, NotReadableError, UnknownOptionError

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 256, (6, 8, 3)).astype(np.uint8)
LABELS = np.repeat(np.repeat([[3, 7], [9, 20]], 3, axis=0), 4, axis=1)  # gaps, and no 0
PHOTOS = RNG.integers(0, 256, (60, IMAGE.size)).astype(float)
TARGET = PHOTOS[:, :40].mean(axis=1) - PHOTOS[:, 100] / 3


def brightness(images):
    """For two opposite corners together: no sum over superpixels."""
    pixels = images.reshape(len(images), *images.shape[1:3], -1).astype(float).mean(axis=3)
    return pixels[:, 0, 0] * pixels[:, -1, -1] / 1000 + pixels.mean(axis=(1, 2))


def filled(image, labels):
    """Means of the segments, as the image's own numbers, the slow way."""
    result = image.astype(float)
    for label in np.unique(labels):
        result[labels == label] = image[labels == label].mean(axis=0)
    return np.rint(result).astype(image.dtype) if image.dtype.kind in "iu" else result.astype(image.dtype)


def perturbed(image, labels, fill=None):
    """Every subset of the superpixels, in the order of their labels."""
    fill = filled(image, labels) if fill is None else fill
    superpixels = np.unique(labels)
    result = []
    for z in words.subsets(superpixels.size):
        one = fill.copy()
        for label, kept in zip(superpixels, z, strict=True):
            one[labels == label] = image[labels == label] if kept else fill[labels == label]
        result.append(one)
    return np.stack(result)


assert_exact = partial(words.assert_exact, kind="superpixels")


# -- exact ---------------------------------------------------------------------------------------------------

READABLE = [
    (Ridge().fit(PHOTOS, TARGET), None, "predict"),
    (LogisticRegression().fit(PHOTOS / 255, TARGET > 60), "margin", "decision_function"),
    (GradientBoostingRegressor(n_estimators=30, random_state=0).fit(PHOTOS, TARGET), None, "predict"),
    (RandomForestClassifier(30, random_state=0).fit(PHOTOS, TARGET > 60), None, "predict_proba"),
    (SVR(gamma=1e-6, C=10).fit(PHOTOS, TARGET), None, "predict"),
]


@pytest.mark.parametrize("fill", ["mean", "blur", 0])
@pytest.mark.parametrize(("model", "output", "method"), READABLE, ids=lambda v: type(v).__name__)
def test_models_on_pixels_are_read(model, output, method, fill):
    explainer = ImageExplainer(model, segments=LABELS, fill=fill, output=output, max_calls=1)
    explanation = explainer(IMAGE)
    assert explanation.model_calls == 0
    ground = {"mean": None, "blur": _blurred(IMAGE), 0: np.zeros_like(IMAGE)}[fill]
    rows = perturbed(IMAGE, LABELS, ground).reshape(16, -1).astype(float)
    assert_exact(explanation, getattr(model, method)(rows))


def _blurred(image):
    from scipy.ndimage import gaussian_filter

    planes = [gaussian_filter(image[..., c].astype(float), 0.05 * 8, mode="nearest") for c in range(3)]
    return np.rint(np.stack(planes, axis=-1)).astype(np.uint8)


@pytest.mark.parametrize("bandwidth", [0.1, 0.25, np.inf])
def test_black_boxes_of_few_superpixels_are_enumerated(bandwidth):
    explanation = ImageExplainer(brightness, segments=LABELS, bandwidth=bandwidth)(IMAGE)
    assert_exact(explanation, brightness(perturbed(IMAGE, LABELS)), bandwidth)
    # three of the sets that checks ask about twice are among the 16
    assert explanation.model_calls == 16 + CHECK_CALLS - 3
    assert "every subset" in explanation.reason


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [None, 1, 3, 4])
def test_any_numbers_and_channels(kind, channels):
    shape = (6, 8) if channels is None else (6, 8, channels)
    image = RNG.integers(0, 256, shape).astype(kind)
    seen = []

    def model(images):
        seen.append((images.dtype, images.shape[1:]))
        return brightness(images)

    explanation = ImageExplainer(model, segments=LABELS)(image)
    assert set(seen) == {(np.dtype(kind), shape)}
    rtol = 1e-9 if kind != np.float32 else 1e-6
    _, coef, _ = words.surrogate(words.law("superpixels", 4, 0.25), brightness(perturbed(image, LABELS)))
    np.testing.assert_allclose(
        explanation.coefficients.values[0], coef, rtol=rtol, atol=rtol * np.abs(coef).max()
    )
    assert explanation.plot.image().images[0].get_array().shape == (6, 8, 3)


@pytest.mark.parametrize("scale", [1.0, 255.0])
def test_floats_up_to_1_and_up_to_255_look_the_same(scale):
    image = IMAGE / 255.0 * scale
    explanation = ImageExplainer(brightness, segments="grid", segment_options={"rows": 2, "columns": 2})(
        image
    )
    from internals import image_view

    assert np.abs(image_view(explanation, 0).image.astype(int) - IMAGE).max() <= 1


# -- superpixels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(1, 5).reshape(2, 2),
        np.array([[-5, 1000], [7, 7]]),
        np.array([[0.0, 1.0], [1.0, 2.0]]),
        np.array([[[0], [1]], [[1], [1]]]),
    ],
    ids=["from 1", "gaps", "floats", "an axis more"],
)
def test_any_labels_will_do(labels):
    flat = labels.reshape(2, 2)
    image = np.array([[10.0, 200.0], [90.0, 30.0]])
    explanation = ImageExplainer(brightness, segments=labels, fill=5.0)(image)
    assert explanation.coefficients.values.shape[1] == np.unique(flat).size
    assert_exact(explanation, brightness(perturbed(image, flat, np.full((2, 2), 5.0))))


def test_superpixels_of_one_pixel_show_their_fill():
    """Their mean is the pixel itself, and hides nothing: they are filled with the mean of the image."""
    image = RNG.random((2, 3))
    pixels = np.arange(6).reshape(2, 3)
    by_name, by_number = (
        ImageExplainer(brightness, segments=pixels, fill=fill)(image) for fill in ("mean", image.mean())
    )
    np.testing.assert_allclose(by_name.coefficients.values, by_number.coefficients.values, rtol=1e-9)
    assert ImageExplainer(brightness, segments=pixels, fill=0)(image).coefficients.values[0].min() > 0


def test_one_superpixel_is_explained_with_a_warning():
    explanation = ImageExplainer(brightness, segments=np.zeros((6, 8)), fill=0)(IMAGE)
    np.testing.assert_allclose(
        explanation.coefficients.values[0, 0], brightness(IMAGE[None]) - brightness(0 * IMAGE[None])
    )
    assert any("one superpixel" in warning for warning in explanation.warnings)
    assert ImageExplainer(brightness, segments="grid")(np.array([[7.0]])).coefficients.values.shape == (1, 1)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("quickshift", {"kernel_size": 2}),
        ("slic", {"n_segments": 12}),
        ("felzenszwalb", {"scale": 50, "min_size": 20}),
        ("watershed", {"markers": 12}),
        ("grid", {"rows": 3, "columns": 4}),
    ],
)
@pytest.mark.parametrize("grey", [False, True])
def test_segmentations_by_name(name, options, grey):
    if name != "grid":
        pytest.importorskip("skimage", reason="pip install scikit-image")
    rows, columns = np.indices((40, 40))
    blocks = 60 * (rows // 20 + 2 * (columns // 20))
    image = np.stack([blocks, 6 * columns, 2 * rows], axis=-1).astype(np.uint8)
    image = image[..., 0] if grey else image
    explainer = ImageExplainer(brightness, segments=name, segment_options=options, max_calls=600)
    first, again = explainer(image), explainer(image)
    assert 2 <= first.coefficients.values.shape[1] <= 64
    assert np.array_equal(first.coefficients.values, again.coefficients.values)
    if name == "grid":
        assert first.coefficients.values.shape[1] == 12


def test_a_callable_gives_segments():
    explanation = ImageExplainer(brightness, segments=lambda image: image[..., 0] > 128)(IMAGE)
    assert explanation.coefficients.values.shape == (1, 2)


# -- fills ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        (7, np.full_like(IMAGE, 7)),
        ((1, 2, 3), np.broadcast_to(np.array([1, 2, 3], np.uint8), IMAGE.shape).copy()),
        (IMAGE[::-1], IMAGE[::-1].copy()),
        (lambda image, labels: image // 2, IMAGE // 2),
    ],
    ids=["number", "colour", "image", "callable"],
)
def test_fills_passed_by_the_user(fill, expected):
    explanation = ImageExplainer(brightness, segments=LABELS, fill=fill)(IMAGE)
    assert_exact(explanation, brightness(perturbed(IMAGE, LABELS, expected)))


def test_an_image_of_grey_levels_is_filled_by_another():
    grey, other = IMAGE[..., 0].copy(), IMAGE[::-1, ::-1, 1].copy()
    explanation = ImageExplainer(brightness, segments=LABELS, fill=other)(grey)
    assert_exact(explanation, brightness(perturbed(grey, LABELS, other)))


def test_means_are_rounded_not_cut_off():
    image = np.array([[0, 1, 1]], dtype=np.uint8)
    seen = []
    ImageExplainer(
        lambda images: seen.append(images.copy()) or brightness(images), segments=np.zeros((1, 3))
    )(image)
    assert any((one == 1).all() for batch in seen for one in batch)


def test_inpainting_continues_the_surroundings():
    """A plane is harmonic: each superpixel is filled with what it showed, whatever its shape."""
    from internals import filled as fill_of
    from internals import filler

    rows, columns = np.indices((12, 15))
    plane = np.stack([2.0 * rows + 3.0 * columns, 40.0 - rows, 7.0 + 0 * rows], axis=-1)
    labels = np.where((rows > 3) & (rows < 8) & (columns > 4) & (columns < 11), 1, 0)
    inside = fill_of(filler("inpaint"), plane, labels)[labels == 1]
    np.testing.assert_allclose(inside, plane[labels == 1], atol=1e-9)
    whole = fill_of(filler("inpaint"), plane, np.zeros((12, 15), dtype=int))
    np.testing.assert_allclose(whole, np.broadcast_to(plane.mean(axis=(0, 1)), plane.shape))


# -- answers -------------------------------------------------------------------------------------------------


def classes(images):
    level = images.reshape(len(images), -1).astype(float).mean(axis=1) / 255
    corner = images[:, 0, 0].reshape(len(images), -1).astype(float).mean(axis=1) / 255
    return np.stack([level, 2 * corner, 3 * level * corner, -level], axis=1)


def test_the_largest_answers_from_one_set_of_calls():
    sizes = []
    explainer = ImageExplainer(
        lambda images: sizes.append(len(images)) or classes(images),
        segments=LABELS,
        top=2,
        labels=["dog", "cat", "bird", "fish"],
    )
    explanation = explainer(IMAGE)
    order = np.argsort(-classes(IMAGE[None])[0])[:2]
    assert explanation.output_names == tuple(np.array(["dog", "cat", "bird", "fish"])[order])
    np.testing.assert_allclose(explanation.predictions[0], classes(IMAGE[None])[0, order])
    assert sum(sizes) <= 16 + CHECK_CALLS + 2  # and the image itself, before
    whole = ImageExplainer(classes, segments=LABELS, output=[0, 1, 2, 3])(IMAGE)
    np.testing.assert_allclose(explanation.coefficients.values, whole.coefficients.values[..., order])


@pytest.mark.parametrize(
    ("output", "shape"), [("bird", (1, 4)), (2, (1, 4)), (["bird"], (1, 4, 1)), ([2, "dog"], (1, 4, 2))]
)
def test_answers_by_name_and_place(output, shape):
    explainer = ImageExplainer(classes, segments=LABELS, output=output, labels=["dog", "cat", "bird", "fish"])
    explanation = explainer(IMAGE)
    assert explanation.coefficients.values.shape == shape
    assert explanation.output_names[0] == "bird"


def test_softmax_and_sigmoid_of_logits():
    logits = classes(perturbed(IMAGE, LABELS, np.zeros_like(IMAGE)))
    powers = np.exp(logits)
    explanation = ImageExplainer(classes, segments=LABELS, fill=0, link="softmax", output=1)(IMAGE)
    assert_exact(explanation, powers[:, 1] / powers.sum(axis=1))
    explanation = ImageExplainer(classes, segments=LABELS, fill=0, link="sigmoid", output=3)(IMAGE)
    assert_exact(explanation, 1 / (1 + np.exp(-logits[:, 3])))


def test_classes_of_estimators_by_name_and_names_that_occur_twice(tmp_path):
    model = RandomForestClassifier(10, random_state=0).fit(PHOTOS, np.where(TARGET > 60, "light", "dark"))
    explanation = ImageExplainer(model, segments=LABELS, output="light")(IMAGE)
    assert explanation.output_names == ("light",)
    (tmp_path / "labels.txt").write_text("crane\ndog\ncrane\nfish\n")
    result = ImageExplainer(classes, segments=LABELS, labels=tmp_path / "labels.txt", top=4)(IMAGE)
    assert set(result.output_names) == {"crane (0)", "dog", "crane (2)", "fish"}


# -- sampled -------------------------------------------------------------------------------------------------

FINE = np.arange(48).reshape(6, 8) // 2
SAMPLED = {"segments": FINE, "fill": 0, "max_calls": 440}


def bumps(images):
    """Bumps of a few superpixels together."""
    level = images.reshape(len(images), 24, -1).astype(float).mean(axis=2) / 255
    return 1 / (
        1 + np.exp(-(6 * level[:, 3] * level[:, 11] + 4 * level[:, 17] - 3 + 0.2 * level.sum(axis=1) - 1))
    )


def test_error_bars_stopping_and_batches():
    explanation = ImageExplainer(bumps, **SAMPLED)(IMAGE)
    assert explanation.method == "sampled"
    assert explanation.coefficients.controls == ("kernel",)
    assert explanation.coefficients.standard_errors.min() > 0
    truth = ImageExplainer(bumps, **{**SAMPLED, "max_calls": 2**14}, control="none", rng=9)(IMAGE)
    spread = np.hypot(explanation.coefficients.standard_errors, truth.coefficients.standard_errors)
    assert (
        np.mean(np.abs(explanation.coefficients.values - truth.coefficients.values) <= 1.96 * spread) >= 0.8
    )
    for size in (1, 33):
        again = ImageExplainer(bumps, **SAMPLED, batch_size=size)(IMAGE)
        np.testing.assert_allclose(
            again.coefficients.values, explanation.coefficients.values, rtol=1e-9, atol=1e-12
        )
    early = ImageExplainer(bumps, **{**SAMPLED, "max_calls": 4096}, tolerance="25%")(IMAGE)
    assert early.converged
    assert early.model_calls < 4096


def test_a_gaussian_process_follows_probabilities_closer_than_kernels():
    """The truth is of many more calls, and error bars hold it."""
    truth = ImageExplainer(bumps, **{**SAMPLED, "max_calls": repeats(2**16, 2**14)}, control="none", rng=9)(
        IMAGE
    )
    off = {"kernel": [], "process": []}
    for name, errors in off.items():
        for seed in range(3):
            explanation = ImageExplainer(bumps, **SAMPLED, control=name, rng=seed)(IMAGE)
            assert explanation.coefficients.controls == (name,)
            errors.append(explanation.coefficients.values - truth.coefficients.values)
            spread = np.hypot(explanation.coefficients.standard_errors, truth.coefficients.standard_errors)
            assert np.mean(np.abs(errors[-1]) <= 1.96 * spread) >= 0.8
    assert np.square(off["process"]).mean() < 0.7 * np.square(off["kernel"]).mean()


def test_networks_get_a_gaussian_process():
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    weights = np.random.default_rng(0).normal(size=(144, 2)) / 144
    session = onnx.session(onnx.linear(weights, ("n", 3, 6, 8)))
    explanation = ImageExplainer(session, **SAMPLED, link="softmax", contributions=False)(IMAGE)
    assert explanation.method == "sampled"
    assert explanation.coefficients.controls == ("process",)


def _hidden(classes):
    """A network of one hidden layer with three answers, which is not read for images."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(144, 5)) / 40, rng.normal(size=(5, classes))
    tensors = [onnx.tensor(f"w{k}", w.astype("f4")) for k, w in enumerate(weights)]
    steps = [
        onnx.node("Flatten", ["x"], "flat"),
        onnx.node("MatMul", ["flat", "w0"], "sums"),
        onnx.node("Tanh", ["sums"], "hidden"),
        onnx.node("MatMul", ["hidden", "w1"], "y"),
    ]
    entries = [onnx.value("x", np.float32, ("n", 3, 6, 8))], [onnx.value("y", np.float32, ("n", classes))]
    return onnx.session(onnx.model(steps, *entries, tensors)), weights


def test_logits_of_a_network_with_named_classes_are_explained_as_probabilities():
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    session, (first, second) = _hidden(3)
    names = ["cat", "dog", "owl"]
    logits = np.tanh(IMAGE.astype("f4").transpose(2, 0, 1).reshape(1, -1) @ first) @ second
    powers = np.exp(logits - logits.max())
    explanation = ImageExplainer(session, **SAMPLED, labels=names)(IMAGE)
    np.testing.assert_allclose(explanation.predictions[0], powers[0] / powers.sum(), rtol=1e-4)
    assert "P(cat): " in str(explanation)
    assert "link=None explains the answers themselves" in explanation.reason
    # numbers without names may be anything, and who says None means it
    for options in ({}, {"labels": names, "link": None}):
        plain = ImageExplainer(session, **SAMPLED, **options)(IMAGE)
        np.testing.assert_allclose(plain.predictions[0], logits[0], rtol=1e-4)
        assert "P(" not in str(plain)


def test_logits_that_can_be_read_stay_exact():
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    weights = np.random.default_rng(0).normal(size=(144, 2)) / 144
    session = onnx.session(onnx.linear(weights, ("n", 3, 6, 8)))
    assert ImageExplainer(session, segments=LABELS, fill=0, labels=["cat", "dog"])(IMAGE).method == "exact"


def test_the_model_never_gets_more_than_a_batch():
    sizes = []
    ImageExplainer(lambda images: sizes.append(len(images)) or bumps(images), **SAMPLED, batch_size=17)(IMAGE)
    assert max(sizes) == 17


def test_same_seed_same_numbers_alone_or_among_others():
    others = [IMAGE[::-1].copy(), IMAGE]
    alone = ImageExplainer(bumps, **SAMPLED, rng=3)(IMAGE)
    among = ImageExplainer(bumps, **SAMPLED, rng=3)(others)
    assert np.array_equal(alone.coefficients.values, among[1].coefficients.values)
    assert not np.array_equal(
        alone.coefficients.values, ImageExplainer(bumps, **SAMPLED, rng=4)(IMAGE).coefficients.values
    )
    stacked = ImageExplainer(bumps, **SAMPLED, rng=3)(np.stack(others))
    assert np.array_equal(stacked[0].coefficients.values, among[0].coefficients.values)


def test_the_margin_behind_probabilities_helps():
    model = LogisticRegression().fit(PHOTOS / 255, TARGET > 60)
    options = {"segments": FINE, "output": [True]}
    explanation = ImageExplainer(model, **options, method="sampled", control="margin", max_calls=400)(
        IMAGE / 255.0
    )
    assert explanation.coefficients.controls == ("margin",)
    exact = ImageExplainer(model, **options)(IMAGE / 255.0)
    assert (exact.method, exact.model_calls) == ("exact", 0)
    assert (
        np.abs(exact.coefficients.values - explanation.coefficients.values)
        <= 6 * explanation.coefficients.standard_errors + 1e-12
    ).all()
    with pytest.raises(InputError, match="needs a model with a margin"):
        ImageExplainer(bumps, **SAMPLED, control="margin")(IMAGE)


def test_a_failing_model_keeps_its_answers():
    batches = []

    def model(images):
        batches.append(images)
        if len(batches) == 8:
            raise ConnectionError("the service did not answer")
        return bumps(images)

    explainer = ImageExplainer(model, **SAMPLED, batch_size=50, contributions=False)
    with pytest.raises(ModelError, match="ConnectionError") as failure:
        explainer([IMAGE[::-1].copy(), IMAGE])
    assert failure.value.partial == []
    assert failure.value.batch.shape[1:] == IMAGE.shape
    batches[:] = [None] * 8
    explainer(IMAGE[::-1].copy())
    assert len(batches) - 8 < 2 + 8


def test_images_in_threads_are_those_of_one_thread():
    images = [IMAGE, IMAGE[::-1].copy(), IMAGE[:, ::-1].copy()]
    one, three = (ImageExplainer(bumps, **SAMPLED)(images, progress=False, workers=n) for n in (1, 3))
    for alone, together in zip(one, three, strict=True):
        np.testing.assert_array_equal(alone.coefficients.values, together.coefficients.values)


def test_an_interrupt_returns_finished_images():
    sizes = []

    def model(images):
        sizes.append(len(images))
        if len(sizes) > 12:
            raise KeyboardInterrupt
        return bumps(images)

    with pytest.raises(Interrupted, match="1 of 2 images") as stop:
        ImageExplainer(model, **SAMPLED, contributions=False)([IMAGE, IMAGE[::-1].copy()], progress=False)
    assert len(stop.value.partial) == 1


# -- networks ------------------------------------------------------------------------------------------------


def test_an_onnx_session_gets_its_input_type():
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    weights = RNG.normal(size=(IMAGE.size, 2)) / 100
    for batch in ("n", 1, 5):
        session = onnx.session(onnx.linear(weights, (batch, 3, 6, 8)))
        explainer = ImageExplainer(
            session, segments=LABELS, preprocess=Preprocess(mean=(1, 2, 3), scale=10, order="bgr"), top=2
        )
        explanation = explainer(IMAGE)
        rows = (perturbed(IMAGE, LABELS)[..., ::-1] - np.array([1, 2, 3])) / 10
        answers = np.moveaxis(rows, -1, 1).reshape(16, -1) @ weights
        order = [int(name) for name in explanation.output_names]
        _, coef, _ = words.surrogate(words.law("superpixels", 4, 0.25), answers[:, order])
        np.testing.assert_allclose(
            explanation.coefficients.values[0], coef, rtol=1e-4, atol=1e-4 * np.abs(coef).max()
        )


def test_an_onnx_session_states_its_layout_and_size():
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    weights = RNG.normal(size=(IMAGE.size, 2))
    session = onnx.session(onnx.linear(weights, ("n", 6, 8, 3)))
    explanation = ImageExplainer(session, segments=LABELS, output=0)(IMAGE)
    answers = perturbed(IMAGE, LABELS).reshape(16, -1) @ weights[:, 0]
    _, coef, _ = words.surrogate(words.law("superpixels", 4, 0.25), answers)
    np.testing.assert_allclose(
        explanation.coefficients.values[0], coef, rtol=1e-4, atol=1e-4 * np.abs(coef).max()
    )
    with pytest.raises(InputError, match=r"takes images of shape \(6, 8, 3\), got \(7, 8, 3\)"):
        ImageExplainer(session)(np.zeros((7, 8, 3), np.uint8))
    larger = RNG.integers(0, 256, (20, 40, 3)).astype(np.uint8)
    result = ImageExplainer(
        session, segments="grid", preprocess=Preprocess(channels="last", size=(6, 8)), output=0, top=1
    )(larger)
    assert result.mask().shape == (6, 8)


def test_a_torch_module_is_composed_on_its_own_device():
    torch = pytest.importorskip("torch", reason="pip install torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.Flatten(),
        torch.nn.Linear(96, 2),
    )
    for kind in (torch.float32, torch.float64):
        explanation = ImageExplainer(
            module.to(kind), segments=LABELS, preprocess=Preprocess(mean=127, scale=128), output=1
        )(IMAGE)
        rows = torch.as_tensor(np.moveaxis((perturbed(IMAGE, LABELS) - 127.0) / 128, -1, 1)).to(kind)
        with torch.no_grad():
            answers = module.eval()(rows)[:, 1].double().numpy()
        module.train()
        _, coef, _ = words.surrogate(words.law("superpixels", 4, 0.25), answers)
        np.testing.assert_allclose(
            explanation.coefficients.values[0], coef, rtol=1e-4, atol=1e-4 * np.abs(coef).max()
        )
    assert module.training


def test_preprocess_cuts_out_the_middle_and_scales_it():
    image = np.zeros((10, 30), np.uint8)
    image[:, 10:20] = 200
    assert (Preprocess(size=4).framing(image).apply(image) == 200).all()
    assert Preprocess(size=(5, 15)).framing(image).apply(image).shape == (5, 15)
    assert Preprocess(channels="last")(image).shape == (10, 30, 1)
    np.testing.assert_array_equal(Preprocess()(image), image[None])  # by default numbers stay as they are


def test_numbers_are_scaled_without_rounding_and_whole_numbers_are_rounded_once():
    Image = pytest.importorskip("PIL.Image")
    image = np.random.default_rng(0).integers(-3000, 3000, (9, 9))
    resized = Image.fromarray(image.astype(np.float32)).resize((5, 5), Image.Resampling.BICUBIC)
    expected = np.clip(np.asarray(resized), image.min(), image.max())
    assert (expected != np.rint(expected)).any()
    np.testing.assert_array_equal(Preprocess(size=5).framing(image).apply(image.astype(np.float32)), expected)
    np.testing.assert_array_equal(
        Preprocess(size=5).framing(image).apply(image.astype(np.int16)), np.rint(expected)
    )


# -- bad input -----------------------------------------------------------------------------------------------


def with_nan():
    image = IMAGE.astype(float)
    image[2, 5, 1] = np.nan
    return image


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((6, 8, 5)), "1, 3 or 4 channels"),
        (np.zeros((3, 6, 8)), r"np.moveaxis\(image, 0, -1\)"),
        (with_nan(), "nan at row 2, column 5"),
        (np.zeros((0, 8, 3)), "no pixels"),
        (np.zeros(8), r"\(height, width\)"),
        ("photo.jpg", "photo.jpg could not be read as an image: there is no such file"),
        (IMAGE.astype(object), "an array of numbers, got ndarray of object"),
        (IMAGE.astype(np.complex64), "an array of numbers, got ndarray of complex64"),
        ([IMAGE, with_nan()], "image 1: .*nan"),
        (np.zeros((6, 9, 3)), "segments have shape"),
    ],
    ids=[
        "channels",
        "channels first",
        "nan",
        "empty",
        "one axis",
        "a text",
        "objects",
        "complex numbers",
        "one of several",
        "another size",
    ],
)
def test_invalid_images_are_refused(image, message):
    with pytest.raises(InputError, match=message):
        ImageExplainer(brightness, segments=LABELS)(image)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"segments": "quickshft"}, InputError, "did you mean 'quickshift'"),
        (
            {"segments": "slic", "segment_options": {"n_segment": 3}},
            UnknownOptionError,
            "did you mean 'n_segments'",
        ),
        ({"segments": LABELS, "segment_options": {"rows": 3}}, InputError, "segmentation that is named"),
        ({"segments": np.full((6, 8), 0.5)}, InputError, "segments must be"),
        ({"fill": "means"}, InputError, "did you mean 'mean'"),
        ({"fill": np.nan}, InputError, "fill must be"),
        ({"link": "logit"}, InputError, "link='logit' is not one of"),
        ({"top": 0}, InputError, "top must be"),
        ({"preprocess": lambda x: x}, InputError, "must be a limes.Preprocess"),
        ({"labels": "no/such/file.txt"}, InputError, "could not be read"),
        ({"labels": []}, InputError, "labels must be"),
        ({"control": "tree"}, InputError, "control='tree'"),
        ({"segement": "slic"}, UnknownOptionError, "did you mean 'segments'"),
    ],
)
def test_options_that_do_not_exist(options, error, message):
    with pytest.raises(error, match=message):
        ImageExplainer(brightness, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["a", "b", "c"]}, "3 labels, the first of them 'a', and the model gives 4 answers"),
        ({"output": "birds", "labels": ["dog", "cat", "bird", "fish"]}, "did you mean 'bird'"),
        ({"output": 4}, "output=4 is not among the model's 4 answers"),
        ({"output": "probability"}, "of a network pass link='softmax' or 'sigmoid' for probabilities"),
        ({"output": []}, "pass one class or more"),
        ({"fill": (1, 2)}, r"fill has shape \(2,\)"),
        ({"fill": lambda image, labels: np.full(image.shape, np.nan)}, "not finite"),
    ],
)
def test_options_that_do_not_go_with_the_model_or_image(options, message):
    with pytest.raises(InputError, match=message):
        ImageExplainer(classes, segments=LABELS, **options)(IMAGE)


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (300, "fill has 300, and pixels of uint8 are from 0 to 255"),
        ((0, -1, 0), "fill has -1, and pixels of uint8 are from 0 to 255"),
        ((0.485, 0.456, 0.406), r"is a share of 1, .* whole numbers up to 255: pass 255 \* fill"),
        (0.5, r"fill=0.5 is a share of 1"),
    ],
)
def test_colours_that_pixels_cannot_have_are_refused(fill, message):
    """They were clipped and rounded: a grey of 0.485 became black."""
    image = np.full((6, 8, 3), 200, dtype=np.uint8)
    with pytest.raises(InputError, match=message):
        ImageExplainer(brightness, segments=LABELS, fill=fill)(image)
    for colour in (0, 1, (0, 1, 0), 77.6):
        ImageExplainer(brightness, segments=LABELS, fill=colour)(image)


@pytest.mark.parametrize("output", [3, -1, "cat", [0, 1]])
def test_outputs_that_a_function_of_one_answer_lacks_are_refused(output):
    explainers = (
        (ImageExplainer(brightness, segments=LABELS, output=output), IMAGE),
        (limes.SeriesExplainer(lambda x: x.max(axis=1), count=3, output=output), np.arange(9.0)),
        (
            limes.CompositeExplainer(lambda x: [len(t) for t in x["t"]], {"t": "text"}, output=output),
            {"t": "a"},
        ),
    )
    for explainer, item in explainers:
        with pytest.raises(InputError, match="is not among the model's 1 answer"):
            explainer(item)
    named = ImageExplainer(brightness, segments=LABELS, output="light", labels=["light"])(IMAGE)
    assert named.output_names == ("light",)


def test_models_that_answer_nonsense():
    with pytest.raises(ModelError, match=r"was given 1 inputs and returned shape \(3, 4\)"):
        ImageExplainer(lambda images: np.zeros((3, 4)), segments=LABELS)(IMAGE)
    with pytest.raises(ModelError, match="nan"):
        ImageExplainer(lambda images: np.full(len(images), np.nan), segments=LABELS)(IMAGE)
    with pytest.raises(InputError, match="fitted on 144 numbers, and the image has 6 x 8 = 48"):
        ImageExplainer(READABLE[0][0], segments=LABELS)(IMAGE[..., 0])
    with pytest.raises(InputError, match="several answers"):
        ImageExplainer(brightness, segments=LABELS, link="softmax")(IMAGE)
    with pytest.raises(NotReadableError, match="a budget for all 2\\^d subsets of d = 24 superpixels"):
        ImageExplainer(bumps, **SAMPLED, method="exact")(IMAGE)
    with pytest.raises(InputError, match="max_calls=10 is too few"):
        ImageExplainer(bumps, **{**SAMPLED, "max_calls": 10})(IMAGE)


@pytest.mark.parametrize(
    "options",
    [{"mean": "a"}, {"scale": 0}, {"channels": "middle"}, {"order": "rbg"}, {"size": 0}, {"size": (2, 3, 4)}],
    ids=str,
)
def test_preprocess_checks_its_options(options):
    with pytest.raises(InputError):
        Preprocess(**options)
    with pytest.raises(InputError, match="mean has 2 entries, the image 3 channels"):
        Preprocess(mean=(1, 2))(IMAGE)


def test_an_explanation_survives_json():
    explanation = ImageExplainer(classes, segments=LABELS, top=2)(IMAGE)
    again = Explanation.from_json(explanation.to_json())
    assert np.array_equal(again.mask(top=2), explanation.mask(top=2))
    assert again.provenance == explanation.provenance


def test_diagnostics_ask_about_the_image_again():
    diagnosis = limes.diagnose(ImageExplainer(bumps, **SAMPLED)(IMAGE), max_calls=128)
    assert len(diagnosis.rows) == 1
    exact = limes.diagnose(ImageExplainer(READABLE[0][0], segments=LABELS)(IMAGE))
    assert exact.method == "exact"


@pytest.mark.parametrize(
    ("output", "labels", "names"),
    [
        (2, ["zero", "one", "two"], ("two",)),
        ([2, 0], ["zero", "one", "two"], ("two", "zero")),
        ([2, 0], ["last", "first"], ("last", "first")),
        (2, ["last"], ("last",)),
    ],
)
def test_labels_name_all_classes_of_an_estimator_or_those_chosen(output, labels, names):
    pixels = np.random.default_rng(0).random((60, 16))
    model = LogisticRegression().fit(pixels, np.arange(60) % 3)
    options = {"segments": "grid", "segment_options": {"rows": 2, "columns": 2}}
    explanation = ImageExplainer(model, output=output, labels=labels, **options)(pixels[0].reshape(4, 4))
    assert explanation.output_names == names
    with pytest.raises(InputError, match="4 labels"):
        ImageExplainer(model, output=output, labels=["a"] * 4, **options)(pixels[0].reshape(4, 4))
