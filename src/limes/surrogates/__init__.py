"""β from Γ and Σ."""

from limes.surrogates.least_squares import least_squares
from limes.surrogates.ridge import ridge
from limes.surrogates.surrogate import Surrogate

__all__ = ["Surrogate", "least_squares", "ridge"]
