"""Requests that arrive slowly, in another charset, or from a page of another scheme."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from urllib.parse import urlsplit

import httpx
import pytest

from desks import flowers, running
from internals import application, server

TOKEN = "a-token_of-32-bytes"  # noqa: S105 - of these tests alone
PATIENCE = 1.0  # seconds


@pytest.fixture(scope="module")
def desks():
    return flowers()


@pytest.fixture
def address(desks, monkeypatch):
    monkeypatch.setattr(server, "_PATIENCE", PATIENCE)
    with running(application(desks.desk, TOKEN)) as address:
        yield address


def half_sent(address, sent=b'{"values": [', stated=100):
    """A connection whose question is cut off."""
    where = urlsplit(address)
    connection = socket.create_connection((where.hostname, where.port), timeout=20)
    head = (
        f"POST /{TOKEN}/api/explain HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {stated}\r\n\r\n"
    )
    connection.sendall(head.encode() + sent)
    return connection


def answer_of(connection):
    """All that the server sends until it closes the connection."""
    with connection:
        return b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()


def test_a_half_sent_question_is_dropped(address):
    begin = time.monotonic()
    answer = answer_of(half_sent(address))
    assert answer.startswith("HTTP/1.1 408 ")
    assert "did not arrive within 1 seconds: send it at once" in answer
    assert "\r\nconnection: close" in answer.lower()
    assert PATIENCE <= time.monotonic() - begin < 10 * PATIENCE


def seconds_of_drops(connection):
    """For how long the server takes a byte every now and then."""
    begin = time.monotonic()
    with connection, contextlib.suppress(OSError):  # a reset, or a broken pipe
        while time.monotonic() - begin < 10 * PATIENCE:
            connection.sendall(b"1")
            time.sleep(0.1)
    return time.monotonic() - begin


def test_drops_of_bytes_buy_no_time(address):
    assert seconds_of_drops(half_sent(address, stated=1000)) < 10 * PATIENCE


def test_many_half_sent_questions_do_not_delay_others(address, desks):
    connections = [half_sent(address) for _ in range(50)]
    question = {"values": desks.desk.row(0)["values"], "output": 0}
    assert httpx.post(f"{address}/{TOKEN}/api/explain", json=question).status_code == 200
    assert all(answer_of(connection).startswith("HTTP/1.1 408 ") for connection in connections)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ('Application/JSON;charset="UTF-8"', 200),
        ("application/json; charset=latin-1", 415),
        ("application/jsonp", 415),
        ("text/plain", 415),
        ("text/plain; application/json", 415),
        ("", 415),
    ],
)
def test_types_of_questions(address, desks, kind, status):
    question = json.dumps({"values": desks.desk.row(0)["values"], "output": 0})
    answer = httpx.post(f"{address}/{TOKEN}/api/explain", content=question, headers={"content-type": kind})
    assert answer.status_code == status
    assert status == 200 or "as application/json" in answer.json()["error"]


@pytest.mark.parametrize(("scheme", "status"), [("http", 200), ("https", 403), ("ftp", 403), ("file", 403)])
def test_the_scheme_of_a_page_counts(address, scheme, status):
    origin = f"{scheme}://{urlsplit(address).netloc}"
    assert httpx.get(f"{address}/{TOKEN}/api/table", headers={"origin": origin}).status_code == status


# -- headers -------------------------------------------------------------------------------------------------


def opened(address, sent=b""):
    where = urlsplit(address)
    connection = socket.create_connection((where.hostname, where.port), timeout=20)
    connection.sendall(sent)
    return connection


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A"])
def test_connections_without_a_request_are_closed(address, sent):
    begin = time.monotonic()
    with opened(address, sent) as connection, contextlib.suppress(ConnectionResetError):
        assert connection.recv(1) == b""
    assert PATIENCE * 0.9 <= time.monotonic() - begin < 10 * PATIENCE


def test_half_a_second_request_is_dropped_too(address):
    whole = f"GET /{TOKEN}/api/table HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\n\r\n".encode()
    with opened(address, whole) as connection:
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET / HT")
        begin = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(1 << 16):
                pass
    assert time.monotonic() - begin < 10 * PATIENCE


def test_drops_of_headers_buy_no_time(address):
    begin = time.monotonic()
    with opened(address, b"GET / HTTP/1.1\r\n") as connection, contextlib.suppress(OSError):
        while time.monotonic() - begin < 10 * PATIENCE:
            connection.sendall(b"X")
            time.sleep(0.1)
    assert time.monotonic() - begin < 10 * PATIENCE


def test_the_oldest_of_many_silent_connections_go_and_the_page_answers(desks, monkeypatch):
    monkeypatch.setattr(server, "_MOST_SILENT", 40)
    with running(application(desks.desk, TOKEN)) as address:  # ten seconds of patience
        connections = [opened(address, b"GET / HTTP/1.1\r\n") for _ in range(100)]
        begin = time.monotonic()
        try:
            assert httpx.get(f"{address}/{TOKEN}/api/table").status_code == 200
            for connection in connections[:50]:
                with contextlib.suppress(ConnectionResetError):
                    assert connection.recv(1) == b""
        finally:
            for connection in connections:
                connection.close()
        assert time.monotonic() - begin < 9.0
