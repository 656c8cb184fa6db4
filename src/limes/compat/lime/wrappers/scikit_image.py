"""scikit-image's segmentations as functions of an image alone; their other parameters are kept with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from limes._checks import check_choice, require
from limes.compat.lime.exceptions import warn_or_raise
from limes.compat.lime.utils.generic_utils import has_arg
from limes.exceptions import InputError

__all__ = ["BaseWrapper", "SegmentationAlgorithm"]

ALGORITHMS = ("quickshift", "felzenszwalb", "slic")
_segmentation = partial(require, "skimage.segmentation", "lime_image")


class BaseWrapper:
    """A function and the parameters that it is to be called with.

    Parameters
    ----------
    target_fn : callable or None
        None: the wrapper itself, where a subclass can be called.
    **target_params
        Its parameters, by name.

    Examples
    --------
    >>> wrapper = BaseWrapper(sorted, reverse=True)
    >>> wrapper.filter_params(sorted)
    {'reverse': True}
    """

    def __init__(self, target_fn: Callable[..., Any] | None = None, **target_params: Any) -> None:
        self.target_fn = target_fn
        self.target_params = target_params

    def _check_params(self, parameters: Iterable[str]) -> None:
        """Raise InputError at a name that is no parameter, TypeError where there is no function."""
        fn = _signed(self.target_fn if self.target_fn is not None else self)
        if isinstance(parameters, str):
            raise TypeError(f"pass parameters as a list or mapping of names, not as the text {parameters!r}")
        for name in parameters:
            if not has_arg(fn, name):
                raise InputError(f"{name!r} is not a parameter of {getattr(fn, '__qualname__', fn)}")

    def set_params(self, **params: Any) -> None:
        """Replace the parameters; raise InputError, a ValueError, at a name that is no parameter."""
        self._check_params(params)
        self.target_params = params

    def filter_params(
        self, fn: Callable[..., Any], override: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The parameters that ``fn`` takes, and those of ``override``."""
        accepted = {name: value for name, value in self.target_params.items() if has_arg(fn, name)}
        return {**accepted, **(override or {})}


class SegmentationAlgorithm(BaseWrapper):
    """One of scikit-image's segmentations: image -> superpixels (H, W).

    Parameters
    ----------
    algo_type : "quickshift", "felzenszwalb" or "slic"
    **target_params
        Of the segmentation. ``random_seed`` is what scikit-image calls ``rng`` by now; it is ignored where
        nothing is random.

    Raises
    ------
    InputError
        Another segmentation; or after ``install(strict=True)`` a parameter that it does not have, which is
        else ignored, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> halves = np.zeros((8, 8, 3))
    >>> halves[:, 4:] = 1.0
    >>> SegmentationAlgorithm("felzenszwalb", min_size=4, sigma=0)(halves)[0].tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """

    def __init__(self, algo_type: str, **target_params: Any) -> None:
        self.algo_type = check_choice("algo_type", algo_type, ALGORITHMS)
        function = getattr(_segmentation(), algo_type)
        super().__init__(function)
        if "random_seed" in target_params and not has_arg(function, "random_seed"):
            seed = target_params.pop("random_seed")
            target_params |= {"rng": seed} if has_arg(function, "rng") else {}
        for name in [name for name in target_params if not has_arg(function, name)]:
            problem = f"{name!r} is not a parameter of {algo_type}{self._advice([name])}"
            warn_or_raise(problem, "leave it out", "it is ignored, as in lime")
            del target_params[name]
        self.set_params(**target_params)

    def _check_params(self, parameters: Iterable[str]) -> None:
        try:
            super()._check_params(parameters)
        except InputError as error:
            raise InputError(f"{error}{self._advice(parameters)}") from None

    def _advice(self, parameters: Iterable[str]) -> str:
        from inspect import signature

        names = list(signature(self.target_fn).parameters)[1:] if self.target_fn else []
        unknown = [name for name in parameters if name not in names]
        near = [close[0] for name in unknown if (close := get_close_matches(name, names))]
        return f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(names)}"

    def __call__(self, *args: Any) -> Any:
        """Superpixels of the image, the first argument."""
        if self.target_fn is None:
            raise TypeError("there is no segmentation to call")
        return self.target_fn(args[0], **self.target_params)


def _signed(target: Any) -> Callable[..., Any]:
    if isinstance(target, FunctionType | MethodType):
        return target
    if not callable(target):
        raise NotCallableError(f"{target!r} cannot be called: pass a function as target_fn")
    call: Callable[..., Any] = target.__call__
    return call


class NotCallableError(InputError, TypeError, AttributeError):
    """A target that cannot be called; lime raises sometimes TypeError, sometimes AttributeError."""
