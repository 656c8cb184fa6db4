"""The mean of repeated ``lime`` runs against the exact value, with its penalty and rows counted in."""

from __future__ import annotations

import numpy as np
from scipy import stats

from benchmarks.pool import processes
from benchmarks.progress import say
from benchmarks.text import cases, lime_runs
from limes import TextExplainer

TEXTS, RUNS = 20, 16
WORDS = range(10, 151)
# Chance of one score or more beyond the limit, in all models and texts together, if all is as it should be
FALSE_ALARM = 0.01
# Of the largest coefficient. Where a model is linear on a text its runs vary by their penalty alone, some
# 5e-5; what is expected of that is a ratio of expected sums, and as far off.
_FORMULA = 1e-4
# Where a model does not react to a text at all
_ROUNDING = 1e-12


def measure(texts: int = TEXTS, runs: int = RUNS) -> dict:
    """By model: scores of all coefficients and intercepts."""
    everything, _ = cases.reviews()
    chosen = [t for t in everything[cases.TRAINING :] if cases.distinct(t) in WORDS][:texts]
    result = []
    with processes() as pool:
        for scores in pool.map(_scores, chosen, [runs] * len(chosen)):
            result.append(scores)
            say(f"agreement: {len(result)} of {len(chosen)} texts")
    scores = {name: np.concatenate([each[name] for each in result]) for name in result[0]}
    count = sum(map(len, scores.values()))
    limit = float(stats.norm.isf(FALSE_ALARM / (2 * count)))
    return {
        "texts": len(chosen),
        "words": [int(d) for d in np.quantile([cases.distinct(t) for t in chosen], (0, 0.5, 1))],
        "runs": runs,
        "limit": limit,
        "models": {name: _summary(z) for name, z in scores.items()},
    }


def _scores(text: str, runs: int) -> dict[str, np.ndarray]:
    models = _models()
    asks = [model.ask for model in models.values()]
    drawn = [lime_runs.run(asks, text, seed) for seed in range(runs)]
    coefs, words = np.array([result for result, _ in drawn]), drawn[0][1]
    scores = {}
    for i, (name, model) in enumerate(models.items()):
        explainer = TextExplainer(
            model.pipeline, split=r"\W+", output=model.output, ridge=1.0, method="exact"
        )
        explanation = explainer(text)
        order = [explanation.feature_names.index(word) for word in words]
        expected = np.append(
            explanation.coefficients.values[0, order], explanation.coefficients.intercepts[0]
        )
        scores[name] = normal_scores(coefs[:, i], expected)
    return scores


def normal_scores(runs: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """How far the mean of runs (n, m) lies from (m,): normal deviates that are as improbable as their t.

    The last is the intercept.
    """
    count = len(runs)
    error = runs.std(axis=0, ddof=1) / np.sqrt(count)
    far = runs.mean(axis=0) - expected
    blur = np.hypot(error, _FORMULA * np.abs(expected[:-1]).max())
    t = np.divide(far, blur, out=np.zeros(far.size), where=np.maximum(blur, np.abs(far)) > _ROUNDING)
    return np.sign(t) * stats.norm.isf(stats.t.sf(np.abs(t), count - 1))


def _summary(z: np.ndarray) -> dict[str, float]:
    return {
        "coefficients": int(z.size),
        "inside_95": float((np.abs(z) < stats.norm.isf(0.025)).mean()),
        "largest": float(np.abs(z).max()),
        "spread": float(z.std()),
    }


def _models() -> dict[str, cases.Model]:
    """Fitted once a process."""
    if not _FITTED:
        _FITTED.update(cases.models(*cases.reviews()))
    return _FITTED


_FITTED: dict[str, cases.Model] = {}
