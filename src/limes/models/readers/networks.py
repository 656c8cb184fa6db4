"""Networks with one hidden layer: c + Σ_h v_h a(w_h·x + b_h), by predictions or margins (ONNX: ``onnx.py``).

A softmax or a sigmoid behind the last sum has no exact expectation; the margin before it has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Floats
from limes.models._identity import qualified_name
from limes.models._reading import CannotRead, Schema, refuse_all_but_margin
from limes.models.forms._base import Form, Linear
from limes.models.forms._linked import Linked, Ridges
from limes.models.readers.links import with_probabilities

# Weights (inputs, outputs) and offsets (outputs,)
Layer: TypeAlias = tuple[Floats, Floats]
# A layer, or the name of an activation
NetworkStep: TypeAlias = Layer | str


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


def _layers(model: Any) -> list[Layer]:
    pairs = zip(model.coefs_, model.intercepts_, strict=True)
    return [(np.asarray(w, dtype=np.float64), np.asarray(b, dtype=np.float64)) for w, b in pairs]


def _form(layers: Sequence[Layer], activation: str) -> Form:
    steps = [step for layer in layers for step in (activation, layer)]
    return form_of_steps(steps[1:])


def form_of_steps(steps: Sequence[NetworkStep]) -> Form:
    """The form of layers and activations one after the other."""
    match _joined(steps):
        case [(weights, offsets)]:
            return Linear(*_outputs(weights, offsets))
        case [(weights, offsets), str(activation)]:
            return Linked(Linear(*_outputs(weights, offsets)), activation)
        case [(weights, offsets), str(activation), (scales, shift)]:
            return Ridges(weights.T, offsets, *_outputs(scales, shift, activation))
        case [_, _, _, str(activation)]:
            raise CannotRead(f"the network ends in {activation!r}: without it, as a margin, it is read")
        case joined:
            hidden = sum(isinstance(step, str) for step in joined)
            raise CannotRead(
                f"a network with {hidden} hidden layers is no sum of functions of weighted sums of the "
                "columns; with one hidden layer it is"
            )


def _joined(steps: Sequence[NetworkStep]) -> list[NetworkStep]:
    """Return the steps without identities, and with consecutive layers joined."""
    joined: list[NetworkStep] = []
    for step in steps:
        if isinstance(step, tuple) and joined and isinstance(joined[-1], tuple):
            weights, offsets = joined[-1]
            joined[-1] = weights @ step[0], offsets @ step[0] + step[1]
        elif step != "identity":
            joined.append(step)
    return joined


def _outputs(weights: Floats, offsets: Floats, *between: Any) -> tuple[Any, ...]:
    """Weights and offsets of the last layer, without the axis of one output."""
    single = weights.shape[1] == 1
    return (weights[:, 0], *between, offsets[0]) if single else (weights, *between, offsets)


# -- torch ------------------------------------------------------------------------------------------------

_TORCH_ACTIVATIONS: Mapping[str, str] = {
    "torch.GELU": "gelu",
    "torch.Identity": "identity",
    "torch.ReLU": "relu",
    "torch.SiLU": "silu",
    "torch.Sigmoid": "logistic",
    "torch.Softplus": "softplus",
    "torch.Tanh": "tanh",
}
# The options with which an activation is the one of its name; a Softplus above its threshold is s to 2e-9
_TORCH_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "torch.GELU": {"approximate": "none"},
    "torch.Softplus": {"beta": 1, "threshold": 20},
}


def sequential(module: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """Sequential(Linear, activation, Linear) of torch, with dropout anywhere."""
    if any(step._forward_hooks or step._forward_pre_hooks for step in (module, *module)):  # noqa: SLF001 - no other way
        raise CannotRead("the network has forward hooks, which may return anything")
    return form_of_steps([step for each in module if (step := _torch_step(each)) is not None])


def _torch_step(step: Any) -> NetworkStep | None:
    """The layer or the activation of a module; None for a module without effect in evaluation."""
    kind = qualified_name(type(step))
    options = _TORCH_OPTIONS.get(kind, {})
    if kind == "torch.Dropout":
        return None
    if kind == "torch.Linear":
        return _torch_layer(step)
    if kind in _TORCH_ACTIVATIONS and all(getattr(step, name) == value for name, value in options.items()):
        return _TORCH_ACTIVATIONS[kind]
    raise CannotRead(
        "of torch, Sequential(Linear, activation, Linear) is read, with the activations "
        f"{', '.join(kind.removeprefix('torch.') for kind in _TORCH_ACTIVATIONS)}; this network has {step!r}"
    )


def _torch_layer(step: Any) -> Layer:
    weights = step.weight.detach().double().cpu().numpy().T
    offsets = np.zeros(weights.shape[1]) if step.bias is None else step.bias.detach().double().cpu().numpy()
    return weights, offsets
