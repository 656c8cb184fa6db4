"""Parts of a release beside code: notices of compiled code of others, the SBOM, the README of an index."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import runpy
import tomllib
from base64 import urlsafe_b64encode
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
NOTICES = (ROOT / "THIRD_PARTY_NOTICES.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SOURCE = "https://example.org/limes"
RECORD = "limes-0.9.dist-info/RECORD"


def backend(**changed):
    """Names of the build backend's module, some of them replaced for all its functions."""
    names = runpy.run_path(str(ROOT / "build_backend" / "release_files.py"))
    names["sbom"].__globals__.update(changed)
    return SimpleNamespace(**names)


@pytest.fixture
def packages(tmp_path):
    """Folders of nanobind and ziglang, as far as the SBOM reads them."""
    robin = tmp_path / "nanobind/ext/robin_map/include/tsl"
    robin.mkdir(parents=True)
    numbers = zip(("MAJOR", "MINOR", "PATCH"), (1, 4, 2), strict=True)
    lines = [f"#define TSL_RH_VERSION_{name} {number}" for name, number in numbers]
    (robin / "robin_growth_policy.h").write_text("\n".join(lines))
    llvm = tmp_path / "ziglang/lib/libcxx/include"
    llvm.mkdir(parents=True)
    (llvm / "__config").write_text("#  define _LIBCPP_VERSION 190107\n")
    return tmp_path


def bill(packages, *, zig):
    versions = {"nanobind": "2.9", "ziglang": "0.15"}
    module = backend(version=versions.__getitem__, _package=packages.joinpath)
    return json.loads(module.sbom("0.9", zig=zig))


def links(text):
    return re.findall(r"\]\(([^)\s]+)\)", text)


def test_an_index_shows_the_readme_without_relative_links():
    text = backend().readme(README, None)
    assert [link for link in links(text) if not link.startswith(("http", "#"))] == []
    assert "![" not in text
    assert "| Start | from install" in text
    # nothing else is lost: code and tables are as they were
    assert text.count("```") == README.count("```")
    assert text.count("\n|") == README.count("\n|")


def test_with_an_address_of_the_sources_links_and_images_are_absolute():
    text = backend().readme(README, SOURCE)
    assert f"]({SOURCE}/raw/HEAD/docs/images/account.png)" in text
    assert f"[changelog]({SOURCE}/blob/HEAD/CHANGELOG.md)" in text
    assert [link for link in links(text) if not link.startswith(("http", "#"))] == []
    assert len(links(text)) == len(links(README))


def test_absolute_links_and_anchors_stay():
    text = "[a](https://b.c/d.md) [e](#f) ![g](https://h.i/j.png) <https://k.l>"
    assert backend().readme(text, None) == text
    assert backend().readme(text, SOURCE) == text


def test_the_metadata_has_the_readme_of_the_index(tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text("![one](docs/one.png)\n\n# limes\n[two](two.md)\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'limes'\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    backend().write_readme()
    assert (tmp_path / PROJECT["readme"]).read_text(encoding="utf-8") == "# limes\ntwo\n"


def test_every_licence_that_the_notices_link_to_is_in_the_wheel():
    stated = [link for link in links(NOTICES) if link.startswith("licenses/")]
    present = [path.relative_to(ROOT).as_posix() for path in (ROOT / "licenses").iterdir()]
    assert sorted(stated) == sorted(present)
    assert PROJECT["license-files"] == ["LICENSE", "THIRD_PARTY_NOTICES.md", "licenses/*.txt"]


@pytest.mark.parametrize(
    ("name", "holder"),
    [
        ("nanobind", "Wenzel Jakob"),
        ("robin-map", "Thibaut Goetghebuer-Planchon"),
        ("llvm", "LLVM Exceptions to the Apache 2.0 License"),
        ("zig", "Zig contributors"),
        ("gcc", "GCC RUNTIME LIBRARY EXCEPTION"),
    ],
)
def test_licences_name_their_holders(name, holder):
    assert holder in (ROOT / "licenses" / f"{name}.txt").read_text(encoding="utf-8")


def test_the_kernels_include_nothing_else():
    sources = [path for path in (ROOT / "kernels").iterdir() if path.suffix in (".h", ".cpp")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    foreign = {name for name in re.findall(r"#\s*include\s*<([^>]+)>", text) if "/" in name or ".h" in name}
    assert foreign
    of_compilers = {name for name in foreign if name.endswith("intrin.h")}
    of_systems = {"sys/mman.h"}  # Linux's, where it is Linux
    assert {name.split("/")[0] for name in foreign - of_compilers - of_systems} == {"nanobind"}
    included = set(re.findall(r'#\s*include\s*"([^"]+)"', text))
    assert included <= {path.name for path in sources}
    packages = re.findall(r"find_package\((\w+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert packages == ["Python", "nanobind"]


@pytest.mark.parametrize("zig", [False, True])
def test_the_bill_of_materials_has_versions_and_the_notices_name_its_parts(packages, zig):
    content = bill(packages, zig=zig)
    assert (content["bomFormat"], content["specVersion"]) == ("CycloneDX", "1.6")
    product = content["metadata"]["component"]
    assert (product["name"], product["version"]) == ("limes", "0.9")
    versions = {part["name"]: part["version"] for part in content["components"]}
    llvm = {"libc++": "19.1.7", "libc++abi": "19.1.7", "libunwind": "19.1.7", "compiler_rt": "0.15"}
    assert versions == {"nanobind": "2.9", "robin-map": "1.4.2"} | (llvm if zig else {})
    assert all(part["licenses"] and part["name"] in NOTICES for part in content["components"])
    refs = [product["bom-ref"], *(part["bom-ref"] for part in content["components"])]
    assert [line["ref"] for line in content["dependencies"]] == refs
    assert content["dependencies"][0]["dependsOn"] == refs[1:]


def test_a_library_that_nanobind_comes_to_carry_is_listed(packages):
    (packages / "nanobind/ext/another").mkdir()
    assert [part["name"] for part in bill(packages, zig=False)["components"]] == [
        "nanobind",
        "another",
        "robin-map",
    ]


def test_the_bill_is_in_the_wheel_and_in_its_record(tmp_path):
    wheel = tmp_path / "limes-0.9-cp312-abi3-linux_x86_64.whl"
    with ZipFile(wheel, "w") as archive:
        archive.writestr("limes/__init__.py", "x = 1\n")
        archive.writestr(RECORD, f"limes/__init__.py,sha256=x,6\n{RECORD},,\n")
    backend(sbom=lambda limes, zig: f"{limes} {zig}".encode()).add_sbom(wheel, zig=True)
    with ZipFile(wheel) as archive:
        content = archive.read("limes-0.9.dist-info/sboms/limes.cdx.json")
        rows = list(csv.reader(archive.read(RECORD).decode().splitlines()))
        assert archive.namelist()[-1] == RECORD
        modes = {entry.external_attr >> 16 & 0o777 for entry in archive.infolist()[1:2]}
    assert modes == {0o644}  # for all users
    assert content == b"0.9 True"
    digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    assert ["limes-0.9.dist-info/sboms/limes.cdx.json", f"sha256={digest}", "8"] in rows
    assert sorted(name for name, *_ in rows) == sorted(
        ["limes-0.9.dist-info/sboms/limes.cdx.json", "limes/__init__.py", RECORD]
    )
