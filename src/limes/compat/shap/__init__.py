"""The explainers of ``shap`` on top of limes, and all else of shap, such as its plots, as it is.

``from limes.compat import shap`` in place of ``import shap``, or :func:`install` once: explainers of trees,
linear models and functions of tables are those here, with shap's signatures and results. Other names, among
them ``plots``, ``maskers``, ``utils``, and explainers of networks, texts and images, are shap's own, where it
is installed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from limes.compat.shap.explanation import is_loaded_here, shap_module

if TYPE_CHECKING:
    from limes.compat.shap._base import Explainer
    from limes.compat.shap.functions import (
        ExactExplainer,
        KernelExplainer,
        PermutationExplainer,
        SamplingExplainer,
    )
    from limes.compat.shap.linear import LinearExplainer
    from limes.compat.shap.trees import TreeExplainer

    Explanation: Any

__all__ = [
    "ExactExplainer",
    "Explainer",
    "KernelExplainer",
    "LinearExplainer",
    "PermutationExplainer",
    "SamplingExplainer",
    "TreeExplainer",
    "install",
]

_MODULES = {
    "Explainer": "_base",
    "ExactExplainer": "functions",
    "KernelExplainer": "functions",
    "LinearExplainer": "linear",
    "PermutationExplainer": "functions",
    "SamplingExplainer": "functions",
    "TreeExplainer": "trees",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    if name == "Explanation":
        return import_module(f"{__name__}.explanation").explanation_class()
    if name.startswith("__") and name != "__version__":
        raise AttributeError(name)
    peer = shap_module()
    if peer is None:
        raise AttributeError(f"{__name__} has no {name!r}, which is shap's own: pip install shap")
    return getattr(peer, name)


def install() -> None:
    """Let ``import shap`` mean ``limes.compat.shap`` in this process; call it before shap is imported.

    Raises
    ------
    ImportError
        If ``shap`` itself has been imported before.

    Examples
    --------
    >>> from limes.compat import shap
    >>> shap.install()  # doctest: +SKIP
    >>> import shap  # doctest: +SKIP
    """
    imported = sys.modules.get("shap")
    if imported is not None and imported.__name__ != __name__ and not is_loaded_here(imported):
        raise ImportError(
            "shap itself has been imported already: call limes.compat.shap.install() first of all"
        )
    shap_module()  # its plots are looked up there
    sys.modules["shap"] = sys.modules[__name__]
