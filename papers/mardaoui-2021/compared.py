"""A model at a review: repeated runs, theory, the exact value, and LIME's finite sample in expectation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import limes
from limes._fitting import exact_expectation
from limes.designs import ExchangeableDesign
from limes.surrogates import ridge
from papers.common.boxes import boxes
from papers.common.expected import Sampled
from papers.common.lime_law import repeated

from .models import Linear, Rule
from .sampling import deletions

NU, SAMPLES = 0.25, 5000
# An exact value is that of the form to this part of the largest coefficient.
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Compared:
    """Coefficients of d words, alphabetically: (runs, d), and (d,) each."""

    words: tuple[str, ...]
    runs: np.ndarray
    theory: np.ndarray
    exact: np.ndarray
    expected: np.ndarray

    @classmethod
    def of(
        cls, model: Rule | Linear, runs: int, *, bandwidth: float = NU, samples: int = SAMPLES
    ) -> Compared:
        d = len(model.words)
        order = np.argsort(np.array(model.words))
        _, coefs = repeated(deletions(model.answer, d, bandwidth), runs=runs, samples=samples)
        return cls(
            words=tuple(model.words[j] for j in order),
            runs=coefs[:, order],
            theory=model.theory(bandwidth)[order],
            exact=_exact(model, bandwidth)[order],
            expected=expected(model.form(), model.answer(np.ones((1, d)))[0], d, bandwidth, samples)[order],
        )

    def numbers(self, name: str = "") -> dict[str, np.ndarray | Sampled]:
        result = {"theory": self.theory, "exact": self.exact, "runs": Sampled.of(self.runs)}
        return {f"{name}, {what}" if name else what: value for what, value in result.items()}

    def draw(self, ax, words: int | None = None, **labels: str) -> None:
        """The first words, or all."""
        shown = slice(words)
        boxes(
            ax,
            self.words[shown],
            self.runs[:, shown],
            theory=self.theory[shown],
            exact=self.exact[shown],
            **labels,
        )

    @property
    def score(self) -> float:
        """Largest distance of the runs' mean from LIME's finite sample in expectation, in standard errors."""
        result = Sampled.of(self.runs)
        return float((np.abs(result.mean - self.expected) / result.error).max())

    @property
    def gap(self) -> float:
        """Largest difference of theory from the exact value, over the largest coefficient."""
        return float(np.abs(self.theory - self.exact).max() / np.abs(self.exact).max())


def expected(form, prediction: float, d: int, bandwidth: float, samples: int) -> np.ndarray:
    """Expected coefficients of a ridge fit to ``samples`` rows, (d,)."""
    design = ExchangeableDesign.word_deletions(d, bandwidth)
    moments = exact_expectation(form, ExchangeableDesign).moments(design)
    return ridge(design, moments, np.array(prediction), samples=samples).coef


def _exact(model: Rule | Linear, bandwidth: float) -> np.ndarray:
    """Return what ``limes.TextExplainer`` reads off the Pipeline; and it is that of the form."""
    explainer = limes.TextExplainer(model.pipeline(), split=r"\W+", bandwidth=bandwidth, method="exact")
    explanation = explainer(model.review)
    # a word that the Pipeline's vectorizer takes for the same as another would move places
    assert explanation.feature_names == tuple(model.words)
    result = explanation.coefficients.values[0]
    form = limes.limit(ExchangeableDesign.word_deletions(result.size, bandwidth), model.form()).coef
    assert np.abs(result - form).max() <= _SAME * np.abs(form).max()
    return result
