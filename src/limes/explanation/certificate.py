"""The certified errors of a sparse explanation: plain numbers, stored with the explanation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    r"""Errors of one sparse explanation w of f at x, with upper bounds.

    All errors are those of the scaled model, which answers in [-1, 1].

    Attributes
    ----------
    solver
        That computed w.
    fidelity
        Mean of (w·z - f(z))² over the rows that w was fitted on: biased downwards.
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
        Of the problem that the solver solved; see :class:`limes.surrogates.sparse.SparseSolution`.
    samples, fresh_samples
        Rows behind ``fidelity`` and ``fresh_fidelity``.
    theory
        The accuracy of √fidelity that the 2025 paper's Theorem 2 guarantees for this many samples, and how
        many it asks for to be within 0.1.
    scale
        (low, high): answers that are scaled to -1 and 1.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", tuple(self.scale))  # JSON makes lists of tuples
