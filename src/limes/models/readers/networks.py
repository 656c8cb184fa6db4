"""Networks with one hidden layer: c + Σ_h v_h a(w_h·x + b_h), by predictions or margins.

What follows the last sum, a softmax or a sigmoid, has no exact expectation: its margin has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models._identity import qualified_name
from limes.models._reading import CannotRead, Schema, refuse_all_but_margin
from limes.models.forms._additive import Linear
from limes.models.forms._base import Form
from limes.models.forms._ridges import Ridges
from limes.models.readers.links import with_probabilities

# Weights (inputs, outputs) and offsets (outputs,)
_Layer = tuple[Floats, Floats]


def regressor(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """MLPRegressor."""
    if model.out_activation_ != "identity":
        raise CannotRead(f"its output passes through {model.out_activation_!r}, which is not read")
    return _form(_layers(model), model.activation)


@with_probabilities
def classifier(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """Margins of MLPClassifier: the sums before the logistic function or the softmax."""
    refuse_all_but_margin(model, method, "ridge functions")
    return _form(_layers(model), model.activation)


def _layers(model: Any) -> list[_Layer]:
    pairs = zip(model.coefs_, model.intercepts_, strict=True)
    return [(np.asarray(w, dtype=np.float64), np.asarray(b, dtype=np.float64)) for w, b in pairs]


def _form(layers: Sequence[_Layer], activation: str) -> Form:
    """The form of layers with one activation between them."""
    if activation == "identity":
        layers = [_merged(layers)]
    if len(layers) > 2:
        raise CannotRead(
            f"a network with {len(layers) - 1} hidden layers is no sum of functions of weighted sums of the "
            "columns; with one hidden layer it is"
        )
    weights, offsets = layers[-1]
    if weights.shape[1] == 1:
        weights, offsets = weights[:, 0], offsets[0]
    if len(layers) == 1:
        return Linear(weights, offsets)
    hidden, shifts = layers[0]
    return Ridges(hidden.T, shifts, weights, activation, offsets)


def _merged(layers: Sequence[_Layer]) -> _Layer:
    weights, offsets = layers[0]
    for next_weights, next_offsets in layers[1:]:
        weights, offsets = weights @ next_weights, offsets @ next_weights + next_offsets
    return weights, offsets


# -- torch ------------------------------------------------------------------------------------------------

_TORCH_ACTIVATIONS: Mapping[str, str] = {
    "torch.Identity": "identity",
    "torch.ReLU": "relu",
    "torch.Sigmoid": "logistic",
    "torch.Tanh": "tanh",
}
# Without effect where a network is evaluated
_TORCH_INERT = ("torch.Dropout", "torch.Identity")


def sequential(module: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """Sequential(Linear, activation, Linear) of torch, with dropout anywhere."""
    steps = [step for step in module if qualified_name(type(step)) not in _TORCH_INERT]
    kinds = [qualified_name(type(step)) for step in steps]
    if kinds and kinds[-1] == "torch.Sigmoid":
        raise CannotRead("the network ends in a sigmoid: without it, as a margin, it is read")
    if any(step._forward_hooks or step._forward_pre_hooks for step in (module, *steps)):  # noqa: SLF001 - no other way
        raise CannotRead("the network has forward hooks, which may return anything")
    if kinds == ["torch.Linear"]:
        return _form([_torch_layer(steps[0])], "identity")
    if len(kinds) != 3 or kinds[::2] != ["torch.Linear"] * 2 or kinds[1] not in _TORCH_ACTIVATIONS:
        raise CannotRead(
            "of torch, Sequential(Linear, activation, Linear) is read, with the activations ReLU, Tanh and "
            f"Sigmoid; this is Sequential({', '.join(type(step).__name__ for step in module)})"
        )
    return _form([_torch_layer(steps[0]), _torch_layer(steps[2])], _TORCH_ACTIVATIONS[kinds[1]])


def _torch_layer(step: Any) -> _Layer:
    weights = step.weight.detach().double().cpu().numpy().T
    offsets = np.zeros(weights.shape[1]) if step.bias is None else step.bias.detach().double().cpu().numpy()
    return weights, offsets
