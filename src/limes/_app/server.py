"""The server of one desk on the loopback interface.

It refuses requests without the token, for another host, or from another site. The token is the first part of
every path, so that scripts and pictures of the page need no cookie, which browsers would send to other ports
of this machine too.
"""

from __future__ import annotations

import json
import os
import socket
import webbrowser
from asyncio import timeout
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from secrets import compare_digest, token_urlsafe
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from limes._explanation.wording import one_line
from limes.exceptions import InputError, LimesError

if TYPE_CHECKING:
    from asyncio import TimerHandle, Transport

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from limes._app.session import WhatIfSession

# Names of this machine; another name in a request's Host is a page that rebound its name to this address
_HOSTS = ("127.0.0.1", "localhost")
_FILES: Mapping[str, str] = {"": "app.html", "app.js": "app.js", "app.css": "app.css"}
_STATIC = Path(__file__).parent / "static"
# Bytes of a question: ten thousand columns fit; and seconds that it may take to arrive, on one machine
_LARGEST = 1 << 20
_PATIENCE = 10.0
# Connections without a whole request: further ones close the oldest
_MOST_SILENT = 256
# What may follow application/json
_CHARSETS = ("", "charset=utf-8", 'charset="utf-8"')
_HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


def application(desk: WhatIfSession, token: str) -> ASGIApp:
    routes = [
        *(Route(f"/{path}", _file(name)) for path, name in _FILES.items()),
        Route("/api/table", lambda _: JSONResponse(desk.table())),
        Route("/api/rows", lambda request: JSONResponse(desk.search(request.query_params.get("search", "")))),
        Route("/api/row", lambda request: JSONResponse(desk.row(_position(request)))),
        Route("/api/explain", _poster(desk.explain), methods=["POST"]),
        Route("/api/rule", _poster(desk.rule), methods=["POST"]),
        Route("/api/diagnosis", _poster(desk.diagnosis), methods=["POST"]),
    ]
    where = "the terminal of limes app shows where"
    handlers: Any = {
        LimesError: lambda _, error: JSONResponse({"error": one_line(str(error))}, 422),
        HTTPException: lambda _, error: JSONResponse(
            {"error": error.detail}, error.status_code, error.headers
        ),
        Exception: lambda _, error: JSONResponse({"error": f"{type(error).__name__}: {where}"}, 500),
    }
    return RequestGuard(Starlette(routes=routes, exception_handlers=handlers), token)


class RequestGuard:
    """Refuse requests without the token, for another host or from another site; add headers to answers."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # nothing else is served
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, guarded)
            return
        root = f"/{self._token.decode()}"
        inner = {**scope, "path": scope["path"].removeprefix(root), "root_path": "", "raw_path": None}
        await self._app(inner, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name, _, port = host.rpartition(":")  # a tunnel may change the port
        if (name if port.isdecimal() else host) not in _HOSTS:
            text = "limes app answers to 127.0.0.1 and localhost alone: open the address that it printed"
            return PlainTextResponse(text, 403)
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers['host']}":
            return PlainTextResponse("limes app answers to its page alone", 403)
        first, slash, _ = scope["path"].removeprefix("/").partition("/")
        if not compare_digest(first.encode("utf-8", "replace"), self._token):
            text = "The address has no valid token: open the address that limes app printed in the terminal"
            return PlainTextResponse(text, 403)
        return None if slash else RedirectResponse(f"/{first}/")


def _file(name: str) -> Callable[[Request], Response]:
    return lambda _: FileResponse(_STATIC / name)


def _poster(answer: Callable[[Any, Any], Any]) -> Any:
    """Return the endpoint of a question about a row's values and an output, in JSON."""

    async def endpoint(request: Request) -> Response:
        question = await _question(request)
        content = await run_in_threadpool(answer, question.get("values"), question.get("output"))
        return JSONResponse(content)

    return endpoint


async def _question(request: Request) -> dict[str, Any]:
    kind, _, charset = request.headers.get("content-type", "").lower().partition(";")
    if kind.strip() != "application/json" or charset.strip() not in _CHARSETS:
        raise HTTPException(415, "send JSON in UTF-8, as application/json")
    try:
        async with timeout(_PATIENCE):
            body = await _body(request)
    except TimeoutError:
        why = f"the question did not arrive within {_PATIENCE:g} seconds: send it at once"
        raise HTTPException(408, why, {"connection": "close"}) from None
    try:
        question = json.loads(body)
    except (ValueError, RecursionError):
        question = None
    if not isinstance(question, dict):
        raise HTTPException(400, 'send a JSON object: {"values": [...], "output": 0}')
    return question


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            raise HTTPException(413, f"the question is longer than {_LARGEST} bytes")
    return body


def _position(request: Request) -> int:
    text = request.query_params.get("row", "")
    if not text.isdecimal() or not text.isascii():
        raise InputError("row: send a position, counted from 0")
    return int(text)


class PatientProtocol(H11Protocol):
    """A connection that is closed unless a request's headers arrive in time: uvicorn waits for ever."""

    since = 0.0  # when it was made
    deadline: TimerHandle | None = None

    @property
    def is_silent(self) -> bool:
        """Whether it is open, and no request is being answered."""
        cycle: Any = self.cycle
        return not self.transport.is_closing() and (cycle is None or cycle.response_complete)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = self.loop.time()
        self._wait()
        silent = [each for each in self.connections if isinstance(each, PatientProtocol) and each.is_silent]
        if len(silent) > _MOST_SILENT:
            min(silent, key=lambda each: each.since).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.is_silent:
            self._stop_waiting()
        elif self.deadline is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self.deadline = self.loop.call_later(_PATIENCE, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        self.deadline = None


_LOOPBACK = "127.0.0.1"


def serve(desk: WhatIfSession, *, port: int, browser: bool, announce: Callable[[str], None]) -> None:
    """Serve the desk until Ctrl-C; ``announce`` gets the address once it answers."""
    token = token_urlsafe(32)
    try:
        listener = socket.create_server((_LOOPBACK, port))
    except OSError as error:
        why = f"--port {port} cannot be used ({error.strerror}): pass another, or 0 for any that is free"
        raise InputError(why) from error
    with listener, TemporaryDirectory(prefix="limes-app-") as folder:
        address = f"http://{_LOOPBACK}:{listener.getsockname()[1]}/{token}/"
        announce(address)
        if browser:
            webbrowser.open(_doorway(Path(folder), address).as_uri())
        config = uvicorn.Config(
            application(desk, token),
            http=PatientProtocol,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        uvicorn.Server(config).run(sockets=[listener])


def _doorway(folder: Path, address: str) -> Path:
    """Write a page that leads to the address: a command line, which others can list, would show the token."""
    page = folder / "open.html"
    descriptor = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(address)}">')
    return page
