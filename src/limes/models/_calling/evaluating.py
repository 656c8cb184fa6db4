"""Evaluation mode of torch's networks, shared by the Python threads that call them.

In training mode dropout and batch statistics make answers random. A mode is a flag of the module, one for all
threads: the first thread that calls a module puts it into evaluation mode, and the last one restores it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock, get_ident
from typing import Any

from limes.models._identity import qualified_name


@dataclass(eq=False)
class _InUse:
    """A module that threads call: how often each entered it, and its mode before."""

    module: Any
    was_training: bool
    entries: Counter[int] = field(default_factory=Counter)

    @property
    def is_free(self) -> bool:
        return not self.entries.total()


class _Modes:
    """Modules in use, submodules one by one: two networks may share some, and a user may have frozen others.

    Modules are compared by identity, and referred to only as long as a thread calls them.
    """

    def __init__(self) -> None:
        # reentrant: modules may override ``train`` and call an explainer there
        self._lock = RLock()
        self._in_use: dict[int, _InUse] = {}

    def enter(self, network: Any) -> list[Any]:
        """Put a network into evaluation mode; return its modules, which `leave` takes."""
        modules = list(network.modules())
        with self._lock:
            for module in modules:
                entry = self._in_use.setdefault(id(module), _InUse(module, bool(module.training)))
                entry.entries[get_ident()] += 1
            try:
                if any(module.training for module in modules):
                    network.eval()
            except BaseException:
                self.leave(modules)
                raise
        return modules

    def leave(self, modules: list[Any]) -> None:
        """Restore the modes of modules that no thread calls any longer."""
        with self._lock:
            for module in modules:
                self._in_use[id(module)].entries[get_ident()] -= 1
            self._restore([self._in_use[id(module)] for module in modules])

    def keep_this_thread(self) -> None:
        """Forget the other threads of the process that this one was forked from."""
        self._lock, entries = RLock(), list(self._in_use.values())
        for entry in entries:
            entry.entries = Counter({get_ident(): entry.entries[get_ident()]})
        self._restore(entries)

    def _restore(self, entries: list[_InUse]) -> None:
        """Restore free ones of these, parents before their children, and forget them."""
        free = [entry for entry in entries if entry.is_free]
        for module, was_training in ((entry.module, entry.was_training) for entry in free):
            if module.training == was_training:
                continue
            if all(self._is_free(inner) for inner in module.modules()):
                module.train(was_training)  # may be overridden; sets all inner modules, whose turn comes next
            else:
                module.training = was_training  # another thread calls an inner module: leave that alone
        for entry in free:
            self._in_use.pop(id(entry.module), None)

    def _is_free(self, module: Any) -> bool:
        entry = self._in_use.get(id(module))
        return entry is None or entry.is_free


_modes = _Modes()


@contextmanager
def evaluating(network: Any) -> Iterator[None]:
    """Call a network in evaluation mode; afterwards every submodule has the mode that it had before.

    Threads may overlap, and contexts may be nested. Objects that are no modules of torch are left alone.
    """
    if not any(qualified_name(kind) == "torch.Module" for kind in type(network).__mro__):
        yield
        return
    modules = _modes.enter(network)
    try:
        yield
    finally:
        _modes.leave(modules)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_modes.keep_this_thread)
