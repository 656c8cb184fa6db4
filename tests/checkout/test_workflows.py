"""Workflows of the repository: what they run is fixed, exists, and comes before what is published."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = {
    path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml")
}
TARGETS = re.findall(
    r"^([\w-]+)(?:\s[\w\s-]*)?:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_by_commit_and_state_their_version(name):
    used = re.findall(r"uses: (.*)", WORKFLOWS[name])
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert used
    assert [line for line in used if not pinned.fullmatch(line) and not line.startswith("./")] == []


def test_one_action_has_one_commit():
    pairs = {
        tuple(line.split("@")) for text in WORKFLOWS.values() for line in re.findall(r"uses: (\S+@\S+)", text)
    }
    assert len({action for action, _ in pairs}) == len(pairs)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_tokens_read_alone_unless_a_job_says_more(name):
    assert re.search(r"^permissions:\n  contents: read$", WORKFLOWS[name], re.MULTILINE)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_targets_exist(name):
    assert set(re.findall(r"run: make ([\w-]+)", WORKFLOWS[name])) <= {*TARGETS}


def job(workflow, name):
    (text,) = re.findall(rf"^  {name}:\n((?:    .*\n|\n)+)", WORKFLOWS[workflow], re.MULTILINE)
    return text


def test_a_release_waits_for_the_tests_and_the_site_is_that_of_main():
    assert "needs: [tests, wheels, source]" in job("release.yml", "publish")
    assert "uses: ./.github/workflows/tests.yml" in job("release.yml", "tests")
    assert "workflow_call:" in WORKFLOWS["tests.yml"]
    assert "github.ref == 'refs/heads/main'" in job("docs.yml", "publish")


def test_environments_of_their_own_have_jobs():
    for target in (
        "test-lowest",
        "test-torch",
        "test-spark",
        "test-stores",
        "test-install",
        "test-sdist",
        "test-processors",
        "audit",
    ):
        assert f"run: make {target}\n" in WORKFLOWS["tests.yml"]
