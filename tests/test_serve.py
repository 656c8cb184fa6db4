"""Services: rows of concurrent requests are explained together, each as it would be alone."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic, sleep

import httpx
import joblib
import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

import limes
from limes.exceptions import InputError
from limes.serve import Batcher, BusyError
from pages import page

X, Y = load_diabetes(return_X_y=True, as_frame=True)
MODEL = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, Y)
EXPLAIN = limes.TabularExplainer(MODEL, X).compiled()


class Slow:
    """A compiled explainer that counts batches, and may be held back."""

    def __init__(self, monkeypatch):
        self.batches, self.go = [], Event()
        self.go.set()
        each = limes.CompiledExplainer.each

        def held(explain, requests):
            self.go.wait(10)
            self.batches.append(len(requests))
            return each(explain, requests)

        monkeypatch.setattr(limes.CompiledExplainer, "each", held)


def assert_alone(answer, i):
    alone = EXPLAIN(X.iloc[[i]])
    np.testing.assert_array_equal(answer.values, alone.values)
    np.testing.assert_array_equal(answer.predictions, alone.predictions)
    assert answer.warnings == alone.warnings


def test_rows_that_wait_are_explained_together_each_as_it_would_be_alone(monkeypatch):
    slow = Slow(monkeypatch)
    slow.go.clear()
    with Batcher(EXPLAIN, max_rows=40, wait=0) as batcher:
        first = batcher.submit(X.iloc[0].to_dict())
        while batcher._waiting.qsize():  # until the first one is held
            sleep(0.001)
        others = [batcher.submit(X.iloc[i].tolist()) for i in range(1, 61)]
        slow.go.set()
        for i, answer in enumerate([first, *others]):
            assert_alone(answer.result(10), i)
    assert slow.batches == [1, 40, 20]


def test_a_row_waits_for_others_no_longer_than_it_is_told(monkeypatch):
    slow = Slow(monkeypatch)
    with Batcher(EXPLAIN, max_rows=3, wait=30.0) as batcher:
        start = monotonic()
        answers = [batcher.submit(X.iloc[i]) for i in range(3)]  # as many as there may be
        for i, answer in enumerate(answers):
            assert_alone(answer.result(10), i)
        assert monotonic() - start < 20
    assert slow.batches == [3]


def test_an_error_is_that_of_its_request():
    model = LinearRegression().fit(X, Y)
    explain = limes.TabularExplainer(model, X).compiled()
    with Batcher(explain, wait=0.05) as batcher:
        good, bad, empty = (batcher.submit(row) for row in (X.iloc[0], {"age": 1.0}, [None] * 10))
        np.testing.assert_array_equal(good.result(10).values, explain(X.iloc[0]).values)
        with pytest.raises(InputError, match="X has no column"):
            bad.result(10)
        with pytest.raises(InputError, match="is missing"):
            empty.result(10)
        np.testing.assert_array_equal(batcher(X.iloc[1], 10).values, explain(X.iloc[1]).values)


def test_a_row_that_cannot_be_looked_at_fails_alone():
    """The error of a cell that no encoder foresaw was that of every request of the batch."""

    class Odd:
        def __hash__(self):
            raise RuntimeError("no hash today")

    row = X.iloc[0].to_dict()
    with Batcher(EXPLAIN, wait=0.05) as batcher:
        good, odd, nested, last = map(
            batcher.submit, (row, row | {"age": Odd()}, row | {"sex": {"a": 1}}, row)
        )
        for answer in (good, last):
            assert_alone(answer.result(10), 0)
        with pytest.raises(RuntimeError, match="no hash today"):
            odd.result(10)
        with pytest.raises(InputError, match=r"row 0, column 'sex': .* is no single value"):
            nested.result(10)


def test_a_failure_of_a_batch_leaves_nobody_waiting(monkeypatch):
    def fail(explain, requests):
        raise MemoryError("no room")

    with Batcher(EXPLAIN, wait=0) as batcher:
        with monkeypatch.context() as patch:
            patch.setattr(limes.CompiledExplainer, "each", fail)
            with pytest.raises(MemoryError, match="no room"):
                batcher(X.iloc[0], 10)
        assert_alone(batcher(X.iloc[0], 10), 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Unix alone forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_batcher_that_was_used_serves_in_a_forked_process():
    """The thread stays in the first process: requests of a forked worker waited for ever."""
    with Batcher(EXPLAIN, wait=0) as batcher:
        assert_alone(batcher(X.iloc[0], 10), 0)
        child = os.fork()
        if not child:
            code = 1
            try:
                code = 0 if batcher(X.iloc[1], 10).predictions.size == 1 else 2
                batcher.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert_alone(batcher(X.iloc[1], 10), 1)


def test_a_callback_may_close_the_batcher():
    batcher, errors, closed = Batcher(EXPLAIN, wait=0), [], Event()

    def close(_):
        try:
            batcher.close()
        except RuntimeError as error:
            errors.append(error)
        closed.set()

    batcher.submit(X.iloc[0]).add_done_callback(close)
    assert closed.wait(10)
    assert not errors
    with pytest.raises(InputError, match="was closed"):
        batcher(X.iloc[0])


def test_requests_that_were_given_up_are_not_computed_and_too_many_are_refused(monkeypatch):
    slow = Slow(monkeypatch)
    slow.go.clear()
    with Batcher(EXPLAIN, wait=0, max_waiting=2) as batcher:
        first = batcher.submit(X.iloc[0])
        while batcher._waiting.qsize():
            sleep(0.001)
        with pytest.raises(TimeoutError):
            batcher(X.iloc[1], timeout=0.01)
        last = batcher.submit(X.iloc[2])
        with pytest.raises(BusyError, match="2 requests wait"):
            batcher.submit(X.iloc[3])
        slow.go.set()
        assert_alone(first.result(10), 0)
        assert_alone(last.result(10), 2)
    assert slow.batches == [1, 1]


def test_closed_ones_answer_what_waits_and_take_no_more():
    batcher = Batcher(EXPLAIN, wait=0.2)
    answers = [batcher.submit(X.iloc[i]) for i in range(5)]
    batcher.close()
    for i, answer in enumerate(answers):
        assert_alone(answer.result(0), i)
    with pytest.raises(InputError, match="closed"):
        batcher.submit(X.iloc[0])
    batcher.close()


def test_in_asyncio():
    async def ask():
        with Batcher(EXPLAIN) as batcher:
            return await asyncio.gather(*(batcher.explain(X.iloc[i].to_dict(), 10) for i in range(30)))

    for i, answer in enumerate(asyncio.run(ask())):
        assert_alone(answer, i)


def test_a_function_that_has_to_be_asked_is_served_too():
    explainer = limes.TabularExplainer(lambda X: np.asarray(X)[:, 0] ** 2, X.iloc[:, :2], max_calls=64, rng=0)
    with Batcher(explainer.compiled()) as batcher:
        answer = batcher(X.iloc[0, :2], 60)
    expected = explainer.contributions(X.iloc[[0], :2]).contributions
    np.testing.assert_array_equal(answer.values, expected.values)
    np.testing.assert_array_equal(answer.standard_errors, expected.standard_errors)


@pytest.mark.parametrize(
    ("explain", "options", "text"),
    [
        (limes.TabularExplainer(MODEL, X), {}, "explainer.compiled()"),
        (len, {}, "pass what explainer.compiled"),
        (EXPLAIN, {"max_rows": 0}, "max_rows"),
        (EXPLAIN, {"wait": -1}, "wait"),
        (EXPLAIN, {"max_waiting": 1.5}, "max_waiting"),
    ],
)
def test_other_options_are_refused(explain, options, text):
    with pytest.raises(InputError, match=text):
        Batcher(explain, **options)


# -- the page of the documentation ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Two processes of the service of the page "Decisions explained by a service"."""
    folder = tmp_path_factory.mktemp("service")
    joblib.dump(EXPLAIN, folder / "explain.joblib")
    (app,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", page("serving.md"), re.DOTALL)
        if "Starlette(" in block
    )
    (folder / "app.py").write_text(app, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port), "--workers", "2"]
    environment = {**os.environ, "EXPLAINER": str(folder / "explain.joblib")}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        address, until = f"http://127.0.0.1:{port}/explain", monotonic() + 90
        while True:
            try:
                httpx.post(address, json={}, timeout=5)
                break
            except httpx.TransportError:
                is_starting = process.poll() is None and monotonic() < until
                assert is_starting, (folder / "log").read_text()
                sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait(30)


def test_the_pages_service_answers_concurrent_clients(server):
    def ask(i):
        response = httpx.post(server, json=X.iloc[i].to_dict(), headers={"X-Case": str(i)}, timeout=60)
        assert response.status_code == 200, response.text
        return response.json()

    with ThreadPoolExecutor(16) as clients:
        answers = [*clients.map(ask, range(64))]
    for i, answer in enumerate(answers):
        alone = EXPLAIN(X.iloc[[i]])
        assert [*answer["contributions"]] == [*X.columns]
        assert [*answer["contributions"].values()] == alone.values[0].tolist()
        assert answer["prediction"] == alone.predictions[0]
        total = answer["base"] + sum(answer["contributions"].values())
        assert total == pytest.approx(answer["prediction"])


@pytest.mark.parametrize("content", [b"{", b"[1, 2]", b'{"age": 1}', b'"text"', b"null", b"3"])
def test_the_pages_service_refuses_what_is_no_row(server, content):
    response = httpx.post(server, content=content, timeout=60)
    assert response.status_code == 422
    assert response.json()["error"]
