"""More functions of one coordinate, made by preprocessing and kernels: curves by quadrature, decays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError, ModelError
from limes.functions import Density


@dataclass(frozen=True, eq=False)
class Curves:
    """m functions that are smooth between their breaks, integrated by quadrature.

    Attributes
    ----------
    shape
        (n,) -> (m, n); NaN or infinite where the model has no answer.
    breaks
        Points where a function may jump or bend.
    name
        What the functions are functions of, for errors.
    """

    shape: Callable[[Floats], Floats]
    breaks: tuple[float, ...] = ()
    name: str = "a function of one column"

    def __call__(self, x: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(self.shape(x), dtype=np.float64)

    def integrate(self, density: Density) -> Floats:
        """Integrate by quadrature.

        Raises
        ------
        ModelError
            If the density reaches a place where a function is not finite, or where quadrature fails.
        """
        try:
            return density.quadrature(self._checked, self.breaks)
        except InputError as error:
            raise ModelError(f"{self.name}: {error}; use method='sampled'") from error

    def _checked(self, x: Floats) -> Floats:
        values = self(x)
        wrong = ~np.isfinite(values).all(axis=0)
        if wrong.any():
            raise ModelError(
                f"{self.name}: the model has no finite answer at {x[wrong][0]:.6g}, where the background's "
                "law goes; use law='uniform' or law='empirical', which keep to the background's values, or "
                "bins= inside what the model can answer to"
            )
        return values


@dataclass(frozen=True, eq=False)
class Decay:
    """exp(-rate |x - center|); centers (m,), one rate > 0."""

    center: Floats
    rate: float

    def __call__(self, x: Floats) -> Floats:
        return np.asarray(np.exp(-self.rate * np.abs(x - self.center[:, None])))

    def integrate(self, density: Density) -> Floats:
        return density.decay(self.center, self.rate)
