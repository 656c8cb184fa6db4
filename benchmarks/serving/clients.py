"""Concurrent clients of a service, in one process."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import httpx
import numpy as np


def free_port() -> int:
    """A port of this machine that nothing listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for(address: str, body: dict[str, Any], seconds: float = 120.0) -> None:
    """Ask until the service answers."""
    until = time.monotonic() + seconds
    while True:
        try:
            httpx.post(address, json=body, timeout=10).raise_for_status()
        except httpx.TransportError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return


def measure(addresses: list[str], body: dict[str, Any], clients: int, requests: int) -> dict[str, float]:
    """Milliseconds of requests by n clients at once, each of which asks again when it is answered.

    They take the addresses in turn, as behind a load balancer.
    """
    return asyncio.run(_measure(addresses, body, clients, requests))


async def _measure(
    addresses: list[str], body: dict[str, Any], clients: int, requests: int
) -> dict[str, float]:
    seconds: list[float] = []
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client:

        async def ask(i: int, count: int) -> None:
            address = addresses[i % len(addresses)]
            for _ in range(count):
                start = time.perf_counter()
                (await client.post(address, json=body)).raise_for_status()
                seconds.append(time.perf_counter() - start)

        await asyncio.gather(*(ask(i, 10) for i in range(clients)))
        seconds.clear()
        start = time.perf_counter()
        await asyncio.gather(*(ask(i, requests // clients) for i in range(clients)))
        whole = time.perf_counter() - start
    p50, p99 = np.quantile(seconds, [0.5, 0.99])
    return {"p50": 1e3 * float(p50), "p99": 1e3 * float(p99), "a second": len(seconds) / whole}
