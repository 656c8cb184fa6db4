r"""Words of a text that meet in a column of the vectorizer, as Food and food do: what they add to the norm.

With R the words' rows, (Σ_v (Σ_j R_jv z_j)²) is Σ_j a_j z_j, a_j = Σ_v R_jv², and besides, for each group of
words that meet, an excess e(z) that is a sum over the columns where they do. Groups are small, and e is a
table of 2^g numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.exceptions import InputError

# Words of a group: 2^10 subsets
LARGEST = 10

__all__ = ["LARGEST", "Shared", "shared_words"]


@dataclass(frozen=True, eq=False)
class Shared:
    """A group of g words (g,), and what its kept ones add to Σ a_j z_j, (2^g,).

    Subsets are numbered by Σ_i z_i 2^i, i being the place in ``words``.

    Raises
    ------
    InputError
        If the table does not fit the words, has negative entries, or a word alone adds anything.
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


def shared_words(rows: Any) -> tuple[Shared, ...] | None:
    """Groups of the words whose rows of R, sparse (d, V), meet; None if one is too large."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    meeting = np.flatnonzero(np.bincount(rows.indices, minlength=rows.shape[1]) > 1)
    columns = csr_array(rows)[:, meeting]
    _, group = connected_components(columns @ columns.T, directed=False)
    members = np.flatnonzero(np.diff(columns.indptr))
    groups = [members[group[members] == k] for k in np.unique(group[members])]
    if any(len(words) > LARGEST for words in groups):
        return None
    return tuple(Shared(words, _excess(columns[words].toarray())) for words in groups)


def _excess(rows: Floats) -> Floats:
    """(Σ_j R_j z_j)² - Σ_j R_j² z_j over columns, of rows (g, columns) at all z."""
    z = Shared.subsets(len(rows))
    found = ((z @ rows) ** 2).sum(axis=1) - z @ (rows**2).sum(axis=1)
    found[z.sum(axis=1) < 2] = 0.0
    return np.asarray(np.maximum(found, 0.0))
