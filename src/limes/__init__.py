"""limes: what LIME converges to, exactly where the model can be read, with error bars where not.

Public names are imported when they are first used, so that ``import limes`` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Explanation": "limes.explanation",
    "ImageExplainer": "limes.explainers.image",
    "Literals": "limes.explainers.tables.literals",
    "MapleExplainer": "limes.maple",
    "Preprocess": "limes.models.calling.networks",
    "SparseExplainer": "limes.explainers.sparse",
    "Surrogate": "limes.surrogates.linear",
    "TabularExplainer": "limes.explainers.tabular",
    "TextExplainer": "limes.explainers.text",
    "designs": "limes.designs",
    "diagnose": "limes.diagnostics.diagnosis",
    "evaluate": "limes.evaluate",
    "exceptions": "limes.exceptions",
    "limit": "limes.pipeline",
    "models": "limes.models",
    "scale": "limes.scale",
    "suggest_bandwidth": "limes.diagnostics.bandwidth",
    "suggest_design": "limes.explainers.tables.suggestion",
    "summary": "limes.diagnostics.summary",
    "theory": "limes.theory",
}

__all__ = ["__version__", *sorted(_HOME)]

if TYPE_CHECKING:
    from limes import designs, evaluate, exceptions, models, scale, theory
    from limes.diagnostics.bandwidth import suggest_bandwidth
    from limes.diagnostics.diagnosis import diagnose
    from limes.diagnostics.summary import summary
    from limes.explainers.image import ImageExplainer
    from limes.explainers.sparse import SparseExplainer
    from limes.explainers.tables.literals import Literals
    from limes.explainers.tables.suggestion import suggest_design
    from limes.explainers.tabular import TabularExplainer
    from limes.explainers.text import TextExplainer
    from limes.explanation import Explanation
    from limes.maple import MapleExplainer
    from limes.models.calling.networks import Preprocess
    from limes.pipeline import limit
    from limes.surrogates.linear import Surrogate


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'limes' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if module.__name__ == f"limes.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
