"""Forms over what is kept: z_j = 1 where word j of a text, or superpixel j of an image, is kept, 0 where not.

A model of text depends on a perturbed text only through the words that are kept. A word occurs in it as often
as in the text itself, or not at all: a column of the model keeps its value, or is 0. A test of the column is
then a test of the word's presence, or has a fixed result, and a leaf of a tree, or a box, is the product of
its tests. Linear models are ``Linear`` over words, or ``NormalizedLinear`` with a norm.

A perturbed image shows number p of the image where its superpixel is on, and number p of the fill where it is
off: every column of the model takes one of two values. Sums and products over columns are then sums and
products over superpixels, and a test of a column tests whether its superpixel is on, or has a fixed result.

On normalised TF-IDF the model's row is x(z) = Σ_j R_j z_j over its norm. Where no two words meet in a column
of the vectorizer, the squared norm is Σ_j a_j z_j, a_j = Σ_v R_jv². Words that do meet, as Food and food do,
add an excess e(z) for each group of them: (Σ_v (Σ_j R_jv z_j)²) - Σ_j a_j z_j over the columns where they
meet. Groups are small, and e is a table of 2^g numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from limes import _kernels
from limes._arrays import Bools, Floats, Ints, check_rows, finite_array
from limes.exceptions import InputError
from limes.models.forms._base import Boxes, FormBase, SumOfProducts, in_blocks, output_intercept, zero
from limes.models.forms._trees import Forest


@dataclass(frozen=True, eq=False, init=False)
class PresenceProducts(FormBase):
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
        Number of words d; by default as many as the products name. A design may always have more.

    Attributes
    ----------
    product, word, present
        (L,) for each factor: its product, its word, and whether the word is on.
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
        for i, product in enumerate(products):
            if len(product) != 3:
                raise InputError(f"product {i} must be a triple (on, off, coef), got {product!r}")
        sides = [_words(side, i) for i, (on, off, _) in enumerate(products) for side in (on, off)]
        lengths = np.array([side.size for side in sides], dtype=np.int64)
        side = np.repeat(np.arange(len(sides)), lengths)
        words = np.concatenate([np.zeros(0, dtype=np.int64), *sides])
        coefs = [finite_array(f"coef of product {i}", coef, 0, 1) for i, (*_, coef) in enumerate(products)]
        shapes = {coef.shape for coef in coefs}
        if len(shapes) > 1:
            raise InputError(
                f"coefs must all be numbers, or all have one entry an output; got shapes {shapes}"
            )
        self._fill(side // 2, words, side % 2 == 0, np.array(coefs), intercept, size)

    @classmethod
    def from_factors(
        cls,
        product: Ints,
        word: Ints,
        present: Bools,
        coef: Floats,
        intercept: ArrayLike = 0.0,
        size: int = 0,
    ) -> PresenceProducts:
        """The form of thousands of products, by its attributes.

        These are ``product``, ``word``, ``present``, ``coef``, ``intercept`` and ``size``.
        """
        form = object.__new__(cls)
        form._fill(product, word, present, coef, intercept, size)
        return form

    def _fill(
        self, product: Ints, word: Ints, present: Bools, coef: ArrayLike, intercept: ArrayLike, size: int
    ) -> None:
        coef = finite_array("coef", coef, 1, 2)
        intercept = output_intercept(intercept, coef.shape[1:])
        highest = int(word.max(initial=-1)) + 1
        if size and highest > size:
            raise InputError(f"a product names word {highest - 1}, but there are {size}, counted from 0")
        size = size or highest
        product, word, present, satisfiable = _consistent(product, word, present, len(coef), size)
        coef = coef[satisfiable]
        self._freeze(product=product, word=word, present=present, coef=coef, intercept=intercept, size=size)

    def predict(self, z: ArrayLike) -> Floats:
        """Values at rows ``z`` (n, d)."""
        return in_blocks(self._predict, check_rows(z, self.size, more=True), self.word.size)

    def _predict(self, z: Floats) -> Floats:
        columns = z.T[self.word]
        factors = np.where(self.present[:, None], columns, 1.0 - columns)
        values = np.ones((len(self.coef), len(z)))
        read, first = np.unique(self.product, return_index=True)
        if read.size:
            values[read] = np.multiply.reduceat(factors, first, axis=0)
        return np.asarray(np.tensordot(values, self.coef, axes=(0, 0)) + self.intercept)

    def map_outputs(self, change: Callable[[Floats], Any]) -> PresenceProducts:
        coef, intercept = change(self.coef), change(self.intercept)
        return self.from_factors(self.product, self.word, self.present, coef, intercept, self.size)


def _words(side: ArrayLike, i: int) -> Ints:
    words = np.asarray(side)
    if words.size == 0:
        return np.zeros(0, dtype=np.int64)
    if words.ndim != 1 or words.dtype.kind not in "iu" or (words < 0).any():
        raise InputError(f"product {i} must list its words as whole numbers >= 0, got {side!r}")
    return words.astype(np.int64)


def _consistent(
    product: Ints, word: Ints, present: Bools, count: int, size: int
) -> tuple[Ints, Ints, Bools, Bools]:
    """Sort the factors, drop duplicates and products that no z satisfies; also which remain, (count,)."""
    code = np.sort((product * size + word) * 2 + present)  # np.unique takes ten times as long for millions
    code = code[np.diff(code, prepend=-1) > 0]
    pair = code // 2
    satisfiable = np.ones(count, dtype=np.bool_)
    satisfiable[pair[1:][pair[1:] == pair[:-1]] // max(1, size)] = False
    owner, word = np.divmod(pair, max(1, size))
    remains = satisfiable[owner]
    renumbered = np.cumsum(satisfiable) - 1
    return renumbered[owner[remains]], word[remains], (code % 2 == 1)[remains], satisfiable


# -- two values of each column ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Switches:
    """Two values of each of n columns, and the word or superpixel that chooses, -1 for the fill; all (n,)."""

    shown: Floats
    fill: Floats
    labels: Ints

    @classmethod
    def zero_or_one(cls, columns: int) -> Switches:
        return cls(np.ones(columns), np.zeros(columns), np.arange(columns))

    @property
    def size(self) -> int:
        return int(self.labels.max()) + 1

    def sums(self, values: Floats) -> Floats:
        """Sums over the columns of each superpixel, (n, ...) -> (d, ...)."""
        sums = np.zeros((self.size, *values.shape[1:]))
        np.add.at(sums, self.labels, values)
        return sums


def presence_products(
    form: Forest | Boxes, switches: Switches | None = None, size: int = 0
) -> PresenceProducts:
    """f(x(z)) of trees or boxes over columns of two values: of z itself, unless ``switches`` are given."""
    switches = Switches.zero_or_one(form.size) if switches is None else switches
    of_model = _of_forest if isinstance(form, Forest) else _of_boxes
    return of_model(form, switches, size or switches.size)  # type: ignore[arg-type]  # by the line above


def _of_forest(form: Forest, switches: Switches, size: int) -> PresenceProducts:
    walk = partial(_kernels.presence_paths, switches.labels, switches.shown, switches.fill, size, form.trees)
    nothing = np.zeros(0, dtype=np.int64)
    paths, factors = walk(nothing, nothing, nothing, np.zeros(0, dtype=np.bool_))
    leaf = np.zeros(paths, dtype=np.int64)
    product, word = np.zeros(factors, dtype=np.int64), np.zeros(factors, dtype=np.int64)
    present = np.zeros(factors, dtype=np.bool_)
    walk(leaf, product, word, present)
    return PresenceProducts.from_factors(product, word, present, form.value[leaf], form.intercept, size)


def _of_boxes(form: Boxes, switches: Switches, size: int) -> PresenceProducts:
    word, is_switched = switches.labels, switches.labels >= 0
    without, having = (
        (form.lower < value) & (value <= form.upper) for value in (switches.fill, switches.shown)
    )
    possible = (without | (having & is_switched)).all(axis=1)
    product, column = np.nonzero(((without != having) & is_switched)[possible])
    present = having[possible][product, column]
    value = form.value[possible]
    return PresenceProducts.from_factors(product, word[column], present, value, form.intercept, size)


@dataclass(frozen=True, eq=False)
class SwitchProducts(FormBase):
    """f(z) = intercept + Σ_i coef[i] ∏_j (on[i, j] if z_j = 1 else off[i, j]).

    A product over columns, such as a Gaussian kernel, is also a product over superpixels.

    Parameters
    ----------
    on, off
        (m, d).
    coef
        (m,), or (m, k) for k outputs.
    intercept
        A number, or (k,).

    Raises
    ------
    InputError
        If a number is not finite, or shapes disagree.

    Examples
    --------
    >>> from limes.models import forms
    >>> forms.SwitchProducts([[2.0, 3.0]], [[1.0, 0.5]], [10.0]).predict([[1, 1], [1, 0], [0, 0]])
    array([60., 10.,  5.])
    """

    on: Floats
    off: Floats
    coef: Floats
    intercept: Floats = field(default_factory=zero)
    axes: ClassVar[Mapping[str, str]] = {"on": "m d", "off": "m d", "coef": "m ..."}

    @classmethod
    def from_products(cls, products: SumOfProducts, switches: Switches | None = None) -> SwitchProducts:
        """A sum of ``products`` over columns of two values: of z itself, unless ``switches`` are given."""
        switches = Switches.zero_or_one(len(products.functions)) if switches is None else switches
        factors = np.ones((2, len(products.coef), switches.size))
        for j, function in enumerate(products.functions):
            if function is not None:
                both = np.array([switches.fill[j], switches.shown[j]])
                factors[:, :, switches.labels[j]] *= function(both).T
        return cls(factors[1], factors[0], products.coef, products.intercept)

    def predict(self, z: ArrayLike) -> Floats:
        """Values at rows ``z`` (n, d)."""
        rows = check_rows(z, self.size)
        product = np.ones((len(rows), len(self.coef)))
        for j, column in enumerate(rows.T > 0):
            product *= np.where(column[:, None], self.on[:, j], self.off[:, j])
        return np.asarray(product @ self.coef + self.intercept)


# -- linear models on normalised TF-IDF ------------------------------------------------------------------


Norm = Literal["l2", "l1"]
# The norm is (Σ a_j z_j) to this power.
POWERS: Mapping[str, float] = {"l2": 0.5, "l1": 1.0}
# Words of a group: 2^10 subsets
LARGEST_GROUP = 10


@dataclass(frozen=True, eq=False)
class SharedWords:
    """A group of g words (g,), and the excess of the subsets that are kept over Σ a_j z_j, (2^g,).

    Subsets are numbered by Σ_i z_i 2^i, with i the position in ``words``.
    """

    words: Ints
    excess: Floats

    def __post_init__(self) -> None:
        words, excess = np.asarray(self.words, dtype=np.int64), np.asarray(self.excess, dtype=np.float64)
        if words.ndim != 1 or excess.shape != (1 << len(words),):
            raise InputError(f"{len(words)} words have 2^{len(words)} subsets, but excess has {excess.shape}")
        sizes = self.subsets(len(words)).sum(axis=1)
        if not (np.isfinite(excess) & (excess >= 0)).all() or excess[sizes < 2].any():
            raise InputError("excess must be finite and not negative, and 0 for sets of no word and of one")
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "excess", excess)

    @staticmethod
    def subsets(g: int) -> Floats:
        """Every z of g words, by number, (2^g, g)."""
        return (np.arange(1 << g)[:, None] >> np.arange(g) & 1).astype(np.float64)

    def at(self, z: Floats) -> Floats:
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
    axes: ClassVar[Mapping[str, str]] = {"c": "d ...", "a": "d"}

    def __post_init__(self) -> None:
        super().__post_init__()
        c, a = self.c, self.a
        together = np.concatenate([np.zeros(0, dtype=np.int64), *(group.words for group in self.shared)])
        if len(set(together.tolist())) < len(together) or (together >= len(a)).any() or not a[together].all():
            raise InputError("shared words must be words with a > 0, each in one group")
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

    @property
    def power(self) -> float:
        """The norm is (Σ a_j z_j) to this power."""
        return POWERS[self.norm]

    def predict(self, z: ArrayLike) -> Floats:
        """Values at rows ``z`` (n, d)."""
        z = check_rows(z, self.size)
        norm = z @ self.a + sum((group.at(z) for group in self.shared), np.zeros(len(z)))
        scale = np.divide(1.0, norm**self.power, out=np.zeros_like(norm), where=norm > 0)
        fraction = (z @ self.c) * scale.reshape(-1, *(1,) * (self.c.ndim - 1))
        return np.asarray(fraction + self.intercept)
