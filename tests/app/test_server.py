"""The server as a client sees it: its answers, and the requests that it refuses."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

from desks import flowers, running
from internals import application, launch, serve, server
from limes.exceptions import InputError

TOKEN = "a-token_of-32-bytes"  # noqa: S105 - of these tests alone


@pytest.fixture(scope="module")
def case():
    return flowers()


@pytest.fixture(scope="module")
def client(case):
    with running(application(case.desk, TOKEN)) as address, httpx.Client(base_url=address) as client:
        yield client


def question(client, path, body, **headers):
    return client.post(f"/{TOKEN}/api/{path}", json=body, headers=headers)


def test_the_page_and_its_files(client):
    for path, kind in (("", "text/html"), ("app.js", "text/javascript"), ("app.css", "text/css")):
        answer = client.get(f"/{TOKEN}/{path}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
    assert client.get(f"/{TOKEN}", follow_redirects=False).headers["location"] == f"/{TOKEN}/"


def test_the_page_has_no_inline_script_or_style(client):
    page = client.get(f"/{TOKEN}/").text
    assert re.findall(r"<script[^>]*>", page) == ['<script src="app.js" defer>']
    assert not re.search(r"<style|\son\w+=|\sstyle=|javascript:", page)
    script = client.get(f"/{TOKEN}/app.js").text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", script)


@pytest.mark.parametrize(
    "path", ["", "/", "/wrong/", "/wrong/api/table", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/", "/é/"]
)
def test_nothing_without_the_token(client, path):
    answer = client.get(path)
    assert answer.status_code == 403
    assert "terminal" in answer.text
    assert TOKEN not in answer.text


def test_the_token_is_compared_in_constant_time(client, monkeypatch):
    calls = []
    monkeypatch.setattr(server, "compare_digest", lambda a, b: calls.append((a, b)) or False)
    assert client.get(f"/{TOKEN}/").status_code == 403
    assert calls == [(TOKEN.encode(), TOKEN.encode())]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::1]:8000", "10.0.0.1"]
)
def test_a_rebound_host_name_is_refused(client, host):
    assert client.get(f"/{TOKEN}/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "localhost:9000", "127.0.0.1:8000"])
def test_the_loopback_names_are_accepted(client, host):
    assert client.get(f"/{TOKEN}/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8000"]
)
def test_requests_from_other_sites_are_refused(client, case, origin):
    body = {"values": case.desk.row(0)["values"], "output": 0}
    assert question(client, "explain", body, origin=origin).status_code == 403
    assert question(client, "explain", body, origin=str(client.base_url)).status_code == 200


def test_headers_of_every_answer(client):
    answers = [client.get(f"/{TOKEN}/"), client.get("/wrong/"), client.get(f"/{TOKEN}/api/row?row=x")]
    for answer in [*answers, client.get(f"/{TOKEN}/nothing")]:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert not any(name.startswith("access-control") for name in answer.headers)


def test_the_client_gets_the_explainers_numbers(client, case):
    row = client.get(f"/{TOKEN}/api/row", params={"row": 100}).json()
    explanation = case.explainer(case.X.iloc[[100]])
    for output in range(3):
        answer = question(client, "explain", {"values": row["values"], "output": output})
        numbers = answer.json()["numbers"]
        np.testing.assert_allclose(
            numbers["values"], explanation.contributions.values[0, :, output], rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(numbers["prediction"], explanation.predictions[0, output], rtol=1e-12)


def test_rule_diagnosis_and_search(client, case):
    body = {"values": case.desk.row(3)["values"], "output": 1}
    for path, answer in (("rule", case.desk.rule), ("diagnosis", case.desk.diagnosis)):
        got = question(client, path, body)
        assert got.status_code == 200
        assert list(got.json()) == list(answer(**body))
    assert client.get(f"/{TOKEN}/api/rows", params={"search": "149"}).json() == [{"row": 149, "id": "149"}]
    assert client.get(f"/{TOKEN}/api/table").json()["rows"] == 150


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("explain", {"values": [1, 2], "output": 0}, 422, "list of 4 numbers"),
        ("explain", {"values": [1, 2, 3, "x"], "output": 0}, 422, "column 'petal width (cm)': send a number"),
        ("explain", {"values": [1, 2, 3, 4], "output": 7}, 422, "send the position of an output, 0 to 2"),
        ("explain", {}, 422, "list of 4 numbers"),
        ("explain", [1], 400, "send a JSON object"),
        (
            "rule",
            {"values": [1, 2, 3, None], "output": 0},
            422,
            "is missing, but the background has no missing",
        ),
        ("diagnosis", {"values": [1, 2, 3, 1e400], "output": 0}, 422, "is not finite"),
    ],
)
def test_bad_requests_get_advice(client, path, body, status, message):
    headers = {"content-type": "application/json"}
    answer = client.post(f"/{TOKEN}/api/{path}", content=json.dumps(body), headers=headers)
    assert answer.status_code == status
    assert message in answer.json()["error"]


@pytest.mark.parametrize(
    ("row", "message"),
    [("x", "send a position"), ("-1", "send a position"), ("", "send a position"), ("150", "150 rows")],
)
def test_bad_rows_get_advice(client, row, message):
    answer = client.get(f"/{TOKEN}/api/row", params={"row": row})
    assert answer.status_code == 422
    assert message in answer.json()["error"]


def test_other_methods_and_paths_are_refused(client):
    send = {"content-type": "application/json"}
    assert client.post(f"/{TOKEN}/api/explain", content=b"{", headers=send).status_code == 400
    assert client.post(f"/{TOKEN}/api/explain", content=b"[" * 100_000, headers=send).status_code == 400
    assert client.post(f"/{TOKEN}/api/explain", content=b"{}").status_code == 415
    assert (
        client.post(f"/{TOKEN}/api/explain", content=b"0" * (1 << 20) + b"0", headers=send).status_code == 413
    )
    assert client.get(f"/{TOKEN}/api/explain").status_code == 405
    assert client.get(f"/{TOKEN}/../desk.py").status_code in (403, 404)
    assert client.get(f"/{TOKEN}/nothing").status_code == 404


def test_an_internal_error_shows_its_type_only(case, monkeypatch):
    def fail(*_):
        raise RuntimeError("a secret path")

    monkeypatch.setattr(type(case.desk), "explain", fail)
    with running(application(case.desk, TOKEN)) as address:
        answer = httpx.post(f"{address}/{TOKEN}/api/explain", json={"values": [], "output": 0})
    assert answer.status_code == 500
    assert answer.json() == {"error": "RuntimeError: the terminal of limes app shows where"}


def test_the_address_answers_on_the_loopback_alone(case, monkeypatch):
    """The whole way: bind, announce, open the browser by a page that only the user can read, answer, end."""
    announced, opened, servers = [], [], []

    class Server(launch.uvicorn.Server):
        def __init__(self, config):
            super().__init__(config)
            servers.append(self)

    def open_browser(address):
        page = Path(address.removeprefix("file://"))
        opened.append((page.read_text(), page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777))

    monkeypatch.setattr(launch.uvicorn, "Server", Server)
    monkeypatch.setattr(launch.webbrowser, "open", open_browser)
    options = {"port": 0, "browser": True, "announce": announced.append}
    thread = threading.Thread(target=serve, args=(case.desk,), kwargs=options)
    thread.start()
    deadline = time.monotonic() + 30
    while not (servers and servers[0].started) and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        (address,) = announced
        assert httpx.get(f"{address}api/table").json()["rows"] == 150
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{43}/", address)
        assert [s.getsockname()[0] for s in servers[0].servers[0].sockets] == ["127.0.0.1"]
        ((page, mode, folder),) = opened
        assert address in page
        assert os.name != "posix" or (mode, folder) == (0o600, 0o700)
    finally:
        servers[0].should_exit = True
        thread.join(30)
    assert not thread.is_alive()


def test_a_port_that_is_taken(case):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"--port {port} cannot be used .*: pass another, or 0"):
            serve(case.desk, port=port, browser=False, announce=print)
