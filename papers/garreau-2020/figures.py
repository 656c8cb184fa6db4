"""All figures of the paper that can be made with the data that are there."""

from __future__ import annotations

from importlib import import_module

from .boston import FILE
from .figure_1 import AVAILABLE

INTRODUCTION = """
# Garreau and von Luxburg 2020, reproduced

*Explaining the explainer: a first theoretical analysis of LIME.* Made by `python -m papers garreau-2020
--write`; `make papers` compares the numbers of a new run with `expected.json`. Weights are smooth, exp(-‖x
- ξ‖²/(2ν²)), bins are the quartiles of normal(μ, σ²), the surrogate is least squares without a penalty.
  Boxes are runs of this law, red crosses its limit, from `limes.limit` or `limes.theory`; |z| is the
  largest distance of the mean of the runs from it, in standard errors. Figure 2 is a sketch of the setting.

**What had to be mended**, a test in `tests/theory/test_errata.py`: Theorem 3.1 prints σ̃ = ν²σ²/(ν² + σ²),
which is its square; σ̃ = νσ/√(ν² + σ²). The sample size of Theorem 10.1 rests on Lemmas 8.4 and 9.3, whose
proofs do not hold, and is not offered.
"""
# what needs more than the library: tables, photographs, networks
_AVAILABLE = {1: AVAILABLE, 5: FILE.exists(), 6: FILE.exists()}
FIGURES = {
    str(number): import_module(f".figure_{number}", __package__).draw
    for number in (1, 3, 4, 5, 6, 7, 8)
    if _AVAILABLE.get(number, True)
}
