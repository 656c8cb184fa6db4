"""Run the server of a desk on the loopback interface until Ctrl-C."""

from __future__ import annotations

import os
import socket
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory

import uvicorn

from limes._app.desk import Desk
from limes._app.server import application
from limes.exceptions import InputError

_LOOPBACK = "127.0.0.1"


def serve(desk: Desk, *, port: int, browser: bool, announce: Callable[[str], None]) -> None:
    """Serve the desk until Ctrl-C; ``announce`` gets the address once it answers.

    Raises
    ------
    InputError
        If the port is taken or not allowed.
    """
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
            application(desk, token), log_level="warning", access_log=False, timeout_graceful_shutdown=1
        )
        uvicorn.Server(config).run(sockets=[listener])


def _doorway(folder: Path, address: str) -> Path:
    """Write a page that leads to the address: a command line, which others can list, would show the token."""
    page = folder / "open.html"
    descriptor = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(address)}">')
    return page
