"""Answers of a model to perturbed inputs: their names, those that are explained, and links put on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Floats
from limes._checks import did_you_mean
from limes._explanation.wording import count
from limes.exceptions import InputError, ModelError
from limes.models._calling.caller import ModelCaller
from limes.models._calling.outputs import FirstAnswers, is_position

# (n, k) -> (n, k), put on a network's answers
Link: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True)
class LinkedModel:
    """Answers of a model at rows z (n, d), after the link: all of them, or some columns."""

    caller: ModelCaller
    link: Link | None
    columns: int | list[int] | None

    @property
    def first(self) -> FirstAnswers:
        """The model's first answers, before the link."""
        return self.caller.first

    def __call__(self, z: Floats) -> Floats:
        try:
            answers = self.caller(z)
        except ModelError as error:
            # buffers are used again: the error keeps a copy
            error.batch = error.batch.clone() if hasattr(error.batch, "clone") else deepcopy(error.batch)
            raise
        answers = answers if self.link is None else self.link(answers)
        return answers if self.columns is None else np.ascontiguousarray(answers[:, self.columns])


def labels_of(labels: Any) -> tuple[str, ...] | None:
    """Names of classes, from a list, or from a text file with one per line."""
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
    names = [str(label).strip() for label in labels]
    counts = Counter(names)
    return tuple(f"{name} ({k})" if counts[name] > 1 else name for k, name in enumerate(names))


def check_labels(labels: tuple[str, ...], answers: int) -> None:
    if len(labels) != answers:
        first = f", the first of them {labels[0]!r}" if labels else ""
        raise InputError(
            f"there are {len(labels)} labels{first}, and the model gives {answers} answers: pass one name "
            "per answer, in their order; leave out a first name that is no class, such as background "
            "(labels[1:], or --skip-labels 1 on the command line)"
        )


def positions_of(output: Any, names: Sequence[str], answers: Floats, top: int) -> int | list[int]:
    """Positions of the explained answers: those that ``output`` names, else the ``top`` largest."""
    if output is None:
        return [int(k) for k in np.argsort(-answers, kind="stable")[:top]]
    if isinstance(output, list | tuple | np.ndarray):
        if not len(output):
            raise InputError("output=[] is empty: pass one class or more")
        return [_position(one, names) for one in output]
    return _position(output, names)


def _position(output: Any, names: Sequence[str]) -> int:
    if is_position(output) and output < len(names):
        return int(output)
    if str(output) in names:
        return list(names).index(str(output))
    cure = "pass a name of labels=, or a position counted from 0"
    if output in ("probability", "margin"):
        cure = (
            "of a network pass link='softmax' or 'sigmoid' for probabilities, link=None for its own answers"
        )
    raise InputError(
        f"output={output!r} is not among the model's {count(len(names), 'answer')}"
        f"{did_you_mean(output, names)}; {cure}"
    )


def _softmax(answers: Floats) -> Floats:
    if answers.ndim == 1 or answers.shape[1] == 1:
        raise InputError(
            "link='softmax' needs several answers for each input; the model gives one, of which the softmax "
            "is always 1: pass link='sigmoid'"
        )
    powers = np.exp(answers - answers.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _sigmoid(answers: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(answers))


LINKS: Mapping[str, Link] = {"softmax": _softmax, "sigmoid": _sigmoid}
