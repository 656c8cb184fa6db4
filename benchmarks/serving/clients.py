"""Concurrent clients of a service, in one process."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

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

    async def ask(i: int, count: int) -> None:
        connection = await _Connection.to(addresses[i % len(addresses)], body)
        for _ in range(count):
            start = time.perf_counter()
            await connection.ask()
            seconds.append(time.perf_counter() - start)
        connection.close()

    await asyncio.gather(*(ask(i, 10) for i in range(clients)))
    seconds.clear()
    start = time.perf_counter()
    await asyncio.gather(*(ask(i, requests // clients) for i in range(clients)))
    whole = time.perf_counter() - start
    p50, p99 = np.quantile(seconds, [0.5, 0.99])
    return {"p50": 1e3 * float(p50), "p99": 1e3 * float(p99), "a second": len(seconds) / whole}


@dataclass(frozen=True)
class _Connection:
    """One request, again and again over one connection.

    A library of clients searches its connections at each request, which costs more than the service's answer
    where they are many.
    """

    request: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def to(cls, address: str, body: dict[str, Any]) -> _Connection:
        url, content = urlsplit(address), json.dumps(body).encode()
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        head = (
            f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        return cls(head.encode() + content, reader, writer)

    async def ask(self) -> None:
        self.writer.write(self.request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        status, *fields = head.decode().split("\r\n")
        length = next(its.split(":")[1] for its in fields if its.lower().startswith("content-length:"))
        content = await self.reader.readexactly(int(length))
        if " 200 " not in status:
            raise RuntimeError(f"{status}: {content.decode()}")

    def close(self) -> None:
        self.writer.close()
