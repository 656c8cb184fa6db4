"""limes: what LIME converges to, exactly where the model can be read, with error bars where not.

Public names are imported when they are first used, so that ``import limes`` stays fast.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOME = {
    "CompiledExplainer": "limes._explainers.tables.compiled",
    "CompositeExplainer": "limes._explainers.composite",
    "Domain": "limes._rules.domain",
    "Explanation": "limes._explanation",
    "ImageExplainer": "limes._explainers.image",
    "ImagePart": "limes._explainers.image",
    "Literals": "limes._rules.literals",
    "MapleExplainer": "limes._maple",
    "PlainContributions": "limes._explainers.tables.compiled",
    "Preprocess": "limes.models._images",
    "Prompt": "limes._explainers.prompts",
    "PromptExplainer": "limes._explainers.prompt",
    "SeriesExplainer": "limes._explainers.series",
    "SeriesPart": "limes._explainers.series",
    "SparseExplainer": "limes._rules.explainer",
    "Surrogate": "limes.surrogates",
    "TablePart": "limes._explainers.tables.part",
    "TabularExplainer": "limes._explainers.tabular",
    "TextExplainer": "limes._explainers.text",
    "TextPart": "limes._explainers.text",
    "between_models": "limes._explainers.model_differences",
    "decision_page": "limes._show.decision",
    "designs": "limes.designs",
    "diagnose": "limes._diagnostics.diagnosis",
    "evaluate": "limes.evaluate",
    "exceptions": "limes.exceptions",
    "gallery": "limes._show.inputs",
    "limit": "limes._fitting",
    "models": "limes.models",
    "rules": "limes.rules",
    "scale": "limes.scale",
    "serve": "limes.serve",
    "set_threads": "limes._threads",
    "sources": "limes._explainers.prompts",
    "suggest_design": "limes._explainers.tables.suggestion",
    "summary": "limes._diagnostics.summary",
    "theory": "limes.theory",
}

__all__ = ["__version__", *sorted(_HOME)]

if TYPE_CHECKING:
    from limes import designs, evaluate, exceptions, models, rules, scale, serve, theory
    from limes._diagnostics.diagnosis import diagnose
    from limes._diagnostics.summary import summary
    from limes._explainers.composite import CompositeExplainer
    from limes._explainers.image import ImageExplainer, ImagePart
    from limes._explainers.model_differences import between_models
    from limes._explainers.prompt import PromptExplainer
    from limes._explainers.prompts import Prompt, sources
    from limes._explainers.series import SeriesExplainer, SeriesPart
    from limes._explainers.tables.compiled import CompiledExplainer, PlainContributions
    from limes._explainers.tables.part import TablePart
    from limes._explainers.tables.suggestion import suggest_design
    from limes._explainers.tabular import TabularExplainer
    from limes._explainers.text import TextExplainer, TextPart
    from limes._explanation import Explanation
    from limes._fitting import limit
    from limes._maple import MapleExplainer
    from limes._rules.domain import Domain
    from limes._rules.explainer import SparseExplainer
    from limes._rules.literals import Literals
    from limes._show.decision import decision_page
    from limes._show.inputs import gallery
    from limes._threads import set_threads
    from limes.models._images import Preprocess
    from limes.surrogates import Surrogate


def __getattr__(name: str) -> Any:
    if name == "suggest_bandwidth":
        text = "limes.suggest_bandwidth is a part of limes.suggest_design, which compares bandwidths and bins"
        warnings.warn(f"{text}; this name ends with the next release", FutureWarning, stacklevel=2)
        name = "suggest_design"
    if name not in _HOME:
        raise AttributeError(f"module 'limes' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if module.__name__ == f"limes.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
