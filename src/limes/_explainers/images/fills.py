r"""Several fills: the surrogate of images of which each shows one of m fills, drawn at random.

f_i is the model over z with fill i, and β_i, ρ_i its surrogate and R². As z and the fill are independent,
Cov(z, f) is the mean of the fills' own, and so are the coefficients:

    β = Σ_i β_i / m,      standard error² = Σ_i error_i² / m²,      spread_j = deviation of β_ij over i,

    1 - R² = Σ_i [(1 - ρ_i) v_i + E_w (g_i - g)²] / Σ_i [v_i + (E_w f_i - mean)²],     v_i = β_iᵀ Σ β_i / ρ_i.

The spread is no error: it says how much depends on what a superpixel is replaced by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._explainers.images.superpixels import Fill, filler
from limes._explanation import Explanation
from limes._variance import ROUNDING, r_squared
from limes.designs._exchangeable import ExchangeableDesign
from limes.exceptions import InputError

# Coefficients of two fills differ where zero is this many standard errors away from both, on other sides
_CERTAIN = 2.0
# Superpixels of an output that a warning names
_MOST_NAMED = 3
# Smallest R² that a variance is computed from
_LEAST = 1e-6


def fills_of(fill: Any) -> dict[str, Fill]:
    """Return the option ``fill`` as functions by name: one, or those of a list that is no colour.

    Raises
    ------
    InputError
        If one is not usable, or the list has one twice.
    """
    several = isinstance(fill, list | tuple) and any(
        not isinstance(one, int | float | np.number) for one in fill
    )
    if not several:
        return {_name(fill, 0): filler(fill)}
    named = {_name(one, i): filler(one) for i, one in enumerate(fill)}
    if len(named) < len(fill):
        raise InputError(f"fill={fill!r} has the same fill twice: pass each once")
    return named


def _name(fill: Any, place: int) -> str:
    if isinstance(fill, str):
        return fill
    if callable(fill) or np.asarray(fill).size > 4:  # no colour
        return f"{type(fill).__name__} {place}"
    return str(np.asarray(fill).tolist())


def averaged(parts: Mapping[str, Explanation], design: ExchangeableDesign) -> Explanation:
    """Average explanations of one image by fills; the design is that of its superpixels."""
    by_fill = list(parts.values())
    first = by_fill[0]
    values, errors = (
        np.stack([getattr(one, name) for one in by_fill]) for name in ("values", "standard_errors")
    )
    fidelity, spreads = _fidelity(by_fill, design), values.std(axis=0, ddof=1)
    sampled = next((one for one in by_fill if one.method == "sampled"), first)
    return replace(
        first,
        values=values.mean(axis=0),
        standard_errors=_of_mean(errors),
        intercepts=np.mean([one.intercepts for one in by_fill], axis=0),
        surrogate_predictions=np.mean([one.surrogate_predictions for one in by_fill], axis=0),
        surrogate_errors=_of_mean([_or_zero(one.surrogate_errors, one.predictions) for one in by_fill]),
        fidelity=fidelity[0],
        fidelity_errors=fidelity[1],
        method=sampled.method,
        reason=sampled.reason,
        calls=np.sum([one.calls for one in by_fill], axis=0),
        row_converged=np.all([one.row_converged for one in by_fill], axis=0),
        row_warnings=(_warnings(parts, values, errors),),
        provenance={
            **first.provenance,
            "fill": ", ".join(parts),
            "by_fill": {name: one.values[0].tolist() for name, one in parts.items()},
            "fill_spread": spreads[0].tolist(),
        },
        shares=None,
        share_errors=None,
        controls=None,
        effective_rows=None,
        explainer=None,
        fit=None,
    )


def _of_mean(errors: Any) -> Floats:
    return np.asarray(np.sqrt((np.asarray(errors) ** 2).sum(axis=0)) / len(errors))


def _or_zero(numbers: Any, like: Floats) -> Floats:
    return np.zeros_like(like) if numbers is None else np.asarray(numbers)


def _fidelity(by_fill: Sequence[Explanation], design: ExchangeableDesign) -> tuple[Floats, Floats]:
    """R² of the average, and its standard error, each of the shape of the parts' own."""
    shape, d = by_fill[0].fidelity.shape, len(by_fill[0].feature_names)
    coefs = np.stack([one.values[0].reshape(d, -1) for one in by_fill])
    finite = np.isfinite(coefs).all(axis=(0, 2))
    # of unknown ones alone the design has one, on which nothing depends
    coefs = coefs[:, finite] if finite.any() else np.zeros_like(coefs[:, :1])
    means = np.stack([one.intercepts.ravel() for one in by_fill]) + design.inclusion @ coefs
    size = np.abs(means).max(axis=0)
    rest, shift = coefs - coefs.mean(axis=0), means - means.mean(axis=0)
    variances_of_fits, apart = (
        np.stack([(c * design.gamma(c)).sum(axis=0) for c in part]) for part in (coefs, rest)
    )

    def combined(shares: Floats) -> Floats:
        variances = variances_of_fits / np.maximum(shares, _LEAST)
        rest_variance = ((1 - shares) * variances + apart + shift**2).sum(axis=0)
        total = (variances + shift**2).sum(axis=0)
        return r_squared(total - rest_variance, total, size)[0]

    shares, errors = (
        np.stack([np.ravel(getattr(one, name)) for one in by_fill])
        for name in ("fidelity", "fidelity_errors")
    )
    best = combined(shares)
    moved = [
        combined(shares + np.where(np.arange(len(by_fill))[:, None] == i, errors, 0.0))
        for i in range(len(by_fill))
    ]
    return best.reshape(shape), np.sqrt(((np.stack(moved) - best) ** 2).sum(axis=0)).reshape(shape)


def _warnings(parts: Mapping[str, Explanation], values: Floats, errors: Floats) -> tuple[str, ...]:
    """What the fills warn of, and superpixels about which they do not agree, largest first."""
    texts = [f"{text} (fill {name})" for name, one in parts.items() for text in one.row_warnings[0]]
    first = next(iter(parts.values()))
    answers = np.max([np.abs([one.predictions, one.intercepts]) for one in parts.values()], axis=(0, 1))
    certain = np.abs(values) > np.maximum(_CERTAIN * errors, ROUNDING * answers[:, None])
    opposed = (certain & (values > 0)).any(axis=0) & (certain & (values < 0)).any(axis=0)
    sizes = np.where(opposed, np.abs(values).max(axis=0), 0.0)[0].reshape(len(first.feature_names), -1)
    for k, name in enumerate(first.output_names):
        worst = [j for j in np.argsort(-sizes[:, k], kind="stable")[:_MOST_NAMED] if sizes[j, k] > 0]
        if worst:
            of = f" (output {name})" if len(first.output_names) > 1 else ""
            named = ", ".join(first.feature_names[j] for j in worst)
            texts.append(f"the fills do not agree whether these raise or lower the answer: {named}{of}")
    return tuple(texts)
