"""Forms, the structures that can be read off a model. Table of contents.

| form | f(x) | read off |
|---|---|---|
| ``Linear`` | c + Σ λ_j x_j | linear models, margins of linear classifiers |
| ``Additive`` | c + Σ f_j(x_j) | generalised additive models |
| ``Multiplicative`` | ∏ f_j(x_j) | |
| ``Boxes`` | c + Σ_i a_i 1[x in box i] | rules; a tree is its leaves |
| ``Quadratic`` | c + Σ_j b_j x_j + Σ_jk a_jk x_j x_k | linear models of polynomial features |
| ``GaussianKernels`` | c + Σ_i a_i exp(-Σ_j (x_j - ζ_ij)²/(2γ_j²)) | RBF machines, Gaussian processes |
| ``Forest`` | c + Σ trees | trees, forests, boosting |
| ``PresenceProducts`` | c + Σ_i a_i ∏_{j on} z_j ∏_{j off} (1 - z_j) | trees on the words of a text |
| ``NormalizedLinear`` | c + Σ_j c_j z_j / √(Σ_j a_j z_j) | linear models on normalised TF-IDF |
| ``SwitchProducts`` | c + Σ_i a_i ∏_j (on_ij or off_ij) | RBF machines on images |
| ``Linked`` | c + Σ_k a_k link(sum_k(x)) | probabilities of additive margins, means behind a log link |
| ``Softmax`` | c + Σ_c a_c softmax_c(sums(x)) | probabilities of three classes, of additive margins |
| ``Ridges`` | c + Σ_h v_h activation(w_h·x + b_h) | networks with one hidden layer, random Fourier features |
| ``Combination`` | c + Σ_i w_i f_i(x) | voting, bagging, stacking of readable parts |
| ``Reduced`` | any sum, or sum of products, of functions of a column | explainable boosting machines |
| ``BlackBox`` | anything | everything else: sampled |
"""

from limes.models.forms._base import (
    Additive,
    BlackBox,
    Boxes,
    Combination,
    Form,
    GaussianKernels,
    Linear,
    Multiplicative,
    Quadratic,
    Reduced,
)
from limes.models.forms._linked import Linked, Ridges, Softmax
from limes.models.forms._presence import NormalizedLinear, PresenceProducts, SwitchProducts
from limes.models.forms._trees import Forest

__all__ = [
    "Additive",
    "BlackBox",
    "Boxes",
    "Combination",
    "Forest",
    "Form",
    "GaussianKernels",
    "Linear",
    "Linked",
    "Multiplicative",
    "NormalizedLinear",
    "PresenceProducts",
    "Quadratic",
    "Reduced",
    "Ridges",
    "Softmax",
    "SwitchProducts",
]
