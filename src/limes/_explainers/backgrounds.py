r"""A background gives what is hidden its values: other series, photographs or rows, the interventional law.

A perturbed input shows x where z = 1, and where z = 0 an item b of the background, of n that are equally
likely, whatever z is. The function that is explained, and its coefficients, are means over the background:

    f(z) = Σ_b f(x(z, b)) / n,    β = Σ_b β_b / n,    β_b with everything hidden by b.

Where all items with all 2^d subsets are within the budget, the model is asked about them, and β is exact.
Else each perturbed input has one item, drawn for it: its answer is f(z) and an error of mean 0, which other
inputs' answers do not share. It is among the residuals, so that standard errors contain the draw of the
background. Of designs that ask N inputs, m items a subset, this has the least variance:

    Var β̂ ∝ [m Var_w f(z) + E_w Var(f(x(z, b)) | z)] / N,    least for m = 1.

A subset that is asked about again gets the next item of a cycle through all n, which depends on the seed and
the subset alone: results do not depend on batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import gcd
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import check_choice
from limes.exceptions import InputError
from limes.models._algebra import over_switches
from limes.models._identity import Predict
from limes.models.forms._base import Combination, Form, Linear, outputs_of
from limes.models.forms._presence import Switches

HIDES = ("fill", "background")
# Numbers of items are floats in rows: larger ones are not whole
_MOST_ITEMS = 1 << 53


def check_hide(hide: Any, background: Any, fill: Any, *, usual: Any, also: Any = ()) -> None:
    """Refuse options that do not go together; ``also`` are fills that use a background."""
    check_choice("hide", hide, HIDES)
    uses = isinstance(fill, str) and fill in also
    if background is None and (hide == "background" or uses):
        option = "hide='background'" if hide == "background" else f"fill={fill!r}"
        raise InputError(f"{option} needs a background: pass several, as background=[...]")
    if background is not None and hide != "background" and not uses:
        raise InputError("background= is not used: pass hide='background', which draws from it")
    if hide == "background" and not (isinstance(fill, str) and fill == usual):
        raise InputError(
            "fill= has no effect with hide='background', which fills from background=: leave it out"
        )


def check_items(draws: int) -> int:
    if draws > _MOST_ITEMS:
        raise InputError(f"the backgrounds of all parts have {draws:.3g} combinations: pass smaller ones")
    return draws


def split_rows(rows: Floats, draws: int) -> tuple[Floats, Ints]:
    """Rows z (n, d) and the item of each (n,), which is the last column where there are several ``draws``."""
    rows = np.asarray(rows)
    if draws == 1:
        return rows, np.zeros(len(rows), dtype=np.int64)
    return rows[:, :-1], rows[:, -1].astype(np.int64)


# Most items of a background that have a form each: a forest of 100 trees becomes one of thousands
_MOST_FORMS = 128


def mean_over(form: Form, switches: Sequence[Switches]) -> Form:
    """f(x(z)) of an estimator's form, in the mean over a background's fills; an InputError without one."""
    if len(switches) == 1:
        return over_switches(form, switches[0])
    if isinstance(form, Linear):
        fill = np.mean([one.fill for one in switches], axis=0)
        return over_switches(form, replace(switches[0], fill=fill))
    if len(switches) > _MOST_FORMS:
        raise InputError(
            f"a {type(form).__name__} is read for up to {_MOST_FORMS} items of a background, and there are "
            f"{len(switches)}"
        )
    parts, weights = [over_switches(form, one) for one in switches], np.full(len(switches), 1 / len(switches))
    return Combination(parts, weights, np.zeros(outputs_of(form)))


@dataclass(frozen=True, eq=False)
class BackgroundAnswers:
    """A model's answers to rows z (n, d), with what is hidden from one item or from all of them."""

    ask: Predict  # rows (n, d + 1), the last column an item
    items: int
    batch_size: int
    seed: Any
    times: Counter[bytes] = field(default_factory=Counter)  # how often each subset was asked about

    def first(self, z: Floats) -> Floats:
        """Everything from the first item: a function wherever the model is one."""
        return self.ask(_with_items(z, np.zeros(len(z))))

    def mean(self, z: Floats) -> Floats:
        hides = (z <= 0).any(axis=1)
        counts = np.where(hides, self.items, 1)  # nothing is drawn where all is shown
        starts = np.cumsum(counts) - counts
        items = np.arange(counts.sum()) - np.repeat(starts, counts)
        rows = _with_items(np.repeat(z, counts, axis=0), items)
        answers = np.concatenate(
            [self.ask(rows[i : i + self.batch_size]) for i in range(0, len(rows), self.batch_size)]
        )
        return np.stack(
            [answers[start : start + count].mean(axis=0) for start, count in zip(starts, counts, strict=True)]
        )

    def drawn(self, z: Floats) -> Floats:
        seen: Counter[bytes] = Counter()
        items = np.empty(len(z))
        for i, row in enumerate(np.ascontiguousarray(z > 0)):
            key = row.tobytes()
            items[i] = self._item(key, self.times[key] + seen[key])
            seen[key] += 1
        answers = self.ask(_with_items(z, items))
        self.times.update(seen)  # a batch that failed is asked again with the same items
        return answers

    def _item(self, key: bytes, time: int) -> int:
        digest = blake2b(key + repr(self.seed).encode(), digest_size=16).digest()
        start, step = (int.from_bytes(part, "little") for part in (digest[:8], digest[8:]))
        while gcd(step, self.items) != 1:
            step += 1
        return (start + time * step) % self.items


def _with_items(z: Floats, items: Any) -> Floats:
    return np.column_stack([z, items])


def several(background: Any, axes: Sequence[int], what: str) -> list[Any]:
    """The items of a list, or of an array with one of some numbers of axes."""
    if isinstance(background, list | tuple):
        items = list(background)
    else:
        array = np.asarray(background)
        items = list(array) if array.ndim in axes else []
    if not items:
        raise InputError(f"background must be several {what}: a list of them; got {_described(background)}")
    return items


def _described(background: Any) -> str:
    shape = np.shape(background) if hasattr(background, "shape") else None
    return f"{type(background).__name__} of shape {shape}" if shape is not None else repr(background)
