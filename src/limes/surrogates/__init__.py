"""β from Γ and Σ."""

from limes.surrogates.linear import Surrogate, least_squares, ridge

__all__ = ["Surrogate", "least_squares", "ridge"]
