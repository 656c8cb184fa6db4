"""Figures 3 and 8 to 11: the weights ψ, and the constants α, c and σ, against the bandwidth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from limes.designs import ExchangeableDesign
from papers.common.boxes import MEDIAN, THEORY
from papers.common.drawn import INK, Drawn, panels

from .theory import alpha, psi, sigmas

_SHARES = np.linspace(0.0, 1.0, 101)
_BANDWIDTHS = np.linspace(0.05, 3.0, 60)
_DEFAULT = 0.25
_WORDS = 30
_SHADES = (INK, MEDIAN, "#e08a1e", "#8a94a3")


def weights(_runs: int) -> Drawn:
    """Figure 3: ψ at several bandwidths."""
    bandwidths = (0.1, 0.25, 0.5, 1.0)
    curves = np.array([psi(_SHARES, bandwidth) for bandwidth in bandwidths])
    figure, (ax,) = panels(width=6.0)
    for curve, bandwidth, color in zip(curves, bandwidths, _SHADES, strict=True):
        ax.plot(_SHARES, curve, color=color, label=f"ν = {bandwidth}")
    ax.set(xlabel="share of words removed", ylabel="ψ")
    ax.legend(frameon=False, fontsize=8)
    text = (
        "The weight of a text by the share of its words that is removed. At the default ν = 0.25 a text "
        f"without half of its words still weighs {psi(np.array(0.5), _DEFAULT):.2f}."
    )
    return Drawn(figure, {"psi": curves}, text)


def bounds(_runs: int) -> Drawn:
    """Figure 8: ψ between the bounds of Eq. (16)."""
    curve = psi(_SHARES, _DEFAULT)
    lower, upper = (np.exp(-(_SHARES**2) / (scale * _DEFAULT**2)) for scale in (2.0, 8.0))
    figure, (ax,) = panels(width=6.0)
    for values, color, label in (
        (upper, "#e08a1e", "upper bound"),
        (curve, INK, "ψ"),
        (lower, MEDIAN, "lower bound"),
    ):
        ax.plot(_SHARES, values, color=color, label=label)
    ax.set(xlabel="t", ylabel=f"ψ at ν = {_DEFAULT}")
    ax.legend(frameon=False, fontsize=8)
    slack = min((curve - lower).min(), (upper - curve).min())
    text = f"ψ lies between the bounds of Eq. (16) at all 101 places; the smallest distance is {slack:.0e}."
    return Drawn(figure, {"psi": curve, "slack": slack}, text)


def alphas(_runs: int) -> Drawn:
    """Figure 9: α_0, α_1 and α_2 against ν, beside the limits of Corollary 1."""
    curves = np.array([[alpha(p, _WORDS, bandwidth) for bandwidth in _BANDWIDTHS] for p in range(3)])
    limits = [(_WORDS - p) / ((p + 1) * _WORDS) for p in range(3)]
    figure, axes = panels(3, width=10.0, height=2.8)
    for p, (ax, curve, limit) in enumerate(zip(axes, curves, limits, strict=True)):
        _against_bandwidth(ax, curve, limit, f"α_{p}")
    gap = max(
        abs(_library_alpha(p, bandwidth) - curves[p, i])
        for p in range(3)
        for i, bandwidth in enumerate(_BANDWIDTHS)
    )
    text = (
        f"d = {_WORDS}; red: the default ν, green: Corollary 1. `ExchangeableDesign.a` of the library "
        f"differs from Proposition 1 by at most {gap:.0e}."
    )
    return Drawn(figure, {"alpha": curves}, text)


def normalisation(_runs: int) -> Drawn:
    """Figure 10: c_d against ν."""
    curve = np.array([_constant(bandwidth) for bandwidth in _BANDWIDTHS])
    figure, (ax,) = panels(width=6.0)
    _against_bandwidth(ax, curve, (_WORDS**2 - 1) / (12 * _WORDS), "c_d")
    text = f"d = {_WORDS}; green: the limit (d² - 1)/(12 d) of Corollary 3."
    return Drawn(figure, {"c": curve}, text)


def inverse(_runs: int) -> Drawn:
    """Figure 11: the entries σ_i/c_d of Σ⁻¹ against ν."""
    curves = np.array([_sigmas_of(bandwidth) for bandwidth in _BANDWIDTHS]).T
    d = _WORDS
    limits = [
        2 * (2 * d - 1) / (d + 1),
        -6 / (d + 1),
        6 * (d**2 - 2 * d + 3) / (d**2 - 1),
        -6 * (d - 3) / (d**2 - 1),
    ]
    figure, axes = panels(4, width=12.0, height=2.8)
    for i, (ax, curve, limit) in enumerate(zip(axes, curves, limits, strict=True)):
        _against_bandwidth(ax, curve, limit, f"σ_{i}/c")
    gap = max(_inverse_gap(bandwidth) for bandwidth in _BANDWIDTHS)
    text = (
        f"d = {d}; the entries of Proposition 6, and Corollary 3 in green. A numerical inverse of Σ differs "
        f"by at most {gap:.0e} of its largest entry."
    )
    return Drawn(figure, {"sigma": curves}, text)


def _against_bandwidth(ax, curve: np.ndarray, limit: float, label: str) -> None:
    ax.plot(_BANDWIDTHS, curve, color=INK)
    ax.axvline(_DEFAULT, color=THEORY, lw=1.0)
    ax.axhline(limit, color="#3a923a", lw=1.0)
    ax.set(xlabel="ν", ylabel=label)


def _library_alpha(p: int, bandwidth: float) -> float:
    design = ExchangeableDesign.word_deletions(_WORDS, bandwidth)
    return float(design.a(p, 0) * np.exp(design.log_weight))


def _constant(bandwidth: float) -> float:
    a0, a1, a2 = (alpha(p, _WORDS, bandwidth) for p in range(3))
    return (_WORDS - 1) * a0 * a2 - _WORDS * a1**2 + a0 * a1


def _sigmas_of(bandwidth: float) -> Sequence[float]:
    a1, a2 = (alpha(p, _WORDS, bandwidth) for p in (1, 2))
    return [((_WORDS - 1) * a2 + a1) / _constant(bandwidth), *sigmas(_WORDS, bandwidth)]


def _inverse_gap(bandwidth: float) -> float:
    """Largest difference of Σ⁻¹ by Proposition 6 and by elimination."""
    a0, a1, a2 = (alpha(p, _WORDS, bandwidth) for p in range(3))
    gram = np.full((_WORDS + 1, _WORDS + 1), a2)
    gram[0, :] = gram[:, 0] = a1
    np.fill_diagonal(gram, a1)
    gram[0, 0] = a0
    s0, s1, s2, s3 = _sigmas_of(bandwidth)
    formula = np.full_like(gram, s3)
    formula[0, :] = formula[:, 0] = s1
    np.fill_diagonal(formula, s2)
    formula[0, 0] = s0
    return float(np.abs(np.linalg.inv(gram) - formula).max() / np.abs(formula).max())
