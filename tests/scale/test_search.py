"""The search for rows that end their worker finds exactly these, in a bounded number of trials."""

from __future__ import annotations

import pytest

from internals import _MOST_DEATHS, Part, Unreadable, _Search, exit_text


@pytest.mark.parametrize("rows", [1, 2, 3, 50, 1000])
@pytest.mark.parametrize("killing", [[], [0], [-1], [0, -1], "middle", "all"])
def test_a_search_ends_with_the_rows_that_end_workers(rows, killing):
    wanted = {"middle": {rows // 2}, "all": {*range(rows)}}.get(str(killing)) or {
        row % rows for row in killing
    }
    search, deaths = _Search.of(Part(0, 0, (Unreadable(rows, ""),)), None), 0
    tried = []
    while (task := search.next()).rows is not None:
        tried.append(task.rows)
        assert task.seconds is None
        if wanted & {*task.rows}:
            deaths += 1
            search.add_death(task.rows, 1.0, "exit code 7")
        else:
            search.spent += 1.0
    if len(wanted) <= 2 or rows <= 3:
        assert task.faults.keys() == wanted
        assert set(task.faults.values()) <= {"ModelError: the row alone ends its worker (exit code 7)"}
    else:
        assert wanted <= task.faults.keys()
        assert all("ends its worker (exit code 7)" in text for text in task.faults.values())
    assert deaths <= _MOST_DEATHS + 12


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (0, "exit code 0"),
        (7, "exit code 7"),
        (-9, "signal 9, SIGKILL, as when memory runs out"),
        (-6, "signal 6, SIGABRT"),
    ],
)
def test_an_exit_code_is_described(code, message):
    assert exit_text(code) == message
