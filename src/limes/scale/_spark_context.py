"""A Spark context: the active one, or one for this run; else an error that states how to get one."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from limes.exceptions import InputError
from limes.scale._tables import Cluster

if TYPE_CHECKING:
    from pyspark import SparkContext

# Version of Java that Spark 4 needs
_JAVA = 17
_GET_JAVA = (
    f"Install Java {_JAVA} or later (Debian and Ubuntu: apt-get install openjdk-{_JAVA}-jre-headless; conda: "
    f"conda install openjdk={_JAVA}; macOS: brew install openjdk@{_JAVA}) and set JAVA_HOME to its folder"
)
# Times that a part is tried if its worker dies; clusters set it themselves (spark.task.maxFailures)
_TRIES = 4
# Seconds that a scheduler has to answer
_PATIENCE = 10.0
_CONFIG: dict[str, str] = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
# On this machine Java has little to do, and starts in half the time when it optimises little
_LOCAL: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def spark_context(cluster: Cluster) -> Iterator[SparkContext]:
    """Yield a context on the cluster; an active one is used, and stays active.

    Jobs need no session, which would take as long to start as the context.
    """
    from pyspark import SparkContext

    if urlsplit(cluster.scheduler or "").scheme == "sc":
        raise InputError(
            f"{cluster.scheduler} is Spark Connect, which takes data frames and no jobs: read the table as "
            "a data frame, and pass it to limes.scale.spark.explain"
        )
    active = SparkContext._active_spark_context  # noqa: SLF001 - sessions ask so too
    if active is not None:
        _check_active(active, cluster)
        yield active
        return
    check_java()
    context = _start(cluster)
    try:
        yield context
    finally:
        context.stop()


def _check_active(active: SparkContext, cluster: Cluster) -> None:
    if cluster.scheduler not in (None, active.master):
        raise InputError(
            f"this program has a Spark session on {active.master}: stop it to use {cluster.scheduler}, or "
            "pass no scheduler"
        )


def _start(cluster: Cluster) -> SparkContext:
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setAppName("limes").setAll(_CONFIG.items())
    if cluster.scheduler is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the python3 that is first in PATH
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # reachable from this machine only
        cores = cluster.workers * cluster.threads
        conf = conf.setMaster(f"local[{cores},{_TRIES}]").set("spark.task.cpus", str(cluster.threads))
        conf = conf.setAll(_LOCAL.items())
    else:
        _check_answers(cluster.scheduler)
        conf = conf.setMaster(cluster.scheduler)
    try:
        return SparkContext(conf=conf)
    except Exception as error:  # Java's errors have no common base
        where = cluster.scheduler or "this machine"
        raise InputError(f"Spark could not be started on {where}: {str(error).splitlines()[0]}") from error


def _check_answers(address: str) -> None:
    """Fail fast if the Spark master is unreachable: Spark itself waits minutes."""
    where = urlsplit(address)
    if where.scheme != "spark":
        return
    reasons = []
    for master in where.netloc.split(","):  # of several, one leads and the others stand by
        host, _, port = master.partition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=_PATIENCE):
                return
        except (OSError, ValueError) as error:
            reasons.append(str(error))
    raise InputError(
        f"the scheduler {address} does not answer ({'; '.join(reasons)}): start it (sbin/start-master.sh, "
        "and workers), correct the address, or leave it out to work on this machine"
    )


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
