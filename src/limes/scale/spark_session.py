"""A Spark session to work in: the one that is there, or one for this run; else advice on how to have one."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from limes.exceptions import InputError
from limes.scale.engines import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark 4 needs it
_JAVA = 17
_GET_JAVA = (
    f"Install Java {_JAVA} or later (Debian and Ubuntu: apt-get install openjdk-{_JAVA}-jre-headless; conda: "
    f"conda install openjdk={_JAVA}; macOS: brew install openjdk@{_JAVA}) and set JAVA_HOME to its folder"
)
# Times that a part is tried on this machine, should its worker die; clusters have a setting of their own
_TRIES = 4
# Seconds that a scheduler may take to answer
_PATIENCE = 10.0
_CONFIG: dict[str, str | float | bool | None] = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
# On this machine. Java does next to nothing, and starts in half the time when it optimises little
_HERE: dict[str, str | float | bool | None] = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """A session on the cluster; one that is running already is used, and left running.

    Raises
    ------
    InputError
        There is no Java that is new enough, or the scheduler does not answer.
    """
    from pyspark.sql import SparkSession

    if urlsplit(cluster.scheduler or "").scheme == "sc":
        raise InputError(
            f"{cluster.scheduler} is Spark Connect, which takes data frames and no jobs: read the table as "
            "one, and give it to limes.scale.spark.explain"
        )
    running = SparkSession.getActiveSession()
    if running is not None:
        _check_running(running, cluster)
        yield running
        return
    check_java()
    spark = _started(SparkSession.builder, cluster)
    try:
        yield spark
    finally:
        spark.stop()


def _check_running(running: SparkSession, cluster: Cluster) -> None:
    master = running.conf.get("spark.master", None)
    if cluster.scheduler not in (None, master):
        raise InputError(
            f"this program has a Spark session on {master}: stop it to use {cluster.scheduler}, or name none"
        )


def _started(builder: SparkSession.Builder, cluster: Cluster) -> SparkSession:
    if cluster.scheduler is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the python3 that is first in PATH
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nobody else is to talk to it
        cores = cluster.workers * cluster.threads
        builder = builder.master(f"local[{cores},{_TRIES}]").config("spark.task.cpus", cluster.threads)
        builder = builder.config(map=_HERE)
    else:
        _check_answers(cluster.scheduler)
        builder = builder.master(cluster.scheduler)
    try:
        with warnings.catch_warnings():
            # nothing goes by way of pandas
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            return builder.appName("limes").config(map=_CONFIG).getOrCreate()
    except Exception as error:  # Java's errors have no common base
        where = cluster.scheduler or "this machine"
        raise InputError(f"Spark could not be started on {where}: {str(error).splitlines()[0]}") from error


def _check_answers(address: str) -> None:
    """Refuse an address where nobody listens, for which Spark itself waits minutes."""
    where = urlsplit(address)
    if where.scheme != "spark":
        return
    try:
        for host, _, port in (one.partition(":") for one in where.netloc.split(",")):
            with socket.create_connection((host, int(port)), timeout=_PATIENCE):
                return
    except (OSError, ValueError) as error:
        raise InputError(
            f"the scheduler {address} does not answer ({error}): start it (sbin/start-master.sh, and "
            "workers), correct the address, or leave it out to work on this machine"
        ) from error


def check_java() -> None:
    """Refuse to begin without a Java that is new enough: says how to get it."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        where = f"in JAVA_HOME={home}" if home else "on this machine"
        raise InputError(f"Spark needs Java, and there is none {where}. {_GET_JAVA}")
    said = subprocess.run([java, "-version"], check=False, capture_output=True, text=True).stderr  # noqa: S603
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < _JAVA:
        found = version[1] if version else f"unknown ({said.strip()[:80]})"
        raise InputError(f"Spark needs Java {_JAVA}, and {java} is Java {found}. {_GET_JAVA}")
