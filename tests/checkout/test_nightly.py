"""The script, the unit and the job of docs/nightly.md, as they stand there."""

from __future__ import annotations

import configparser
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import limes

PAGE = (Path(__file__).parents[2] / "docs" / "nightly.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL))

pytestmark = pytest.mark.engines


def draw(rng, rows, shift=0.0):
    table = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["age", "debt", "income"])
    return table.assign(age=table["age"] + shift, loan_id=rng.integers(10**9, size=rows))


@pytest.fixture
def folder(tmp_path):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    rng = np.random.default_rng(0)
    train = draw(rng, 500).drop(columns="loan_id")
    skops.dump(LinearRegression().fit(train, train["age"] - train["debt"]), tmp_path / "model.skops")
    train.to_parquet(tmp_path / "train.parquet")
    (tmp_path / "night.sh").write_text(BLOCKS["sh"])
    (tmp_path / "loans").mkdir()
    draw(rng, 2000).to_parquet(tmp_path / "loans" / "1.parquet")
    return tmp_path


def started(folder, **env):
    paths = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(limes.__file__).parents[1]),
        "OPTIONS": "--key loan_id",
    }
    return subprocess.Popen(
        ["/bin/sh", "night.sh"],
        cwd=folder,
        env={**os.environ, **paths, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def night(folder):
    """The exit code of a night, and what it printed."""
    process = started(folder)
    text = process.communicate(timeout=120)[0]
    return process.returncode, text


def lines(folder):
    nights = sorted((folder / "explained").glob("night-*/part-*.parquet"))
    return pd.concat(map(pd.read_parquet, nights), ignore_index=True)


def test_nights_as_the_page_has_them(folder):
    rng = np.random.default_rng(1)
    code, text = night(folder)
    assert (code, "drift" in text) == (0, False), text
    time.sleep(1.1)  # nights are named by seconds
    code, text = night(folder)
    assert (code, "nothing is new" in text) == (0, True), text
    time.sleep(1.1)
    draw(rng, 2000).to_parquet(folder / "loans" / "2.parquet")
    code, text = night(folder)  # compared with the first night: the second had no rows
    assert code == 0, text
    assert re.search(r"^0 of \d+ means and shares changed", text, re.MULTILINE), text
    time.sleep(1.1)
    shifted = draw(rng, 2000, shift=0.5)
    shifted.loc[3, "debt"] = np.inf
    shifted.to_parquet(folder / "loans" / "3.parquet")
    code, text = night(folder)
    assert code == 3, text
    [drift] = sorted((folder / "explained").glob("*.drift.json"))[1:]
    changed = {(c["quantity"], c["name"]) for c in json.loads(drift.read_text())["changes"] if c["changed"]}
    assert ("mean contribution", "age") in changed
    assert not {name for _, name in changed} & {"debt", "income"}
    time.sleep(1.1)
    draw(rng, 2000).to_parquet(folder / "loans" / "4.parquet")
    assert night(folder)[0] == 4
    result = lines(folder)
    assert result["row"].tolist() == list(range(8000))
    assert result["error"].notna().sum() == 1


def test_a_night_that_is_stopped_resumes_under_its_name(folder):
    draw(np.random.default_rng(2), 300_000).to_parquet(folder / "loans" / "2.parquet")
    process = started(folder, OPTIONS="--key loan_id --rows-per-part 5000")
    while not [*folder.glob("explained/night-*/part-00002.parquet")]:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)  # to the shell alone, as to the first process of a container
    text = process.communicate(timeout=60)[0]
    assert process.returncode == 143, text
    assert not (folder / "explained" / "last").exists()
    name = (folder / "explained" / "tonight").read_text().strip()
    again = started(folder, OPTIONS="--key loan_id --rows-per-part 5000")
    text = again.communicate(timeout=120)[0]
    assert again.returncode == 0, text
    assert (folder / "explained" / "last").read_text().strip() == name
    assert json.loads((folder / "explained" / f"{name}.json").read_text())["resumed"] >= 10_000
    assert lines(folder)["row"].tolist() == list(range(302_000))


def test_the_job_of_kubernetes_resumes_and_gives_time_to_end():
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load(BLOCKS["yaml"])
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    work = job["spec"]["jobTemplate"]["spec"]
    pod = work["template"]["spec"]
    assert pod["restartPolicy"] == "Never"  # which podFailurePolicy demands
    assert pod["terminationGracePeriodSeconds"] >= 30
    failed, ignored = work["podFailurePolicy"]["rules"]
    [container] = pod["containers"]
    assert failed["onExitCodes"]["containerName"] == container["name"]
    assert not {0, 130, 137, 143} & {*failed["onExitCodes"]["values"]}  # with these another pod resumes
    assert ignored["onPodConditions"] == [{"type": "DisruptionTarget"}]
    assert container["resources"]["limits"]["memory"] == "20Gi"
    assert {mount["name"] for mount in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}


def test_the_unit_of_systemd_is_one():
    unit = configparser.ConfigParser(strict=True, comment_prefixes="#")
    unit.optionxform = str
    unit.read_string(BLOCKS["ini"])
    service = unit["Service"]
    assert service["ExecStart"].endswith("night.sh")
    assert not {"130", "137", "143"} & {*service["RestartPreventExitStatus"].split()}
