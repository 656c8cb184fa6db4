r"""Linear models on normalised TF-IDF, as forms over the kept words z of a text.

The model's row is x(z) = Σ_j R_j z_j over its norm. Where no two words meet in a column of the vectorizer,
the squared norm is Σ_j a_j z_j, a_j = Σ_v R_jv². Words that do meet, as Food and food do, add an excess e(z)
for each group of them: (Σ_v (Σ_j R_jv z_j)²) - Σ_j a_j z_j over the columns where they meet. Groups are
small, and e is a table of 2^g numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats, Ints
from limes._checks import finite_array
from limes.exceptions import InputError
from limes.models.forms._base import FormBase, check_rows, coefficients, zero

Norm = Literal["l2", "l1"]
# The norm is (Σ a_j z_j) to this power.
POWERS: Mapping[str, float] = {"l2": 0.5, "l1": 1.0}
# Words of a group: 2^10 subsets
LARGEST_GROUP = 10


@dataclass(frozen=True, eq=False)
class SharedWords:
    """A group of g words (g,), and the excess of the subsets that are kept over Σ a_j z_j, (2^g,).

    Subsets are numbered by Σ_i z_i 2^i, with i the position in ``words``.

    Raises
    ------
    InputError
        If the table does not fit the words, has negative entries, or a word alone has an excess.
    """

    words: Ints
    excess: Floats

    def __post_init__(self) -> None:
        words, excess = np.asarray(self.words, dtype=np.int64), np.asarray(self.excess, dtype=np.float64)
        if words.ndim != 1 or excess.shape != (1 << len(words),):
            raise InputError(f"{len(words)} words have 2^{len(words)} subsets, but excess has {excess.shape}")
        sizes = self.subsets(len(words)).sum(axis=1)
        if not (np.isfinite(excess) & (excess >= 0)).all() or excess[sizes < 2].any():
            raise InputError("excess must be finite and not negative, and 0 of no word and of one")
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "excess", excess)

    @staticmethod
    def subsets(g: int) -> Floats:
        """Every z of g words, by number, (2^g, g)."""
        return (np.arange(1 << g)[:, None] >> np.arange(g) & 1).astype(np.float64)

    def at(self, z: Floats) -> Floats:
        """The excess at rows z (n, d) of kept words, (n,)."""
        return self.excess[z[:, self.words].astype(np.int64) @ (1 << np.arange(len(self.words)))]


def shared_words(rows: Any) -> tuple[SharedWords, ...] | None:
    """Groups of the words whose rows of R, sparse (d, V), meet; None if one is too large."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    meeting = np.flatnonzero(np.bincount(rows.indices, minlength=rows.shape[1]) > 1)
    columns = csr_array(rows)[:, meeting]
    _, group = connected_components(columns @ columns.T, directed=False)
    members = np.flatnonzero(np.diff(columns.indptr))
    groups = [members[group[members] == k] for k in np.unique(group[members])]
    if any(len(words) > LARGEST_GROUP for words in groups):
        return None
    return tuple(SharedWords(words, _excess(columns[words].toarray())) for words in groups)


def _excess(rows: Floats) -> Floats:
    """(Σ_j R_j z_j)² - Σ_j R_j² z_j over columns, of rows (g, columns) at all z."""
    z = SharedWords.subsets(len(rows))
    excess = ((z @ rows) ** 2).sum(axis=1) - z @ (rows**2).sum(axis=1)
    excess[z.sum(axis=1) < 2] = 0.0
    return np.asarray(np.maximum(excess, 0.0))


@dataclass(frozen=True, eq=False)
class NormalizedLinear(FormBase):
    """f(z) = intercept + Σ_j c_j z_j / √(Σ_j a_j z_j); the fraction is 0 where Σ a_j z_j = 0.

    A linear model on normalised TF-IDF: word j, m_j times in the text, with inverse document frequency v_j
    and coefficient λ_j, has a_j = (m_j v_j)², c_j = λ_j m_j v_j. A word outside the vocabulary has
    a_j = c_j = 0, but is still a word of the text. ``norm="l1"`` divides by Σ a_j z_j, a_j = m_j v_j.

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
        Groups of words that share columns of the vectorizer.

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
    intercept: Floats = field(default_factory=zero)
    shared: tuple[SharedWords, ...] = ()
    output_arrays: ClassVar[tuple[str, ...]] = ("c",)

    def __post_init__(self) -> None:
        c, intercept = coefficients(self.c, self.intercept, "c")
        a = finite_array("a", self.a, 1)
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
        self._freeze(c=c, a=a, intercept=intercept)

    @property
    def size(self) -> int:
        """Number of words d."""
        return len(self.a)

    @property
    def power(self) -> float:
        """The norm is (Σ a_j z_j) to this power."""
        return POWERS[self.norm]

    def predict(self, z: ArrayLike) -> Floats:
        """Values (n, ...) at rows ``z`` (n, d)."""
        z = check_rows(z, self.size)
        norm = z @ self.a + sum((group.at(z) for group in self.shared), np.zeros(len(z)))
        scale = np.divide(1.0, norm**self.power, out=np.zeros_like(norm), where=norm > 0)
        fraction = (z @ self.c) * scale.reshape(-1, *(1,) * (self.c.ndim - 1))
        return np.asarray(fraction + self.intercept)
