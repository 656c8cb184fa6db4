"""The modules and calls of ``lime`` 0.2.0.1 on top of limes.

Two engines answer a call: "limit" computes what lime converges to, exactly where the model can be read;
"lime" draws lime's own rows and fits lime's own surrogate. :func:`engine` chooses one for a block of code,
and :func:`install` lets ``import lime``, ``lime.lime_tabular`` and all others mean this package's modules: no
copies of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from limes.compat.lime._engines import ENGINES, engine
from limes.compat.lime.exceptions import be_strict

__all__ = ["ENGINES", "engine", "install"]


class _Alias(MetaPathFinder, Loader):
    """Finds ``lime.x`` where there is a ``limes.compat.lime.x``."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - of the import protocol
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        exists = fullname == "lime" or (
            fullname.startswith("lime.") and find_spec(_original(fullname)) is not None
        )
        return ModuleSpec(fullname, self) if exists else None

    def exec_module(self, module: ModuleType) -> None:
        # the import system returns what it finds in sys.modules, and so the same module under both names
        sys.modules[module.__name__] = import_module(_original(module.__name__))


def _original(name: str) -> str:
    return __name__ + name.removeprefix("lime")


def install(strict: bool = False) -> None:
    """Let ``import lime`` mean ``limes.compat.lime`` in this process; call it before lime is imported.

    Parameters
    ----------
    strict
        Raise an InputError for calls that lime accepts and that cannot mean what they say: too few or too
        many names, labels from the end, sampling around an instance in bins, misspelt parameters of a
        segmentation. By default they warn, and are answered as by lime.

    Raises
    ------
    ImportError
        If ``lime`` itself has been imported before.

    Examples
    --------
    >>> from limes.compat import lime
    >>> lime.install()  # doctest: +SKIP
    >>> from lime.lime_tabular import LimeTabularExplainer
    """
    imported = sys.modules.get("lime")
    if imported is not None and imported.__name__ != __name__:
        raise ImportError(
            "lime itself has been imported already: call limes.compat.lime.install() first of all"
        )
    be_strict(strict)
    if not any(isinstance(finder, _Alias) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Alias())
