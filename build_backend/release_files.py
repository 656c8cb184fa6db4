"""Files of a release for an index and an auditor: the README without relative links, the SBOM of a wheel."""

from __future__ import annotations

import json
import re
import tomllib
from base64 import urlsafe_b64encode
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

# Links of Markdown to files of the repository: no scheme, no anchor of the page itself
_RELATIVE = r"\((?![a-z][a-z0-9+.-]*:|#|//)([^()\s]+)\)"
_IMAGE = re.compile(rf"!\[([^\]]*)\]{_RELATIVE}")
_LINK = re.compile(rf"(?<!!)\[([^\]]*)\]{_RELATIVE}")


def write_readme(target: Path = Path("build", "README.md")) -> None:
    """Write the README that the metadata holds: an index shows it where no file of the repository is."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = readme(Path("README.md").read_text(encoding="utf-8"), project.get("urls", {}).get("Source"))
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, encoding="utf-8")


def readme(text: str, source: str | None) -> str:
    """Make links and images absolute, at the address of the sources; without one, keep the texts of links."""
    if source:
        text = _IMAGE.sub(rf"![\1]({source}/raw/HEAD/\2)", text)
        return _LINK.sub(rf"[\1]({source}/blob/HEAD/\2)", text)
    text = re.sub(rf"^{_IMAGE.pattern}\n+", "", text, flags=re.MULTILINE)
    return _LINK.sub(r"\1", _IMAGE.sub("", text))


def add_sbom(wheel: Path, *, zig: bool) -> None:
    """Put the bill of materials where PEP 770 has it, and list it in the wheel's RECORD."""
    with ZipFile(wheel) as archive:
        contents = {entry: archive.read(entry) for entry in archive.infolist()}
    record = next(entry for entry in contents if entry.filename.endswith(".dist-info/RECORD"))
    folder = record.filename.removesuffix("/RECORD")
    name, content = (
        f"{folder}/sboms/limes.cdx.json",
        sbom(folder.removesuffix(".dist-info").split("-")[1], zig=zig),
    )
    with ZipFile(wheel, "w", ZIP_DEFLATED) as archive:
        for entry, stored in contents.items():
            if entry is not record:
                archive.writestr(entry, stored)
        line = f"{name},sha256={digest(content)},{len(content)}\n".encode()
        its = ZipInfo(name, record.date_time)
        its.external_attr = 0o100644 << 16  # all users may read it, as other files of the wheel
        archive.writestr(its, content, ZIP_DEFLATED)
        archive.writestr(record, line + contents[record])


def digest(content: bytes) -> str:
    return urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()


def sbom(limes: str, *, zig: bool) -> bytes:
    """Return the bill of materials of a wheel of this version, as CycloneDX: what is compiled into it."""
    nanobind = version("nanobind")
    parts = [_part("nanobind", nanobind, "BSD-3-Clause", f"pkg:pypi/nanobind@{nanobind}"), *_carried()]
    if zig:
        llvm, compiler = _llvm(), version("ziglang")
        parts += [
            _part(name, llvm, "Apache-2.0 WITH LLVM-exception", f"pkg:generic/{name}@{llvm}")
            for name in ("libc++", "libc++abi", "libunwind")
        ]
        parts.append(_part("compiler_rt", compiler, "MIT", f"pkg:pypi/ziglang@{compiler}"))
    purl = f"pkg:pypi/limes@{limes}"
    product = _part("limes", limes, "BSD-3-Clause", purl)
    content = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid5(NAMESPACE_URL, " ".join([purl, *(str(part["bom-ref"]) for part in parts)])).urn,
        "version": 1,
        "metadata": {"component": product},
        "components": parts,
        "dependencies": [
            {"ref": purl, "dependsOn": [part["bom-ref"] for part in parts]},
            *({"ref": part["bom-ref"]} for part in parts),
        ],
    }
    return json.dumps(content, indent=1).encode()


def _part(name: str, number: str = "", licence: str = "", purl: str = "") -> dict[str, object]:
    part: dict[str, object] = {"type": "library", "bom-ref": purl or name, "name": name}
    if number:
        part["version"] = number
    if licence:  # one with an exception is an expression
        stated = {"expression": licence} if " " in licence else {"license": {"id": licence}}
        part["licenses"] = [stated]
    return part | {"purl": purl} if purl else part


def _carried() -> list[dict[str, object]]:
    """Return what nanobind carries; tools/try_installed.py fails where the notices lack some of it."""
    folders = sorted(path for path in (_package("nanobind") / "ext").iterdir() if path.is_dir())
    return [_robin_map(path) if path.name == "robin_map" else _part(path.name) for path in folders]


def _robin_map(folder: Path) -> dict[str, object]:
    header = folder / "include/tsl/robin_growth_policy.h"
    numbers = re.findall(r"define TSL_RH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header.read_text("utf-8"))
    number = ".".join(numbers)  # none in the headers of early versions
    purl = "pkg:github/Tessil/robin-map" + (f"@v{number}" if number else "")
    return _part("robin-map", number, "MIT", purl)


def _llvm() -> str:
    header = _package("ziglang") / "lib/libcxx/include/__config"
    number = int(re.search(r"define _LIBCPP_VERSION (\d+)", header.read_text("utf-8"))[1])  # type: ignore[index]
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise RuntimeError(
            f"{name} is not installed, which the kernels are compiled with: build in isolation"
        )
    return Path(spec.origin).parent
