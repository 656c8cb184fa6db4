r"""Exact expectations of links of sums under a product design, by quadrature whose error is known beforehand.

A link is a sum of exponentials on the range of the margin S = c + Σ_j f_j(x_j) (``models/forms/_links.py``),
and E e^{zS} = e^{zc} ∏_j mean_j(e^{z f_j}), with the two functionals of column j of ``exact.py``:

    E_w f = Re Σ_n W_n ∏_j mean_j(e^{z_n f_j})
    β_j   = Re Σ_n W_n contrast_j(e^{z_n f_j}) ∏_{k≠j} mean_k(e^{z_n f_k})

Both functionals depend on the row only through the law of its column: under bin weights a table of cells ×
nodes, made once, serves all rows, and a row costs the products before and after each column.

Of the contours Re z = θ a row takes the one with the least E e^{θS}, which errors are multiplied by: its
probability keeps its digits be it 1/2, 1e-12, or 1 - 1e-12. Where the bound is above 1e-9 all the same, the
row is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.moments import Moments
from limes._expectations.tabulated import TOLERANCE, Column, NodeGroup, TabulatedExpectation, product_rounding
from limes.designs._coordinates import Coordinate
from limes.exceptions import ModelError
from limes.models.forms._linked import Linked
from limes.models.forms._links import Complexes, ExponentialSum

# Probabilities below this are compared with it
_TINY = 1e-15
# Complex numbers of all columns of one block of rows: 2 MB
_BLOCK = 131_072


class LinkedExpectation(TabulatedExpectation["list[_Margin]"]):
    """Moments of links of sums under many designs.

    Errors are relative to expectations, or to ``smallest`` where these are below.

    Raises
    ------
    InputError
        If design and form have different numbers of columns, or the margin's range is too wide.
    ModelError
        If the margin has no finite value somewhere, or the error of a row cannot be bounded.
    """

    def __init__(self, form: Linked, smallest: float = _TINY) -> None:
        super().__init__(form)
        self._smallest = smallest

    def _tabulate(self, variants: Sequence[Sequence[Coordinate]]) -> list[_Margin]:
        margins = range(len(self._form.coef))  # type: ignore[arg-type]
        return [_Margin(self._form, k, variants, self._smallest) for k in margins]

    def _moments(self, tables: list[_Margin], cells: Ints, variance: Floats) -> Moments:
        form = self._form
        assert form.coef is not None  # noqa: S101 - set by __post_init__
        ones = (1,) * form.intercept.ndim
        base: Floats = np.broadcast_to(form.intercept, (len(cells), *form.intercept.shape)).copy()
        rest, contrast = np.zeros(base.shape), np.zeros((*cells.shape, *form.intercept.shape))
        for margin, coef in zip(tables, form.coef, strict=True):
            linked = margin.moments(cells)
            # 1 less a probability of almost 1 is exact: 1 - 1 goes first
            base += linked.base.reshape(-1, *ones) * coef
            rest += linked.rest.reshape(-1, *ones) * coef
            contrast += linked.contrast.reshape(*cells.shape, *ones) * coef
        gamma = contrast * variance.reshape(*variance.shape, *ones)
        return Moments.exact(base + rest, gamma, designs=variance.shape[:-1])


@dataclass(frozen=True, eq=False)
class _Values:
    """Of n rows E link(S) = base + rest, (n,) each, and its contrasts, (n, d)."""

    base: Floats
    rest: Floats
    contrast: Floats


class _Margin:
    """One margin of the form under the variants of every column's law."""

    def __init__(
        self, form: Linked, margin: int, variants: Sequence[Sequence[Coordinate]], smallest: float
    ) -> None:
        self._link, self._smallest = form.curve, smallest
        self._constant = float(form.terms.intercept[margin])
        self._columns = [
            Column.of(j, function, loading[:, margin : margin + 1], variants[j])
            for j, (function, loading) in enumerate(
                zip(form.terms.functions, form.terms.loadings, strict=True)
            )
            if function is not None and loading[:, margin].any()
        ]
        self._rules: dict[int, _Rule] = {}

    def moments(self, cells: Ints) -> _Values:
        """E link(S) and its contrasts for rows, given the variant of each column, (n, d)."""
        level, largest = self._levels(cells)
        used = [column.place for column in self._columns]
        base, rest, contrast = np.zeros(len(cells)), np.zeros(len(cells)), np.zeros((len(cells), len(used)))
        # where a column hardly leaves its cell, what it leaves for may be far more than the mean
        for_mean, for_contrast = np.argmin(level, axis=1), np.argmin(largest, axis=1)
        for tilt in np.union1d(for_mean, for_contrast).tolist():
            rule = self._rule(tilt)
            rows = np.flatnonzero((for_mean == tilt) | (for_contrast == tilt))
            total, differences = rule.moments(cells[rows][:, used])
            value = np.abs(rule.sum.base + rule.sum.rest + total)
            mean, differs = for_mean[rows] == tilt, for_contrast[rows] == tilt
            base[rows[mean]], rest[rows[mean]] = rule.sum.base, rule.sum.rest + total[mean]
            contrast[rows[differs]] = differences[differs]
            self._check(value[mean], rule.error * np.exp(level[rows[mean], tilt]))
            size = value[differs] + np.abs(differences[differs]).max(axis=1, initial=0.0)
            self._check(size, rule.error * np.exp(largest[rows[differs], tilt]))
        wide = np.zeros(cells.shape)
        wide[:, used] = contrast
        return _Values(base, rest, wide)

    def _rule(self, tilt: int) -> _Rule:
        if tilt not in self._rules:
            lower = self._constant + sum(float(column.lower[0]) for column in self._columns)
            upper = self._constant + sum(float(column.upper[0]) for column in self._columns)
            theta = self._link.tilts[tilt]
            exponentials, size = self._link.sum(lower, upper, theta), self._link.size(theta)
            self._rules[tilt] = _Rule(self._columns, exponentials, self._constant, size)
        return self._rules[tilt]

    def _levels(self, cells: Ints) -> tuple[Floats, Floats]:
        """What errors on each contour are multiplied by, (n, tilts): those of the mean and of contrasts.

        The logarithms of E e^{θS}, and of the largest part of it given that one column is in its cell or not.
        """
        tilts = np.array(self._link.tilts)
        level = tilts * self._constant + np.log([self._link.size(tilt) for tilt in self._link.tilts])
        level, beyond = level + np.zeros((len(cells), 1)), np.zeros((len(cells), tilts.size))
        for column, (log, ratio) in zip(self._columns, self._logs, strict=True):
            level += log[cells[:, column.place]]
            beyond = np.maximum(beyond, ratio[cells[:, column.place]])
        return level, level + beyond

    @cached_property
    def _logs(self) -> list[tuple[Floats, Floats]]:
        """The logarithms of mean(e^{θf}), and of 1 + |contrast| / mean, (V, tilts) of each column."""
        tilts, logs = np.array(self._link.tilts, dtype=np.complex128), []
        for column in self._columns:
            mean, contrast, offsets = column.functionals([NodeGroup(tilts)])
            with np.errstate(divide="ignore", invalid="ignore"):
                log = np.log(mean.real)
                ratio = np.log(mean.real + np.abs(contrast.real)) - log
            logs.append((log + offsets, np.where(mean.real > 0, ratio, np.inf)))
        return logs

    def _check(self, value: Floats, bound: Floats) -> None:
        allowed = TOLERANCE * np.maximum(value, self._smallest)
        if not (bound <= allowed).all():
            worst = int(np.argmax(bound / allowed))
            raise ModelError(
                f"an expectation of about {value[worst]:.3g} is known to {bound[worst]:.1g} only, as the "
                "margin spreads far on both sides: use method='sampled'"
            )


class _Rule:
    """Tables of one contour, and the pass of rows over them.

    Means are divided by the size of the first node's, of all nodes on the contour, or by their own at real
    poles, so that products neither over- nor underflow; ``_logs`` holds the logarithms of these sizes.
    """

    def __init__(
        self, columns: Sequence[Column], exponentials: ExponentialSum, constant: float, size: float
    ) -> None:
        self.sum = exponentials
        self.error = exponentials.error + product_rounding(len(columns)) * (
            1.0 + float(np.abs(exponentials.weights[: exponentials.contour]).sum()) / size
        )
        nodes = exponentials.nodes
        # the first node of each group of one size
        self._first = np.concatenate([[0], np.arange(exponentials.contour, nodes.size)])
        self._group = np.maximum(np.arange(nodes.size) - exponentials.contour + 1, 0)
        self._weights = exponentials.weights * np.exp(1j * nodes.imag * constant)
        self._start = nodes.real[self._first] * constant + exponentials.log_weights[self._first]
        self._means: list[Complexes] = []
        # conjugates: the real part of a product is then a sum of products of parts
        self._contrasts: list[Floats] = []
        self._logs: list[Floats] = []
        for column in columns:
            mean, contrast, offsets = column.functionals([NodeGroup(nodes, exponentials.contour)])
            length = np.abs(mean[:, self._first])
            length = np.where(length > 0, length, 1.0)
            scale = np.take(length, self._group, axis=1)
            self._means.append(mean / scale)
            self._contrasts.append(np.conj(contrast / scale).view(np.float64))
            self._logs.append(np.log(length) + offsets[self._first])

    def moments(self, places: Ints) -> tuple[Floats, Floats]:
        """Re Σ W ∏ mean (n,) and its contrasts (n, columns), given the variant of each column."""
        n, columns = places.shape
        total, contrast = np.zeros(n), np.zeros((n, columns))
        step = max(1, _BLOCK // (self._group.size * max(1, columns)))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            total[rows], contrast[rows] = self._block(places[rows])
        return total, contrast

    def _block(self, places: Ints) -> tuple[Floats, Floats]:
        logs = self._start + np.zeros((len(places), 1))
        for j, sizes in enumerate(self._logs):
            logs = logs + sizes[places[:, j]]
        before = [self._weights * np.take(np.exp(logs), self._group, axis=1)]
        means = [mean[places[:, j]] for j, mean in enumerate(self._means)]
        for mean in means:
            before.append(before[-1] * mean)
        total = before.pop().real.sum(axis=1)
        contrast = np.zeros(places.shape)
        after: Complexes | None = None
        for j in range(len(means) - 1, -1, -1):
            others = before[j] if after is None else before[j] * after
            contrast[:, j] = np.einsum("nk,nk->n", others.view(np.float64), self._contrasts[j][places[:, j]])
            after = means[j] if after is None else after * means[j]
        return total, contrast
