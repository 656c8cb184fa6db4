"""Which cases of tests a whole run leaves to ``make test-deep``."""

from __future__ import annotations

import json

from tools.thin import thinned

from effort import THINNED, evenly, left_out, spread


def test_cases_are_evenly_spread_and_the_longest_left_out():
    assert evenly(10, 3) == {1, 5, 8}
    assert evenly(4, 4) == {0, 1, 2, 3}
    names = {f"a.py::f[{i}]": {"i": i} for i in range(10)} | {"a.py::g": {}, "a.py::h[1]": {"i": 0}}
    excluded = left_out(names, {"kept": {"a.py::f": 2, "b.py::f": 1}, "deep": ["a.py::g", "a.py::f[9]"]})
    assert "a.py::h[1]" not in excluded
    assert {"a.py::g", "a.py::f[9]"} <= excluded
    assert len({name for name in names if name.startswith("a.py::f")} - excluded) == 2


def test_cases_have_every_value_and_then_every_pair():
    cases = [{"a": i, "b": j, "c": k} for i in range(4) for j in range(3) for k in range(2)]
    for kept in range(4, len(cases) + 1):
        chosen = [cases[i] for i in spread(cases, kept)]
        assert len(chosen) == kept
        assert [len({case[name] for case in chosen}) for name in "abc"] == [4, 3, 2]
    chosen = [cases[i] for i in spread(cases, 12)]
    assert len({(case["a"], case["b"]) for case in chosen}) == 12
    assert spread([{"a": i} for i in range(10)], 3) == evenly(10, 3)


def test_every_function_keeps_a_case_unless_its_cases_take_too_long():
    seconds = {**{f"a.py::slow[{i}]": 2.0 for i in range(9)}, "a.py::quick": 0.01, "a.py::hour": 3600.0}
    result = thinned(seconds)
    assert result == {"kept": {"a.py::slow": 1}, "deep": ["a.py::hour"]}


def test_the_file_has_few_cases_that_never_run_in_a_whole_run():
    content = json.loads(THINNED.read_text("utf-8"))
    assert len(content["deep"]) < 200
    assert all(kept >= 1 for kept in content["kept"].values())
