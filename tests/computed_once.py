"""Values by name that collecting tests does not compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any


class ComputedOnce(Mapping[str, Any]):
    """Values by name, each of them computed when it is first read: models that only some tests need."""

    def __init__(self, functions: Mapping[str, Callable[[], Any]]) -> None:
        self._functions = functions
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = self._functions[name]()
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)
