"""Inputs of few features whose sets are not all game about: coefficients, R² and contributions cover.

The oracles are least squares over all sets with LIME's weights, and means over sets with Shapley's. They
import nothing of the library.
"""

from __future__ import annotations

from itertools import product
from math import comb, factorial

import numpy as np
import pytest

import limes
from internals import CompletedGame, leading_sets
from limes.exceptions import InputError


def sets_of(d):
    return (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(float)


def law_of(d, *, is_text):
    """LIME's weights of all sets: of texts and series the number of removed features is uniform."""
    removed = d - sets_of(d).sum(axis=1)
    distance = 1.0 - np.sqrt(1.0 - removed / d)
    prior = np.array([0.0 if is_text and s == 0 else 1.0 / comb(d, int(s)) for s in removed])
    law = (prior if is_text else 1.0) * np.exp(-(distance**2) / (2 * 0.25**2))
    return law / law.sum()


def fit_of(f, *, is_text):
    """Coefficients and R² by weighted least squares over all sets."""
    d = len(f).bit_length() - 1
    law, regressors = law_of(d, is_text=is_text), np.column_stack([np.ones(len(f)), sets_of(d)])
    coef = np.linalg.solve(regressors.T @ (law[:, None] * regressors), regressors.T @ (law * f))
    return coef[1:], 1.0 - law @ (f - regressors @ coef) ** 2 / (law @ (f - law @ f) ** 2)


def shapley(f):
    d, values = len(f).bit_length() - 1, []
    for j in range(d):
        without = np.flatnonzero(sets_of(d)[:, j] == 0)
        sizes = sets_of(d)[without].sum(axis=1).astype(int)
        weights = np.array([factorial(s) * factorial(d - 1 - s) / factorial(d) for s in sizes])
        values.append(weights @ (f[without | 1 << j] - f[without]))
    return np.array(values)


def game_of(kind, d, rng):
    z, slopes, three = sets_of(d), rng.normal(size=d), rng.choice(d, 3, replace=False)
    return {
        "sum": lambda: z @ slopes,
        "all of three": lambda: z[:, three].prod(axis=1),
        "any of three": lambda: z @ slopes + 3.0 * z[:, three].max(axis=1),
        "probability": lambda: 1.0 / (1.0 + np.exp(-z @ (2.0 * slopes))),
        "step": lambda: (z @ slopes > np.median(z @ slopes)).astype(float),
        "empty outlier": lambda: z @ slopes + 20.0 * (z.sum(axis=1) == 0),
        "noise": lambda: rng.normal(size=1 << d),
    }[kind]()


KINDS = "sum", "all of three", "any of three", "probability", "step", "empty outlier", "noise"


class Game:
    """A model of words x0, x1, ... or of an image's or a series' segments, with answers to all sets."""

    def __init__(self, f):
        self.f, self.d, self.rows = f, len(f).bit_length() - 1, 0

    def text(self, **options):
        def answers(texts):
            self.rows += len(texts)
            return self.f[[sum(1 << int(word[1:]) for word in text.split()) for text in texts]]

        words = " ".join(f"x{j}" for j in range(self.d))
        return limes.TextExplainer(answers, split=r"\W+", **options)(words, progress=False)

    def _of_segments(self, values):
        self.rows += len(values)
        return self.f[((values > 0) @ (1 << np.arange(self.d))).astype(int)]

    def image(self, **options):
        segments = np.tile(np.repeat(np.arange(self.d), 2), (2, 1))
        explainer = limes.ImageExplainer(
            lambda images: self._of_segments(np.asarray(images)[:, 0, ::2, 0]),
            segments=lambda _: segments,
            fill=0.0,
            **options,
        )
        return explainer(np.ones((2, 2 * self.d, 3)), progress=False)

    def series(self, **options):
        explainer = limes.SeriesExplainer(
            lambda series: self._of_segments(np.asarray(series).reshape(len(series), -1)[:, ::3]),
            segments="equal",
            count=self.d,
            fill=0.0,
            **options,
        )
        return explainer(np.ones(3 * self.d), progress=False)


@pytest.mark.parametrize("calls", [16, 24, 48])
@pytest.mark.parametrize("door", ["text", "image", "series"])
def test_coefficients_fidelity_and_contributions_cover(door, calls):
    inside = {"coefficients": [], "fidelity": [], "contributions": []}
    for i, kind in enumerate(KINDS):
        for d, seed in product((5, 6) if calls < 48 else (6, 7), range(3)):
            f = game_of(kind, d, np.random.default_rng((d, i, seed)))
            game = Game(f)
            its = getattr(game, door)(max_calls=calls, rng=seed)
            coef, r2 = fit_of(f, is_text=door != "image")
            numbers = {
                "coefficients": (its.coefficients.values[0], its.coefficients.standard_errors[0], coef),
                "fidelity": (its.fidelity, its.fidelity_errors, r2),
                "contributions": (
                    its.contributions.values[0],
                    its.contributions.standard_errors[0],
                    shapley(f),
                ),
            }
            assert its.method == "sampled"
            assert game.rows <= calls
            for name, (values, errors, exact) in numbers.items():
                assert np.isfinite(errors).all(), (kind, name)
                inside[name] += (np.abs(values - exact) <= 1.96 * errors + 1e-6).ravel().tolist()
    for name, covers in inside.items():
        assert np.mean(covers) >= 0.93, name


@pytest.mark.parametrize("door", ["text", "image"])
def test_a_sum_of_few_words_is_all_but_exact(door):
    """48 of 128 sets: what least squares of them alone leave is a fifth of the largest coefficient."""
    f = game_of("sum", 7, np.random.default_rng(3))
    its = getattr(Game(f), door)(max_calls=48, rng=0)
    coef, _ = fit_of(f, is_text=door != "image")
    np.testing.assert_allclose(its.coefficients.values[0], coef, atol=0.01)
    assert its.coefficients.standard_errors.max() < 0.05
    assert its.fidelity[0] > 0.99


def test_an_empty_set_unlike_all_others_leaves_the_rest_alone():
    """Its answer is known: it makes no noise of the answers to other sets."""
    d = 7
    z, rng = sets_of(d), np.random.default_rng(0)
    f = z @ rng.normal(size=d) + 20.0 * (z.sum(axis=1) == 0)
    sets = np.concatenate([[0], np.sort(rng.choice(np.arange(1, 1 << d), 40, replace=False))])
    game = CompletedGame.of(d, sets, f[sets, None])
    np.testing.assert_allclose(game.expected()[:, 0], f, atol=0.05)


def test_ratios_of_a_game_that_is_all_answered_are_exact():
    d, rng = 3, np.random.default_rng(1)
    f = rng.normal(size=(1 << d, 1))
    game = CompletedGame.of(d, leading_sets(np.ones((1, 1 << d)), 6, rng), f[[0, 7, 1, 6, 2, 5, 3, 4]])
    coef, _ = fit_of(game.expected()[:, 0], is_text=False)
    assert game.others.size == 0
    values, errors = game.ratios(lambda tables: (tables**2).mean(axis=0)[None], 0, rng)
    assert np.isfinite(coef).all()
    assert values[0] == pytest.approx((game.expected() ** 2).mean())
    assert errors[0] == pytest.approx(0.0, abs=1e-12)


def test_numbers_depend_on_the_seed_alone():
    f = game_of("step", 6, np.random.default_rng(2))
    one, other = (Game(f).text(max_calls=30, rng=seed) for seed in (5, 5))
    third = Game(f).text(max_calls=30, rng=6)
    np.testing.assert_array_equal(one.coefficients.values, other.coefficients.values)
    np.testing.assert_array_equal(one.fidelity_errors, other.fidelity_errors)
    assert not np.array_equal(one.coefficients.values, third.coefficients.values)


def test_effects_cover():
    inside, d = [], 6
    law, z = law_of(d, is_text=True), sets_of(d)
    for seed in range(6):
        f = game_of("any of three", d, np.random.default_rng(seed))
        its = Game(f).text(max_calls=40, rng=seed)
        for j in range(d):
            effect = its.effects[f"x{j}"]
            means = [law @ (f * (z[:, j] == cell)) / law[z[:, j] == cell].sum() - law @ f for cell in (0, 1)]
            inside += (np.abs(effect.values - means) <= 1.96 * effect.standard_errors).tolist()
    assert np.mean(inside) >= 0.93


def test_a_tolerance_ends_a_sample_early():
    f = game_of("sum", 8, np.random.default_rng(4))
    game = Game(f)
    its = game.text(max_calls=120, tolerance="5%", rng=0)
    assert game.rows < 80
    assert its.converged


def test_pairs_cover():
    """A pair adds c / P(cell) to each of four cells, c = E[rest z_j z_k]: by enumeration."""
    d, inside = 6, []
    law, z = law_of(d, is_text=True), sets_of(d)
    regressors = np.column_stack([np.ones(1 << d), z])
    for seed in range(8):
        f = game_of("any of three", d, np.random.default_rng(seed))
        coef = np.linalg.solve(regressors.T @ (law[:, None] * regressors), regressors.T @ (law * f))
        rest = f - regressors @ coef
        its = Game(f).text(max_calls=40, rng=seed)
        for pair in its.interactions(top=3):
            i, j = (int(name[1:]) for name in pair.features)
            both = (z[:, i] == 1) & (z[:, j] == 1)
            exact, cell = law[both] @ rest[both] / law[both].sum(), (1, 1)
            inside.append(abs(pair.values[cell] - exact) <= 1.96 * pair.standard_errors[cell])
    assert len(inside) > 16
    assert np.mean(inside) >= 0.9


@pytest.mark.parametrize("d", [3, 5, 9])
def test_the_advice_on_too_few_calls_is_the_least_that_is_enough(d):
    game = Game(game_of("noise", d, np.random.default_rng(0)))
    with pytest.raises(InputError, match="use at least") as refused:
        game.text(max_calls=8)
    least = int(str(refused.value).split("use at least ")[1])
    its = game.text(max_calls=least)
    assert np.isfinite(its.contributions.standard_errors).all()
    for fewer in range(9, least):
        with pytest.raises(InputError, match=f"few .* use at least {least}"):
            game.text(max_calls=fewer).contributions  # noqa: B018 - it is computed when it is read


# -- sets that a sample may miss -----------------------------------------------------------------------------


def test_errors_of_fidelity_count_what_no_set_shows():
    """A sum, and a product of seven of ten segments, of which few of 64 images show anything."""
    d, inside = 10, []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        z = sets_of(d)
        f = z @ rng.normal(size=d) + 3.0 * z[:, rng.choice(d, 7, replace=False)].prod(axis=1)
        its = Game(f).image(max_calls=64, rng=seed)
        _, exact = fit_of(f, is_text=False)
        # NaN where the sample is too small to say
        if np.isfinite(its.fidelity[0]):
            inside.append(abs(its.fidelity[0] - exact) <= 1.96 * its.fidelity_errors[0])
    assert len(inside) >= 8
    assert np.mean(inside) >= 0.9


def test_a_single_word_unlike_all_others_is_no_noise():
    """Contributions ask about it; the draws do not show it, and R² was off by .15 with an error of 0."""
    d = 10
    for seed in range(3):
        z, rng = sets_of(d), np.random.default_rng(seed)
        f = z @ rng.normal(size=d)
        f[1 << int(rng.integers(d))] += 20.0
        game = Game(f)
        its = game.text(max_calls=128, rng=seed)
        coef, exact = fit_of(f, is_text=True)
        assert game.rows <= 128
        np.testing.assert_allclose(its.coefficients.values[0], coef, atol=1e-3)
        assert its.fidelity[0] == pytest.approx(exact, abs=1e-3)
