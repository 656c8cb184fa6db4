"""Forms: what can be read off a model. The table of contents.

| form | f(x) | read off |
|---|---|---|
| ``Linear`` | c + Σ λ_j x_j | linear models, margins of linear classifiers |
| ``Additive`` | c + Σ f_j(x_j) | generalised additive models |
| ``Multiplicative`` | ∏ f_j(x_j) | |
| ``Boxes`` | c + Σ_i a_i 1[x in box i] | rules; a tree is its leaves |
| ``GaussianKernels`` | c + Σ_i a_i exp(-‖x - ζ_i‖²/(2γ²)) | RBF machines |
| ``Forest`` | c + Σ trees | trees, forests, boosting |
| ``Combination`` | c + Σ_i w_i f_i(x) | voting, bagging, stacking of readable parts |
| ``BlackBox`` | anything | everything else: sampled |
"""

from limes.models.additive import Additive, Linear, Multiplicative
from limes.models.boxes import Boxes
from limes.models.combination import Combination
from limes.models.kernels import GaussianKernels
from limes.models.reductions import BlackBox, Form
from limes.models.trees import Forest

__all__ = [
    "Additive",
    "BlackBox",
    "Boxes",
    "Combination",
    "Forest",
    "Form",
    "GaussianKernels",
    "Linear",
    "Multiplicative",
]
