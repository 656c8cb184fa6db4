"""A command exits with 0 only if it finished, however its process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from io import BytesIO, TextIOWrapper
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from effort import crossed
from internals import program
from jobs import read, same, wait_until

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="a command is watched by its parent of a fork"
)

START = """
import os, signal, sys, time
sys.path.insert(0, "TESTS")
from internals import rows_are_supervised, watched
assert "numpy" not in sys.modules

def command():
    {body}
    return 0

raise SystemExit(watched(command))
""".replace("TESTS", str(Path(__file__).parents[1]))


def started(body):
    program = START.format(body=body.replace("\n", "\n    "))
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", program], start_new_session=True, **options)


AFTER = "import atexit, threading; from concurrent.futures import ThreadPoolExecutor\n{}\n"
AT_ROWS = "if rows_are_supervised(): print('second'); return 3\n"


@pytest.mark.parametrize(
    ("body", "code", "out", "err"),
    [
        ("", 0, "", ""),
        ("return 3", 3, "", ""),
        ("print('x' * 100_000)", 0, "x", ""),
        ("raise RuntimeError('no')", 1, "", "RuntimeError: no"),
        ("raise SystemExit(0)", 1, "", "SystemExit"),
        ("raise GeneratorExit", 1, "", "GeneratorExit"),
        ("os._exit(0)", 1, "", "ended the process (exit code 0) before the command came to its end"),
        ("os._exit(3)", 1, "", "(exit code 3)"),
        ("os.abort()", 1, "", "(signal 6, SIGABRT)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 1, "", "(signal 9, SIGKILL)"),
        ("import ctypes; ctypes.CDLL(None).exit(0)", 1, "", "(exit code 0)"),
        ("if os.fork() == 0: time.sleep(2); os._exit(0)\nos._exit(0)", 1, "", "(exit code 0)"),
        (AT_ROWS + "os._exit(0)", 3, "second", "the process that explained rows ended (exit code 0)"),
        (AT_ROWS + "os.kill(os.getpid(), signal.SIGKILL)", 3, "second", "(signal 9, SIGKILL)"),
        (AT_ROWS + "return 0", 0, "", ""),
        (AT_ROWS + "raise RuntimeError('no')", 1, "", "RuntimeError: no"),
        (AFTER.format("threading.Thread(target=time.sleep, args=(1000,)).start()") + "return 3", 3, "", ""),
        (AFTER.format("atexit.register(time.sleep, 1000)") + "return 3", 3, "", ""),
        (AFTER.format("atexit.register(os._exit, 9)") + "return 3", 3, "", ""),
        (AFTER.format("ThreadPoolExecutor(1).submit(time.sleep, 1000)") + AT_ROWS, 0, "", ""),
        (AFTER.format("os.fork() or time.sleep(2)"), 0, "", ""),
        ("sys.stdout = sys.stderr = None\nreturn 3", 3, "", ""),
        ("sys.stdout.close(); sys.stderr.close()\nreturn 3", 3, "", ""),
        ("os.close(1); os.close(2)\nreturn 3", 3, "", ""),
        ("sys.stdout.detach()\nprint('x') if sys.stdout is None else None\nreturn 3", 3, "", ""),
        ("sys.stdout = sys.stderr = None\nraise RuntimeError('no')", 1, "", "RuntimeError: no"),
        ("rows_are_supervised()\nos._exit(0)", 1, "", "before the command came to its end"),
    ],
)
def test_an_exit_code_is_that_of_the_command(body, code, out, err):
    process = started(body)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == code, stderr
    assert stdout.startswith(out)
    assert bool(stdout) == bool(out)
    assert err in stderr
    assert bool(stderr) == bool(err)


def test_a_thread_keeps_no_command_alive_where_there_is_no_fork():
    body = "from threading import Thread; Thread(target=time.sleep, args=(1000,)).start()\nreturn 3"
    program = START.format(body=body.replace("\n", "\n    ")).replace(
        "def command", "del os.fork\ndef command"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 3


WAIT = "print('ready', flush=True)\n{}time.sleep(60)"


@pytest.mark.parametrize("to_all", [False, True])
@pytest.mark.parametrize(
    ("number", "body", "code"),
    [
        (signal.SIGINT, "try: time.sleep(60)\nexcept KeyboardInterrupt: return 130\n", 130),
        (signal.SIGINT, "", 130),
        (signal.SIGTERM, "", -signal.SIGTERM),
        (signal.SIGHUP, "rows_are_supervised()\n", -signal.SIGHUP),
        (signal.SIGKILL, "", -signal.SIGKILL),
    ],
)
def test_signals_reach_the_command_and_end_both_processes(number, body, code, to_all):
    driver = started(WAIT.format(body))
    assert driver.stdout.readline() == "ready\n"
    if to_all:  # as a terminal does
        os.killpg(driver.pid, number)
    else:
        driver.send_signal(number)
    stderr = driver.communicate(timeout=30)[1]  # ends when no process has the pipe
    assert driver.returncode == code, stderr
    assert stderr.count("\nKeyboardInterrupt\n") <= 1


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "cp437", "utf-8"])
def test_a_summary_needs_no_encoding(encoding, tmp_path, monkeypatch):
    rows = pd.DataFrame({"größe 身高": np.arange(20.0), "b": np.arange(20.0) % 3})
    joblib.dump(first_column, tmp_path / "m.joblib")
    rows.to_parquet(tmp_path / "t.parquet")
    stream = TextIOWrapper(BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["limes", "explain-table", "m.joblib", "t.parquet", "out", "--trust-pickle"]
    )
    assert program.run() == 0
    stream.seek(0)
    text = stream.buffer.read().decode(encoding)
    assert "20 rows" in text
    for part in ("größe", "身高"):
        assert part in text or part.encode("ascii", "backslashreplace").decode() in text or "\\" in text


def first_column(rows):
    return np.asarray(rows, dtype=float)[:, 0]


MODEL = """
import ctypes, os, signal, sys
import numpy as np

ENDS = {
    "sys.exit": lambda: sys.exit(0),
    "os._exit": lambda: os._exit(7),
    "exit": lambda: ctypes.CDLL(None).exit(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "abort": os.abort,
    "calm": lambda: None,
}

class Model:
    def __init__(self, how):
        self.how = how

    def predict(self, X):
        X = np.asarray(X, dtype=float)
        if (X[:, 0] == 1234.5).any():
            ENDS[self.how]()
        return np.minimum(X[:, 0], 2.0) * X[:, 1]
"""
REASONS = {
    "sys.exit": "Model.predict called sys.exit(0)",
    "os._exit": "the row alone ends its worker (exit code 7)",
    "exit": "the row alone ends its worker (exit code 0)",
    "kill": "the row alone ends its worker (signal 9, SIGKILL, as when memory runs out)",
    "abort": "the row alone ends its worker (signal 6, SIGABRT)",
}
COUNT = 24


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A folder with models, a background, a table for each row that ends a model, and calm explanations."""
    folder = tmp_path_factory.mktemp("exits")
    (folder / "leaving.py").write_text(MODEL)
    sys.path.insert(0, str(folder))
    import leaving

    for how in leaving.ENDS:
        joblib.dump(leaving.Model(how), folder / f"{how}.joblib")
    sys.path.remove(str(folder))
    del sys.modules["leaving"]
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(COUNT, 2)), columns=["a", "b"])
    rows.to_parquet(folder / "background.parquet")
    for row in (0, 13, COUNT - 1):
        rows.assign(a=rows["a"].where(rows.index != row, 1234.5)).to_parquet(folder / f"{row}.parquet")
        assert run(folder, "calm", row, 1, f"calm-{row}").returncode == 0
    return folder


def run(folder, how, row, workers, out):
    command = [sys.executable, "-m", "limes", "explain-table", f"{how}.joblib", f"{row}.parquet", out]
    command += ["--background", "background.parquet", "--trust-pickle", "--rows-per-part", "6"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    return subprocess.run(
        [*command, "--workers", str(workers)],
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.engines
@pytest.mark.parametrize(("how", "workers", "row"), crossed(REASONS, [1, 2], [0, 13, COUNT - 1], share=4))
def test_a_row_that_ends_the_process_is_an_error_and_all_others_are_explained(places, how, workers, row):
    out = f"{how}-{workers}-{row}"
    process = run(places, how, row, workers, out)
    assert process.returncode == 3, process.stderr
    lines = read(places / out)
    assert lines["row"].tolist() == list(range(COUNT))
    assert lines.loc[lines["error"].notna(), "row"].tolist() == [row]
    assert REASONS[how] in lines["error"][row]
    assert "1 row has no explanation" in process.stdout
    calm = read(places / f"calm-{row}")
    same(lines.drop(index=row), calm.drop(index=row))
    check = [sys.executable, "-m", "limes", "verify", out, "--input", f"{row}.parquet"]
    assert subprocess.run(check, cwd=places, check=False).returncode == 0
    assert {pq.read_metadata(path).num_rows for path in (places / out).glob("*.parquet")} == {6}


@pytest.mark.engines
def test_a_killed_watcher_leaves_no_process(places):
    command = [sys.executable, "-m", "limes", "explain-table", "calm.joblib", "13.parquet", "killed"]
    command += ["--trust-pickle", "--rows-per-part", "1"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(places), *filter(None, sys.path)])}
    driver = subprocess.Popen(command, cwd=places, env=environment, stderr=subprocess.PIPE)
    wait_until(lambda: (places / "killed" / "part-00000.parquet").exists(), driver)
    driver.kill()
    began = time.monotonic()
    driver.communicate(timeout=30)  # ends when no process has the pipe
    assert time.monotonic() - began < 20


STUBBORN = """
from internals import ending_in_order
with ending_in_order():
    while True:
        try:
            print("ready", flush=True)
            time.sleep(60)
        except BaseException as error:
            print(type(error).__name__, flush=True)
"""


def test_a_second_sigterm_kills_what_the_first_did_not_end():
    with started(STUBBORN) as driver:  # closes its pipes
        assert driver.stdout.readline() == "ready\n"
        driver.terminate()
        assert driver.stdout.readline() == "Terminated\n"
        assert driver.stdout.readline() == "ready\n"
        time.sleep(1.1)
        driver.terminate()
        assert driver.wait(timeout=30) == -signal.SIGTERM
