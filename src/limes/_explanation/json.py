"""An explanation as strictly valid JSON, and back, every float to the last bit.

The object holds ``"format"``, ``"version"``, ``"shape"`` (of the values) and the fields of the
explanation under their own names, arrays as nested lists. Finite floats are written with the fewest
digits that read back as the same float. JSON has no number for the others: they are
``{"$float": "nan"}``, ``{"$float": "inf"}`` and ``{"$float": "-inf"}``; a missing cell is ``null``. Images
are data URLs, ``data:image/png;base64,...``.
"""

from __future__ import annotations

import base64
import io
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from limes._warnings import RowWarning
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limes._arrays import Ints


FORMAT = "limes._explanation"
VERSION = 1

# The one key of the JSON object that stands for a float which JSON has no number for
NOT_FINITE = "$float"
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_HEAD = ("format", "version", "shape")
# Fields that files of earlier versions of limes do not have
_LATER = {"shared_calls", "effective_rows", "account"}
# Codes and outputs of the texts in "row_warnings", row by row; earlier versions have none
_KINDS = "row_warning_kinds"
_DEEPEST = 50
# Digits of a whole number: those of the largest float
_DIGITS = 308


def dumps(fields: Mapping[str, Any]) -> str:
    n, *k = fields["predictions"].shape
    head = {"format": FORMAT, "version": VERSION, "shape": [n, len(fields["feature_names"]), *k]}
    body = {name: jsonable(value) for name, value in fields.items()}
    body[_KINDS] = [[[w.code, *w.outputs] for w in row] for row in fields["row_warnings"]]
    return json.dumps({**head, **body}, allow_nan=False, separators=(",", ":"))


def loads(
    text: str, names: tuple[str, ...], axes: Mapping[str, str], where: str = "The JSON text"
) -> dict[str, Any]:
    """Return the fields of these names; ``axes`` are those of arrays, "n", "d" and "k" of the shape."""
    content = _parse(text, where)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f'{where} has no "format": "{FORMAT}"; write it with Explanation.to_json')
    if content.get("version") != VERSION:
        raise InputError(
            f"{where} has version {content.get('version')!r} of its format, this limes reads "
            f"version {VERSION}; use the limes that wrote it, or write it again"
        )
    present, required = {*content, *_LATER} - {_KINDS}, {*_HEAD, *names}
    if present != required:
        raise InputError(
            f"{where} lacks the fields {sorted(required - present)} and has the unknown fields "
            f"{sorted(present - required)}; write it again with to_json"
        )
    shape = content["shape"]
    if not isinstance(shape, list) or len(shape) < 2 or not all(type(size) is int for size in shape):
        raise InputError(f"{where} is damaged: its shape is {shape!r}; write it again")
    try:
        _check_depth(content)
        content["row_warnings"] = _warnings(content["row_warnings"], content.get(_KINDS))
        fields = {
            name: _shaped(name, content[name], shape, axes.get(name, "")) for name in names if name in content
        }
    except (KeyError, TypeError, ValueError) as problem:
        raise InputError(f"{where} is damaged ({problem}); write it again") from problem
    if fields["values"] is not None and fields["fidelity"] is None:  # R² was left out, and is not known
        unknown = np.full(np.shape(fields["intercepts"]), np.nan)
        fields |= {"fidelity": unknown, "fidelity_errors": np.full_like(unknown, np.inf)}
    return fields


def _warnings(texts: list[list[str]], kinds: list[list[list[str]]] | None) -> Any:
    """Texts with the code and the outputs of each, row by row, if they are known."""
    if kinds is None:
        return texts
    if not all(isinstance(word, str) for row in kinds for words in row for word in words):
        raise ValueError(f"{_KINDS} has a code or an output that is no text")
    return [
        tuple(RowWarning(text, code, outputs) for text, (code, *outputs) in zip(row, its, strict=True))
        for row, its in zip(texts, kinds, strict=True)
    ]


def jsonable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        finite = value.dtype != object and bool(np.isfinite(value).all())
        return value.tolist() if finite else jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return {NOT_FINITE: str(value)}
    if isinstance(value, list | tuple):
        return [jsonable(v) for v in value]
    if hasattr(value, "items"):
        return {key: jsonable(v) for key, v in value.items()}
    return value


def _check_depth(value: Any) -> None:
    """Raise ValueError where the value is nested deeper than anything that `dumps` writes."""
    level = [value]
    for _ in range(_DEEPEST):
        parts = [part.values() if isinstance(part, dict) else part for part in level]
        level = [item for part in parts for item in part if isinstance(item, dict | list)]
        if not level:
            return
    raise ValueError(f"it is nested deeper than {_DEEPEST} levels")


def _shaped(name: str, value: Any, shape: list[int], axes: str) -> Any:
    # nested lists lose the width of an array without rows: hence the shape beside them.
    sizes = dict(zip("ndk", shape, strict=False))
    expected = tuple(sizes[axis] for axis in axes if axis in sizes)
    if value is None or 0 not in expected:
        return value
    if np.size(value):
        raise ValueError(f"{name} has entries, but its shape is {expected}")
    return np.empty(expected, dtype=object if name == "data" else float)


def checked_text(text: Any) -> str:
    """Return a text that may be JSON of an explanation, never that of a file: it may come from a stranger."""
    if isinstance(text, str) and text.lstrip().startswith("{"):
        return text
    raise InputError(
        f"No explanation could be read from the text {str(text)[:80]!r}: pass what to_json wrote; "
        "Explanation.read_json(path) reads a file"
    )


def read_text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError, TypeError) as problem:
        raise InputError(
            f"No explanation could be read from the file {str(path)[:80]!r} ({problem}): pass the path of a "
            "file that to_json wrote; Explanation.from_json(text) reads a text"
        ) from problem


def _parse(text: str, where: str) -> Any:
    def special(piece: dict[str, Any]) -> Any:
        return _SPECIAL[piece[NOT_FINITE]] if set(piece) == {NOT_FINITE} else piece

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    def whole(digits: str) -> int:
        if len(digits) > _DIGITS:
            raise ValueError(f"{digits[:20]}... has {len(digits)} digits")
        return int(digits)

    try:
        return json.loads(text, object_hook=special, parse_constant=refuse, parse_int=whole)
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise InputError(f"{where} is not valid JSON: {problem}; write it with to_json") from problem


# Most pixels that are decoded: 32 bytes a pixel are 1 GB
MAX_PIXELS = 1 << 25
_FORMATS = ("PNG", "JPEG")
_DATA_URL = re.compile(r"data:image/(png|jpeg);base64,([A-Za-z0-9+/]+={0,2})")
# Larger photographs are written as JPEG, which is small and lossy
_LARGEST_PNG = 512 * 512


def to_data_url(
    pixels: Any, *, lossless: bool = True, largest_png: int = _LARGEST_PNG, quality: int = 92
) -> str:
    """Write (H, W) or (H, W, 3 or 4) of uint8; as a JPEG if it may be lossy and has many pixels."""
    from PIL import Image

    buffer, image = io.BytesIO(), Image.fromarray(pixels)
    kind = "png" if lossless or pixels.shape[0] * pixels.shape[1] <= largest_png else "jpeg"
    image.save(buffer, kind, **({"quality": quality} if kind == "jpeg" else {"compress_level": 1}))
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def from_data_url(url: Any) -> Any:
    """Return (H, W, C) of the data URL of an image."""
    from PIL import Image

    # The text may come from an untrusted file: it has to be a PNG or JPEG in base64 and nothing else, as HTML
    # shows it in a style, and its size is checked before a pixel is decoded.
    if not isinstance(url, str) or not (match := _DATA_URL.fullmatch(url)):
        raise InputError("the image of this explanation is damaged: it is no PNG or JPEG in base64")
    try:
        with Image.open(io.BytesIO(base64.b64decode(match[2], validate=True)), formats=_FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise InputError(
                    f"the image of this explanation has {image.width} x {image.height} pixels, and limes "
                    f"decodes {MAX_PIXELS:,}: explain a smaller image"
                )
            return np.asarray(image)
    except (ValueError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the image of this explanation is damaged: {error}") from None


def labels_to_data_url(labels: Ints) -> str:
    """Write labels (H, W) below 2^24, one byte a pixel where that is enough, else three."""
    if labels.max(initial=0) < 256:
        return to_data_url(labels.astype(np.uint8))
    return to_data_url(np.stack([labels >> shift & 255 for shift in (0, 8, 16)], axis=-1).astype(np.uint8))


def labels_from_data_url(url: Any) -> Ints:
    parts = from_data_url(url).astype(np.int64)
    if parts.ndim == 2:
        return np.asarray(parts)
    return np.asarray(parts[..., 0] | parts[..., 1] << 8 | parts[..., 2] << 16)
