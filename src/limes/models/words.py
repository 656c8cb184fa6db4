"""Forms over kept words: z_j = 1 where word j of a text (or superpixel j of an image) is kept, 0 where not.

A model of text sees a perturbed text only through which of its words are kept. A tree on word counts asks
whether words are there (*presence products*); a linear model on TF-IDF adds their weights, over the norm of
all that is left (*normalised linear*); without the norm it is ``Linear``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Bools, Floats, Ints
from limes.exceptions import InputError
from limes.models.reductions import finite, outputs_intercept, picked
from limes.models.shared_words import Shared

Norm = Literal["l2", "l1"]
# The norm is (Σ a_j z_j) to this power.
POWERS: Mapping[str, float] = {"l2": 0.5, "l1": 1.0}
# rows x literals evaluated at once: 16 MB of float64
_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False, init=False)
class PresenceProducts:
    """f(z) = intercept + Σ_i coef[i] ∏_{j in on[i]} z_j ∏_{j in off[i]} (1 - z_j).

    A tree on the presence of words is one product a leaf. A word that is on twice is on; a product with a
    word both on and off is 0 and is dropped.

    Parameters
    ----------
    products
        Triples (on, off, coef): two lists of words, counted from 0, and a number or (k,).
    intercept
        A number, or (k,).
    size
        Number of words d. If not given the form reads as many as its products name; a design may always
        have more.

    Attributes
    ----------
    product, word, present
        (L,) a factor each: of which product, about which word, and whether the word is on.
    coef
        (m,) or (m, k).

    Raises
    ------
    InputError
        If a word is no whole number >= 0, or not below ``size``; if coefs are not finite, or of different
        shapes.

    Examples
    --------
    >>> from limes.models import forms
    >>> tree = forms.PresenceProducts([([0], [], 1.0), ([1, 2], [0], 1.0)])
    >>> tree.predict([[1, 0, 0], [0, 1, 1], [0, 0, 1]])
    array([1., 1., 0.])
    """

    product: Ints
    word: Ints
    present: Bools
    coef: Floats
    intercept: Floats
    size: int

    def __init__(
        self,
        products: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]],
        intercept: ArrayLike = 0.0,
        size: int = 0,
    ) -> None:
        sides = [_words(side, i) for i, (on, off, _) in enumerate(products) for side in (on, off)]
        lengths = np.array([side.size for side in sides], dtype=np.int64)
        place = np.repeat(np.arange(len(sides)), lengths)
        words = np.concatenate([np.zeros(0, dtype=np.int64), *sides])
        self._fill(place // 2, words, place % 2 == 0, _coefs(products), intercept, size)

    @classmethod
    def of_factors(
        cls,
        product: Ints,
        word: Ints,
        present: Bools,
        coef: Floats,
        intercept: ArrayLike = 0.0,
        size: int = 0,
    ) -> PresenceProducts:
        """The same from arrays, for thousands of products; see the attributes."""
        form = object.__new__(cls)
        form._fill(product, word, present, coef, intercept, size)
        return form

    def _fill(
        self, product: Ints, word: Ints, present: Bools, coef: ArrayLike, intercept: ArrayLike, size: int
    ) -> None:
        coef = finite(coef, "coef", 1, 2)
        highest = int(word.max(initial=-1)) + 1
        if size and highest > size:
            raise InputError(f"a product names word {highest - 1}, but there are {size}, counted from 0")
        size = size or highest
        product, word, present, alive = _consistent(product, word, present, len(coef), size)
        arrays = {"product": product, "word": word, "present": present, "coef": coef[alive]}
        intercept = outputs_intercept(intercept, coef.shape[1:])
        for name, value in {**arrays, "intercept": intercept, "size": size}.items():
            object.__setattr__(self, name, value)

    def predict(self, z: ArrayLike) -> Floats:
        """Values (n, ...) at rows z (n, d)."""
        z = _rows(z, self.size, np.inf)
        step = max(1, _BLOCK // max(1, self.word.size))
        blocks = [self._predict(z[i : i + step]) for i in range(0, len(z), step)]
        return np.concatenate(blocks) if blocks else self._predict(z)

    def _predict(self, z: Floats) -> Floats:
        columns = z.T[self.word]
        factors = np.where(self.present[:, None], columns, 1.0 - columns)
        values = np.ones((len(self.coef), len(z)))
        read, first = np.unique(self.product, return_index=True)
        if read.size:
            values[read] = np.multiply.reduceat(factors, first, axis=0)
        return np.asarray(np.tensordot(values, self.coef, axes=(0, 0)) + self.intercept)

    def select(self, outputs: int | list[int]) -> PresenceProducts:
        """One or several outputs."""
        intercept = picked(self.intercept, outputs)
        coef = self.coef[:, outputs]
        return self.of_factors(self.product, self.word, self.present, coef, intercept, self.size)


@dataclass(frozen=True, eq=False)
class NormalizedLinear:
    """f(z) = intercept + Σ_j c_j z_j / √(Σ_j a_j z_j); the fraction is 0 where Σ a_j z_j = 0.

    A linear model on normalised TF-IDF: word j, m_j times in the text, with inverse document frequency v_j
    and coefficient λ_j, has a_j = (m_j v_j)², c_j = λ_j m_j v_j. A word that the vocabulary does not know
    has a_j = c_j = 0, and still is a word of the text. ``norm="l1"`` divides by Σ a_j z_j, a_j = m_j v_j.

    Parameters
    ----------
    c
        (d,), or (d, k) for k outputs.
    a
        (d,), not negative.
    norm
        "l2" or "l1".
    intercept
        A number, or (k,).
    shared
        Groups of words that add more to the norm together than each alone; see ``shared_words.py``.

    Raises
    ------
    InputError
        If a number is not finite, shapes disagree, an a_j is negative, or c_j ≠ 0 where a_j = 0.

    References
    ----------
    Mardaoui & Garreau 2021, section 4.2.

    Examples
    --------
    >>> from limes.models import forms
    >>> forms.NormalizedLinear([3.0, 8.0, 0.0], [9.0, 16.0, 0.0]).predict([[1, 1, 1], [0, 0, 1]])
    array([2.2, 0. ])
    """

    c: Floats
    a: Floats
    norm: Norm = "l2"
    intercept: Floats = field(default_factory=lambda: np.zeros(()))
    shared: tuple[Shared, ...] = ()

    def __post_init__(self) -> None:
        c, a = finite(self.c, "c", 1, 2), finite(self.a, "a", 1)
        together = np.concatenate([np.zeros(0, dtype=np.int64), *(group.words for group in self.shared)])
        if len(set(together.tolist())) < len(together) or (together >= len(a)).any() or not a[together].all():
            raise InputError("shared words must be words with a > 0, each in one group")
        if len(c) != len(a):
            raise InputError(f"c is about {len(c)} words and a about {len(a)}: both need one entry a word")
        if (a < 0).any():
            raise InputError(f"a must not be negative; a[{int(np.argmin(a))}] is {a.min()}")
        weightless = (a == 0) & (c.reshape(len(c), -1) != 0).any(axis=1)
        if weightless.any():
            raise InputError(
                f"word {int(np.argmax(weightless))} has a = 0 and c ≠ 0: alone in a text it would be divided "
                "by a norm of 0. Words without weight need c = 0"
            )
        if self.norm not in POWERS:
            raise InputError(f"norm must be one of {sorted(POWERS)}, got {self.norm!r}")
        object.__setattr__(self, "c", c)
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "intercept", outputs_intercept(self.intercept, c.shape[1:]))

    @property
    def size(self) -> int:
        """Number of words d."""
        return len(self.a)

    @property
    def power(self) -> float:
        """The norm is (Σ a_j z_j) to this power."""
        return POWERS[self.norm]

    def predict(self, z: ArrayLike) -> Floats:
        """Values (n, ...) at rows z (n, d)."""
        z = _rows(z, self.size, self.size)
        left = z @ self.a + sum((group.at(z) for group in self.shared), np.zeros(len(z)))
        scale = np.divide(1.0, left**self.power, out=np.zeros_like(left), where=left > 0)
        fraction = (z @ self.c) * scale.reshape(-1, *(1,) * (self.c.ndim - 1))
        return np.asarray(fraction + self.intercept)

    def select(self, outputs: int | list[int]) -> NormalizedLinear:
        """One or several outputs."""
        intercept = picked(self.intercept, outputs)
        return NormalizedLinear(self.c[:, outputs], self.a, self.norm, intercept, self.shared)


def _words(side: ArrayLike, i: int) -> Ints:
    found = np.asarray(side)
    if found.size == 0:
        return np.zeros(0, dtype=np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu" or (found < 0).any():
        raise InputError(f"product {i} must list its words as whole numbers >= 0, got {side!r}")
    return found.astype(np.int64)


def _coefs(products: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]]) -> Floats:
    coefs = [np.asarray(coef, dtype=np.float64) for _, _, coef in products]
    shapes = {coef.shape for coef in coefs}
    if len(shapes) > 1:
        raise InputError(f"coefs must all be numbers, or all have one entry an output; got shapes {shapes}")
    return np.stack(coefs) if coefs else np.zeros(0)


def _consistent(
    product: Ints, word: Ints, present: Bools, count: int, size: int
) -> tuple[Ints, Ints, Bools, Bools]:
    """Factors in order and once each, without the products that no z satisfies; which products are left."""
    code = np.sort((product * size + word) * 2 + present)  # np.unique takes ten times as long for millions
    code = code[np.diff(code, prepend=-1) > 0]
    pair = code // 2
    alive = np.ones(count, dtype=np.bool_)
    alive[pair[1:][pair[1:] == pair[:-1]] // max(1, size)] = False
    owner, word = np.divmod(pair, max(1, size))
    stays = alive[owner]
    renumbered = np.cumsum(alive) - 1
    return renumbered[owner[stays]], word[stays], (code % 2 == 1)[stays], alive


def _rows(z: ArrayLike, fewest: int, most: float) -> Floats:
    found = np.asarray(z, dtype=np.float64)
    if found.ndim != 2 or not fewest <= found.shape[1] <= most:
        raise InputError(f"z must be (n, {fewest}), a column a word; got shape {found.shape}")
    return found
