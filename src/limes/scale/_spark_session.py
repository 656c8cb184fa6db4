"""A Spark session: the active one, or one for this run; else an error that says how to get one."""

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
from limes.scale._engines import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark 4 needs it
_JAVA = 17
_GET_JAVA = (
    f"Install Java {_JAVA} or later (Debian and Ubuntu: apt-get install openjdk-{_JAVA}-jre-headless; conda: "
    f"conda install openjdk={_JAVA}; macOS: brew install openjdk@{_JAVA}) and set JAVA_HOME to its folder"
)
# Times that a part is tried if its worker dies; clusters set it themselves (spark.task.maxFailures)
_TRIES = 4
# Seconds that a scheduler has to answer
_PATIENCE = 10.0
_CONFIG: dict[str, str | float | bool | None] = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
# On this machine Java has little to do, and starts in half the time when it optimises little
_LOCAL: dict[str, str | float | bool | None] = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """Yield a session on the cluster; an active one is used, and stays active.

    Raises
    ------
    InputError
        Java is missing or too old, or the scheduler does not answer.
    """
    from pyspark.sql import SparkSession

    if urlsplit(cluster.scheduler or "").scheme == "sc":
        raise InputError(
            f"{cluster.scheduler} is Spark Connect, which takes data frames and no jobs: read the table as "
            "a data frame, and pass it to limes.scale.spark.explain"
        )
    active = SparkSession.getActiveSession()
    if active is not None:
        _check_active(active, cluster)
        yield active
        return
    check_java()
    spark = _start(SparkSession.builder, cluster)
    try:
        yield spark
    finally:
        spark.stop()


def _check_active(active: SparkSession, cluster: Cluster) -> None:
    master = active.conf.get("spark.master", None)
    if cluster.scheduler not in (None, master):
        raise InputError(
            f"this program has a Spark session on {master}: stop it to use {cluster.scheduler}, or pass no "
            "scheduler"
        )


def _start(builder: SparkSession.Builder, cluster: Cluster) -> SparkSession:
    if cluster.scheduler is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the python3 that is first in PATH
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # reachable from this machine only
        cores = cluster.workers * cluster.threads
        builder = builder.master(f"local[{cores},{_TRIES}]").config("spark.task.cpus", cluster.threads)
        builder = builder.config(map=_LOCAL)
    else:
        _check_answers(cluster.scheduler)
        builder = builder.master(cluster.scheduler)
    try:
        with warnings.catch_warnings():
            # limes passes data through Arrow, never through pandas
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            return builder.appName("limes").config(map=_CONFIG).getOrCreate()
    except Exception as error:  # Java's errors have no common base
        where = cluster.scheduler or "this machine"
        raise InputError(f"Spark could not be started on {where}: {str(error).splitlines()[0]}") from error


def _check_answers(address: str) -> None:
    """Fail fast if the Spark master is unreachable: Spark itself waits minutes."""
    where = urlsplit(address)
    if where.scheme != "spark":
        return
    try:
        for host, _, port in (name.partition(":") for name in where.netloc.split(",")):
            with socket.create_connection((host, int(port)), timeout=_PATIENCE):
                return
    except (OSError, ValueError) as error:
        raise InputError(
            f"the scheduler {address} does not answer ({error}): start it (sbin/start-master.sh, and "
            "workers), correct the address, or leave it out to work on this machine"
        ) from error


def check_java() -> None:
    """Raise InputError with advice if Java is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        where = f"in JAVA_HOME={home}" if home else "on this machine"
        raise InputError(f"Spark needs Java, which is missing {where}. {_GET_JAVA}")
    answer = subprocess.run([java, "-version"], check=False, capture_output=True, text=True).stderr  # noqa: S603
    version = re.search(r'version "(?:1\.)?(\d+)', answer)
    if version is None or int(version[1]) < _JAVA:
        name = version[1] if version else f"unknown ({answer.strip()[:80]})"
        raise InputError(f"Spark needs Java {_JAVA}, and {java} is Java {name}. {_GET_JAVA}")
