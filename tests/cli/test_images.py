"""Images on the command line: an ONNX file and a photograph."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import onnx_models as onnx
from internals import app
from limes.exceptions import InputError

IMAGE = np.random.default_rng(0).integers(0, 256, (12, 16, 3)).astype(np.uint8)
GRID = ["--segments", "grid", "--max-calls", "400"]


@pytest.fixture
def files(tmp_path):
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    weights = np.random.default_rng(1).normal(size=(3 * 6 * 8, 4)) / 1000
    (tmp_path / "model.onnx").write_bytes(onnx.linear(weights, ("n", 3, 6, 8)))
    Image.fromarray(IMAGE).save(tmp_path / "photo.png")
    (tmp_path / "labels.txt").write_text("background\ncat\ndog\nbird\nfish\n")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["explain", *map(str, arguments)])


def test_a_photograph_and_an_onnx_file(files):
    model, photo, labels = files / "model.onnx", files / "photo.png", files / "labels.txt"
    options = ["--labels", labels, "--skip-labels", 1, "--top", 2, "--link", "softmax", "--mean", 127]
    result = run(model, "--image", photo, *GRID, *options, "--scale", 128, "--html", files / "out.html")
    assert result.exit_code == 0, result.output
    assert "superpixel" in result.output
    assert "lx-photo" in (files / "out.html").read_text()
    assert any(name in result.output for name in ("cat", "dog", "bird", "fish"))
    assert "--mean and" not in result.output


def test_unscaled_pixels_are_reported(files):
    result = run(files / "model.onnx", "--image", files / "photo.png", *GRID)
    assert result.exit_code == 0
    assert "--mean and" in result.stderr
    assert "--mean and" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.onnx", "--image", "none.png"], "no such file"),
        (["model.onnx", "--image", "labels.txt"], "could not be read as an image"),
        (["labels.onnx", "--image", "photo.png"], "could not be loaded"),
        (["model.onnx", "--image", "photo.png", "--text", "x"], "pass one thing to explain"),
        (["model.onnx", "--image", "photo.png", "--row", "2"], "are for tables"),
        (["model.onnx", "--text", "a text", "--top", "2"], "are for images"),
        (
            ["model.onnx", "--image", "photo.png", "--labels", "labels.txt"],
            "5 labels.*4 answers.*--skip-labels 1",
        ),
    ],
)
def test_bad_files_and_options_are_refused(files, monkeypatch, arguments, message):
    monkeypatch.chdir(files)
    (files / "labels.onnx").write_text("no model")
    result = run(*arguments, *(GRID if "--text" not in arguments else ()))
    assert isinstance(result.exception, InputError)
    assert re.search(message, str(result.exception).replace("\n", " "))
