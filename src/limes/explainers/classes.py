"""Which of a model's answers are explained, and what they are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.explainers.options import check_choice

Link = Callable[[Floats], Floats]


def labels_of(labels: Any) -> tuple[str, ...] | None:
    """Names of classes: a list, or a text file with one a line.

    Raises
    ------
    InputError
        If it is neither, or the file cannot be read.
    """
    if labels is None:
        return None
    if isinstance(labels, str | Path):
        path = Path(labels)
        try:
            labels = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"labels: {path} could not be read: {error}") from None
    if not isinstance(labels, Sequence | np.ndarray) or not len(labels):
        raise InputError(f"labels must be a list of names, or a text file of one a line; got {labels!r}")
    return _distinct([str(label).strip() for label in labels])


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Names that occur twice get their position."""
    often = Counter(names)
    return tuple(f"{name} ({k})" if often[name] > 1 else name for k, name in enumerate(names))


def check_labels(labels: tuple[str, ...], answers: int) -> None:
    """Refuse names that are not one an answer."""
    if len(labels) != answers:
        first = f", the first of them {labels[0]!r}" if labels else ""
        raise InputError(
            f"there are {len(labels)} labels{first}, and the model gives {answers} answers: give one name an "
            "answer, in their order; a first name of no class, such as background, may have to go "
            "(labels[1:], or --skip-labels 1 on the command line)"
        )


def chosen(output: Any, names: Sequence[str], answers: Floats, top: int) -> int | list[int]:
    """Positions of the answers (k,) that are explained: as asked for, else the ``top`` largest.

    Raises
    ------
    InputError
        If there is no such answer.
    """
    if output is None:
        return [int(k) for k in np.argsort(-answers, kind="stable")[:top]]
    if isinstance(output, list | tuple | np.ndarray):
        if not len(output):
            raise InputError("output=[] asks for no class at all")
        return [_position(one, names) for one in output]
    return _position(output, names)


def _position(output: Any, names: Sequence[str]) -> int:
    whole = isinstance(output, int | np.integer) and not isinstance(output, bool)
    if whole and 0 <= output < len(names):
        return int(output)
    if str(output) in names:
        return list(names).index(str(output))
    close = get_close_matches(str(output), names, n=1)
    advice = f"; did you mean {close[0]!r}?" if close else ""
    raise InputError(
        f"output={output!r} is none of the model's {len(names)} answers{advice} Give a name of labels=, or a "
        "position counted from 0"
    )


def link_of(link: Any) -> Link | None:
    """The option ``link`` as a function (n, k) -> (n, k)."""
    return None if link is None else _LINKS[check_choice("link", link, tuple(_LINKS))]


def _softmax(answers: Floats) -> Floats:
    if answers.ndim == 1:
        raise InputError("link='softmax' needs several answers an image, and the model gives one")
    powers = np.exp(answers - answers.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _sigmoid(answers: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(answers))


_LINKS: Mapping[str, Link] = {"softmax": _softmax, "sigmoid": _sigmoid}
