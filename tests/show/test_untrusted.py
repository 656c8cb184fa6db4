"""Explanations from untrusted files: their images, names and depth."""

from __future__ import annotations

import base64
import io
import json
import tracemalloc

import numpy as np
import pytest

import limes
from internals import from_data_url, to_data_url
from limes.exceptions import InputError

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")


@pytest.fixture(scope="module")
def of_image():
    image = np.zeros((16, 16, 3), dtype=np.uint8)
    image[:8] = 200

    def model(images):
        return np.stack([np.asarray(i, float)[:8].mean() for i in images])

    explainer = limes.ImageExplainer(model, segments=np.repeat([0, 1], 8)[:, None].repeat(16, 1))
    return json.loads(explainer(image).to_json())


def with_facts(document, **facts):
    document = {**document, "provenance": {**document["provenance"], **facts}}
    return limes.Explanation.from_json(json.dumps(document))


PIXEL = to_data_url(np.zeros((1, 1), dtype=np.uint8))
URLS = [
    "https://evil/b?x=1);position:fixed;inset:0;background:url(https://evil/o.png);--z:url(" + PIXEL,
    PIXEL + ");position:fixed",
    PIXEL + "\n",
    PIXEL.replace("png", "svg+xml"),
    "data:text/html;base64,AAAA",
    "",
    5,
    None,
]


@pytest.mark.parametrize("url", URLS)
def test_only_images_in_base64_get_into_a_page(of_image, url):
    assert "data:image/" in with_facts(of_image).to_html()
    with pytest.raises(InputError, match="is damaged: it is no PNG or JPEG in base64"):
        with_facts(of_image, image=url).to_html()


def bomb(width, height):
    buffer = io.BytesIO()
    Image.new("1", (width, height)).save(buffer, "png")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


@pytest.mark.parametrize("size", [(8000, 8000), (20_000, 20_000)])
def test_a_bomb_is_refused_before_it_is_decoded(of_image, size):
    url = bomb(*size)
    tracemalloc.start()
    with pytest.raises(InputError, match=r"pixels, and limes decodes|decompression bomb"):
        with_facts(of_image, labels=url).to_html()
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_labels_have_the_size_of_the_image(of_image):
    with pytest.raises(InputError, match=r"it has \(16, 16\) pixels, its superpixels have \(900, 900\)"):
        with_facts(of_image, labels=bomb(900, 900)).to_html()


def test_a_data_url_is_read_back():
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert np.array_equal(from_data_url(to_data_url(pixels)), pixels)


def test_a_document_nested_too_deep_is_refused(of_image):
    deep = {}
    for _ in range(900):
        deep = {"a": deep}
    with pytest.raises(InputError, match="nested deeper than 50 levels"):
        with_facts(of_image, deep=deep)


NASTY = ["\x1b]0;title\x07", "\x9d0;x\x9c", "a\u202eb", "a\nb"]


@pytest.mark.parametrize("name", NASTY)
def test_a_summary_prints_no_control_character(name):
    X = np.random.default_rng(0).normal(size=(30, 2))
    explanation = limes.TabularExplainer(lambda X: X[:, 0], X, control="none", max_calls=64)(X[:4])
    document = json.loads(explanation.to_json())
    document |= {"output_names": [name], "feature_names": [name, "b"]}
    text = str(limes.summary(limes.Explanation.from_json(json.dumps(document))))
    assert not {c for c in text if not c.isprintable()} - {"\n"}
    assert "a\nb" not in text


def test_lone_surrogates_and_dollars_are_no_reason_to_fail():
    explanation = limes.TextExplainer(lambda texts: np.array([float(t.count("good")) for t in texts]))(
        "good $$ food \ud800 $x$"
    )
    assert len(explanation.to_frame()) == len(explanation.feature_names)
    explanation.plot.text()
