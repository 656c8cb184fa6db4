"""A cache of the least-recently-used kind, bounded by number and bytes, that threads may share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """At most ``most`` values, of ``largest`` bytes together; the newest stays however large it is.

    Copies in other processes start empty.
    """

    def __init__(self, most: int, largest: int | None = None) -> None:
        self._most, self._largest = most, largest
        self._lock = Lock()
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def get(self, key: K, make: Callable[[], V], size: Callable[[V], int] = lambda _: 0) -> V:
        """Return the value of the key; ``make`` and cache it if it is missing.

        Threads that look up the same missing key at the same time may each make it.
        """
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = make()
        self.put(key, value, size(value))
        return value

    def put(self, key: K, value: V, size: int = 0) -> None:
        """Cache a value of ``size`` bytes."""
        with self._lock:
            self._values[key] = (value, size)
            self._values.move_to_end(key)
            while len(self._values) > 1 and self._is_full():
                self._values.popitem(last=False)

    def take(self, key: K) -> V | None:
        """Remove the value of a key and return it; None if it is missing."""
        with self._lock:
            value, _ = self._values.pop(key, (None, 0))
            return value

    def _is_full(self) -> bool:
        if len(self._values) > self._most:
            return True
        return self._largest is not None and sum(size for _, size in self._values.values()) > self._largest

    def __reduce__(self) -> tuple[Any, ...]:
        return LRUCache, (self._most, self._largest)
