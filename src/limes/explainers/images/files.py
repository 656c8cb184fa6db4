"""Photographs and ONNX models from files, for the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from limes._optional import require
from limes.exceptions import InputError
from limes.models.calling.networks import Preprocess, layout


def read_image(path: Path) -> Any:
    """Return an image file as an array: grey (H, W), or RGB (H, W, 3), upright.

    Raises
    ------
    InputError
        If the file does not exist, or is no image.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as opened:
            turned = ImageOps.exif_transpose(opened)
            return np.asarray(turned if turned.mode in ("L", "RGB") else turned.convert("RGB"))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(f"{path} could not be read as an image: {error}") from error


def session_of(path: Path) -> Any:
    """Return an ONNX Runtime session, on the CPU.

    Raises
    ------
    InputError
        If the file is no ONNX model.
    """
    runtime = require("onnxruntime", "an ONNX model")
    try:
        return runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise InputError(f"{path} could not be loaded: {type(error).__name__}: {error}") from error


def preprocess_of(session: Any, mean: float, scale: float) -> Preprocess:
    """Return layout and size from the model's input; pixels minus the mean, over the scale."""
    shape = session.get_inputs()[0].shape
    channels = layout(shape)
    sides = shape[2:] if channels == "first" else shape[1:3]
    fixed = len(sides) == 2 and all(isinstance(side, int) for side in sides)
    return Preprocess(mean=mean, scale=scale, channels=channels, size=tuple(sides) if fixed else None)
