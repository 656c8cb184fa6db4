"""``import lime``, ``lime.lime_tabular`` and all others mean this package's modules: no copies of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_OURS = "limes.compat.lime"

__all__ = ["install"]


class _Alias(MetaPathFinder, Loader):
    """Finds ``lime.x`` where there is a ``limes.compat.lime.x``."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - of the import protocol
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        known = fullname == "lime" or (
            fullname.startswith("lime.") and find_spec(_ours(fullname)) is not None
        )
        return ModuleSpec(fullname, self) if known else None

    def exec_module(self, module: ModuleType) -> None:
        # the import system returns what it finds here, and so the same module under both names
        sys.modules[module.__name__] = import_module(_ours(module.__name__))


def _ours(name: str) -> str:
    return _OURS + name.removeprefix("lime")


def install() -> None:
    """Let ``import lime`` mean ``limes.compat.lime`` in this process; call it before lime is imported.

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
    known = sys.modules.get("lime")
    if known is not None and known.__name__ != _OURS:
        raise ImportError(
            "lime itself has been imported already: call limes.compat.lime.install() first of all"
        )
    if not any(isinstance(finder, _Alias) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Alias())
