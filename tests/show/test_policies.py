"""Code and files that pages may load, as SECURITY.md states: by policies, scripts and references."""

from __future__ import annotations

import base64
import hashlib
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import limes

HOSTILE = "</script><script src=//evil.example></script>"
X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", HOSTILE])
PAGES = {
    "to_html": lambda e: e.to_html(),
    "one row": lambda e: e[0].to_html(),
    "decision": lambda e: limes.decision_page(e[0]),
    "diagnosis": lambda e: limes.diagnose(e).to_html(),
    "report": lambda e: e.to_report(),
    "notebook": lambda e: e._repr_html_(),
    "notebook, diagnosis": lambda e: limes.diagnose(e)._repr_html_(),
}
SCRIPT = re.compile(r"<script([^>]*)>(.*?)</script>", re.DOTALL)


@pytest.fixture(scope="module")
def pages():
    explanation = limes.TabularExplainer(LinearRegression().fit(X, X["a"]), X)(X[:2])
    return {name: page(explanation) for name, page in PAGES.items()}


def policy(page):
    """Sources by directive, {} without a policy."""
    stated = re.findall(r'http-equiv="Content-Security-Policy"\s+content="([^"]*)"', page)
    assert len(stated) <= 1
    return dict(directive.split(" ", 1) for text in stated for directive in re.split(r";\s*", text))


@pytest.mark.parametrize("name", [name for name in PAGES if name != "report"])
def test_only_the_report_has_a_script(pages, name):
    assert "<script" not in pages[name]
    assert not re.search(r"\son\w+\s*=|javascript:", pages[name])


@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith("notebook")])
def test_policies_forbid_the_network(pages, name):
    stated = policy(pages[name])
    assert stated.pop("default-src") == "'none'"
    allowed = {source for sources in stated.values() for source in sources.split()}
    assert {source for source in allowed if not source.startswith("'sha256-")} <= {
        "data:",
        "'none'",
        "'unsafe-inline'",
    }
    assert stated.get("script-src", "'none'") != "'unsafe-inline'"


@pytest.mark.parametrize("name", PAGES)
def test_no_page_refers_to_another(pages, name):
    references = re.findall(r'\s(?:src|srcset|href|action|poster)="([^"]*)"|url\(([^)]*)\)', pages[name])
    assert [r for r in references if not "".join(r).strip("'\"").startswith(("#", "data:"))] == []


def test_a_page_in_a_notebook_has_the_policy_of_the_notebook(pages):
    assert policy(pages["notebook"]) == policy(pages["notebook, diagnosis"]) == {}


def test_the_report_runs_one_script_which_its_policy_names_by_hash(pages):
    scripts = SCRIPT.findall(pages["report"])
    code = [text for attributes, text in scripts if "type=" not in attributes]
    data = [attributes for attributes, _ in scripts if "type=" in attributes]
    assert len(code) == 1
    assert set(re.findall(r'type="([^"]*)"', " ".join(data))) <= {"application/json", "text/plain"}
    digest = base64.b64encode(hashlib.sha256(code[0].encode()).digest()).decode()
    assert policy(pages["report"])["script-src"] == f"'sha256-{digest}'"
    assert "evil.example" not in code[0]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", code[0])
