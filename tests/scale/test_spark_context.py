"""The errors where Spark or Java is missing or too old; these tests need no Spark."""

from __future__ import annotations

import importlib
import sys
import types

import pytest

import limes.scale
from internals import Cluster, MissingLibraryError, _processes
from limes.exceptions import InputError


@pytest.fixture
def spark(monkeypatch):
    """The engine, with a stand-in for pyspark."""
    name, stand_in = "limes.scale.spark", types.ModuleType("pyspark")
    stand_in.TaskContext = types.SimpleNamespace(get=lambda: None)
    monkeypatch.setitem(sys.modules, "pyspark", stand_in)
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(limes.scale, "spark", None, raising=False)
    del sys.modules[name]
    return importlib.import_module(name)


@pytest.fixture
def java(tmp_path, monkeypatch):
    """Return a function that puts a Java of a given version on an otherwise empty PATH."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    def make(version):
        program = tmp_path / "java"
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
        program.chmod(0o755)
        return program

    return make


@pytest.mark.parametrize("version", ["17.0.15", "21.0.1", "25"])
def test_a_java_that_is_new_enough_is_accepted(java, spark, version):
    java(version)
    spark.check_java()


@pytest.mark.parametrize(("version", "message"), [("1.8.0_392", "is Java 8"), ("11.0.2", "is Java 11")])
def test_a_java_that_is_too_old_is_refused(java, spark, version, message):
    java(version)
    with pytest.raises(InputError, match=rf"needs Java 17.*{message}.*openjdk-17-jre-headless.*JAVA_HOME"):
        spark.check_java()


def test_the_error_without_java_tells_how_to_install_it(java, spark, monkeypatch, tmp_path):
    assert java
    with pytest.raises(InputError, match=r"missing on this machine.*Install Java 17"):
        spark.check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(InputError, match=r"missing in JAVA_HOME=.*gone"):
        spark.check_java()


def test_the_error_without_pyspark_has_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "limes.scale.spark", raising=False)
    with pytest.raises(MissingLibraryError, match=r"pip install 'limes\[spark\]'"):
        __import__("limes.scale.spark")


def test_a_part_has_a_separate_process_only_with_limits(spark, monkeypatch):
    monkeypatch.setattr(_processes, "set_threads", lambda count: None)
    monkeypatch.setattr(_processes, "unpickled", lambda content: lambda part: (content, part))
    monkeypatch.setattr(
        _processes,
        "WorkerPool",
        lambda content, parts, cluster: lambda part: (content, part, cluster.timeout, cluster.memory),
    )
    assert spark._result(b"work", Cluster(), 7) == (b"work", 7)
    assert spark._result(b"work", Cluster(timeout=2.0), 7) == (b"work", 7, 2.0, None)
    assert spark._result(b"work", Cluster(memory=10**9), 7) == (b"work", 7, None, 10**9)
