"""The recipe of conda-forge has the version, the requirements and the licence files of pyproject.toml."""

import re
import tomllib
from pathlib import Path

import limes

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# conda-forge's name of a library without its optional parts
NAMES = {"matplotlib": "matplotlib-base"}


def listed(kind):
    """Requirements of one kind, without spaces."""
    requirements = RECIPE.split("\nrequirements:\n")[1].split("\ntests:\n")[0]
    its = re.split(r"\n  (?=\w)", requirements)
    (lines,) = (text for text in its if text.strip().startswith(f"{kind}:"))
    return {re.sub(r"\s", "", line.strip()[2:]) for line in lines.splitlines()[1:] if line.strip()}


def named(requirement):
    name, version = re.fullmatch(r"([\w-]+)(>=.*)", requirement).groups()
    return NAMES.get(name, name) + version


def test_it_needs_what_the_package_needs():
    assert listed("run") == {"python", *map(named, PYPROJECT["project"]["dependencies"])}
    assert listed("host") == {"python", "pip", *PYPROJECT["build-system"]["requires"]}


def test_it_is_of_this_version_and_python():
    assert f'version: "{limes.__version__}"' in RECIPE
    assert PYPROJECT["project"]["requires-python"] == ">=3.11"
    assert 'python_min: "3.11"' in RECIPE


def test_it_has_the_licences_and_the_command():
    for path in PYPROJECT["project"]["license-files"]:
        assert f"- {path.removesuffix('*.txt')}\n" in RECIPE
    assert f"- limes = {PYPROJECT['project']['scripts']['limes']}\n" in RECIPE
