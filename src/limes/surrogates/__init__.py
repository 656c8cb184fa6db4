"""β from Γ and Σ."""

from limes.surrogates._linear import Surrogate, least_squares, ridge

__all__ = ["Surrogate", "least_squares", "ridge"]
