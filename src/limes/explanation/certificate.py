"""How good a sparse explanation is known to be: plain numbers, kept with the explanation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self


@dataclass(frozen=True)
class Certificate:
    r"""What is known of one sparse explanation w of f at x.

    All errors are those of the scaled model, which answers in [-1, 1].

    Attributes
    ----------
    solver
        By which w was found.
    fidelity
        Mean of (w·z - f(z))² over the rows that w was fitted on: too small, as w has seen them.
    fresh_fidelity
        The same over fresh rows: unbiased.
    precision
        P(w) = E[|f(z) - f(x)| given w·z = w·x], on fresh rows or exactly.
    precision_error
        Its standard error; 0 where exact.
    coincidence
        Pr[w·z = w·x].
    confidence
        With this probability all ``bounds`` hold together, as long as the model answers within ``scale``.
    bounds
        Upper bounds: "fidelity" and "precision" by empirical Bernstein inequalities on fresh rows, and
        "precision_from_fidelity" = √(fidelity bound / coincidence).
    objective, lower_bound, gap, proved, nodes
        Of the problem that the solver was given; see :class:`limes.surrogates.sparse.SparseSolution`.
    samples, fresh_samples
        Rows behind ``fidelity`` and ``fresh_fidelity``.
    theory
        The accuracy of √fidelity that the 2025 paper's Theorem 2 promises for so many samples, and how many
        it asks for to be within 0.1.
    scale
        (low, high): answers that became -1 and 1.
    rule
        The explanation in words.

    References
    ----------
    Koriche et al. 2025, equations 1 to 3 and Theorem 2. Its Lemma 1, P ≤ √F, is false: the probability of the
    condition is missing.
    """

    solver: str
    fidelity: float
    fresh_fidelity: float
    precision: float
    precision_error: float
    coincidence: float
    confidence: float
    bounds: dict[str, float]
    objective: float
    lower_bound: float
    gap: float
    proved: bool
    nodes: int
    samples: int
    fresh_samples: int
    theory: dict[str, float]
    scale: tuple[float, float]
    rule: str

    def facts(self) -> dict[str, Any]:
        """As a dictionary that JSON can hold."""
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "scale": list(self.scale)}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Self:
        """Back from the dictionary."""
        return cls(**{**facts, "scale": tuple(facts["scale"])})
