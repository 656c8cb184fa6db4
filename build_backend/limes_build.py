"""scikit-build-core, with a compiler from the package index where the machine has none.

``pip install .`` needs a C++17 compiler. Where neither ``CXX`` nor a compiler of the system is there, the
``ziglang`` wheel, which holds one, is installed into the build's environment and used instead. In an editable
installation the kernels lie beside the sources. What a release holds beside code is in release_files.py.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any
from zipfile import ZipFile

import scikit_build_core.build as base
from release_files import add_sbom, digest, write_readme
from scikit_build_core.build import get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    write_readme()
    return base.build_sdist(sdist_directory, config_settings)


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    write_readme()
    return base.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return [*base.get_requires_for_build_wheel(config_settings), *_compiler()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    return [*base.get_requires_for_build_editable(config_settings), *_compiler()]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    write_readme()
    zig = _use_zig()
    name: str = base.build_wheel(wheel_directory, config_settings, metadata_directory)
    add_sbom(Path(wheel_directory, name), zig=zig)
    return name


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Put the kernels beside the sources; the wheel has the path of these and the metadata.

    scikit-build-core's editable installations find the package before PYTHONPATH is searched.
    """
    with TemporaryDirectory() as folder:
        name = build_wheel(folder, config_settings)
        with ZipFile(Path(folder, name)) as wheel:
            contents = {path: wheel.read(path) for path in wheel.namelist()}
    files = {"limes.pth": f"{Path('src').resolve()}\n".encode()}
    for path, content in contents.items():
        if path.endswith((".so", ".pyd")):
            kernels = Path("src", path)
            kernels.unlink(missing_ok=True)  # a process that has loaded them keeps the old ones
            kernels.write_bytes(content)
        elif ".dist-info/" in path and not path.endswith("/RECORD"):
            files[path] = content
    record = next(path for path in contents if path.endswith("/RECORD"))
    lines = [f"{path},sha256={digest(content)},{len(content)}" for path, content in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    with ZipFile(Path(wheel_directory, name), "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
    return name


def _compiler() -> list[str]:
    """Requirement of a compiler, if the machine has none."""
    return [] if os.environ.get("CXX") or _has_compiler() else ["ziglang>=0.13"]


def _has_compiler() -> bool:
    if sys.platform == "darwin":
        # c++ is always there, and asks for Apple's tools to be installed if they are not
        return subprocess.run(["xcode-select", "-p"], capture_output=True, check=False).returncode == 0
    if os.name == "nt":
        programs = os.environ.get("PROGRAMFILES(X86)", "")
        if Path(programs, "Microsoft Visual Studio", "Installer", "vswhere.exe").exists():
            return True
    return any(map(shutil.which, ("c++", "g++", "clang++", "cl")))


def _use_zig() -> bool:
    """Point CMake to Zig's compiler and archiver, if the machine has none, and return whether that is so."""
    if not _compiler():
        return False
    folder = Path(mkdtemp(prefix="zig-"))
    tools = {name: _script(folder, name) for name in ("c++", "ar", "ranlib")}
    os.environ["CXX"] = str(tools["c++"])
    os.environ["CMAKE_ARGS"] = " ".join(
        [os.environ.get("CMAKE_ARGS", ""), f"-DCMAKE_AR={tools['ar']}", f"-DCMAKE_RANLIB={tools['ranlib']}"]
    )
    return True


def _script(folder: Path, tool: str) -> Path:
    """A program that calls one of Zig's tools."""
    if os.name == "nt":
        script = folder / f"zig-{tool}.cmd"
        script.write_text(f'@"{sys.executable}" -m ziglang {tool} %*\n')
        return script
    script = folder / f"zig-{tool}"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {tool} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script
