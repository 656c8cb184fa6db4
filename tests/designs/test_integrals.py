"""∫ exp(-rate |x - center|) against panels in extended precision."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from internals import Atoms, Decay, GaussianPieces

# mean, std, lower, upper
PIECES = {
    "ordinary": (0.3, 1.2, -1.0, 2.0),
    "whole line": (0.3, 1.2, -np.inf, np.inf),
    "half line": (0.3, 1.2, 1.0, np.inf),
    "other half": (0.3, 1.2, -np.inf, -1.0),
    "flat": (0.3, np.inf, -1.0, 2.0),
    "sliver": (0.5, 1.0, 0.5, 0.5 + 1e-9),
    "mean outside": (3.0, 0.5, -1.0, 2.0),
}


def products(mean, std, lower, upper, center, rate):
    """Points and log masses of the law times the kernel, each side by itself: the law alone weighs 1."""
    law = oracle.normal(mean, std)
    kernel = lambda x: -np.longdouble(rate) * np.abs(np.asarray(x, dtype=np.longdouble) - center)  # noqa: E731
    far = 0.0 if np.isinf(std) else 40 * std + rate * std**2
    low = max(lower, min(mean, center) - far) if np.isinf(lower) else lower
    high = min(upper, max(mean, center) + far) if np.isinf(upper) else upper
    _, whole = oracle.panels(law, low, high)
    sides = [(low, min(max(center, low), high)), (min(max(center, low), high), high)]
    result = [oracle.panels(lambda x: law(x) + kernel(x), a, b) for a, b in sides if a < b]
    x, log_mass = (np.concatenate(each) for each in zip(*result, strict=True))
    return x, np.exp(log_mass - oracle.log_sum(whole))


@pytest.mark.parametrize("case", PIECES.values(), ids=PIECES.keys())
@pytest.mark.parametrize("rate", [1e-3, 0.4, 30.0, 3000.0])
def test_decays(case, rate):
    arguments = (np.array([v]) for v in case)
    result = GaussianPieces.truncated_normal(*arguments, weight=np.ones(1))
    centers = np.array([-2.5, -1.0, 0.1, 0.5 + 3e-10, 2.0, 4.0])
    for k, center in enumerate(centers):
        x, mass = products(*case, center, rate)
        expected = float(mass.sum())
        if expected < 1e-250:  # beyond a double's range sooner or later
            continue
        origin = float(result.mean[0])
        size = float((mass * np.abs(x - origin)).sum())
        mean = result.decay(centers, rate)[k, 0]
        slope = result.centred(np.array([origin])).decay(centers, rate)[k, 0]
        assert abs(mean / expected - 1) < 1e-12
        assert abs(slope - float((mass * (x - origin)).sum())) < 1e-12 * size + 4 * np.spacing(origin) * mean


def test_decays_of_point_masses_and_of_many_centers():
    kernel = Decay(np.linspace(-3, 3, 40_000), 2.0)
    atoms = Atoms(np.array([0.5, 2.0]), np.array([0.3, 0.7]))
    expected = np.exp(-2 * np.abs(np.array([0.5, 2.0]) - kernel.center[:, None])) * [0.3, 0.7]
    np.testing.assert_allclose(atoms.expect(kernel), expected, rtol=1e-14)
    ones = np.ones(2)
    flat = GaussianPieces.truncated_normal(
        0 * ones, np.inf * ones, -ones, 2 * ones, weight=np.array([1.0, 3.0])
    )
    beyond = kernel.center[-1]  # ∫ exp(-2 (3 - x)) dx / 3 over [-1, 2]
    expected = np.exp(-2 * (beyond - 2)) * -np.expm1(-6.0) / 6
    np.testing.assert_allclose(flat.expect(kernel)[-1], [expected, 3 * expected], rtol=1e-13)
