"""Progress bars: their kind, and that they disappear when the work ends."""

import io
import sys
from importlib.machinery import ModuleSpec

import pytest

from internals import _threads


@pytest.mark.parametrize(
    ("modules", "widgets", "kind"),
    [([], None, "tqdm.auto"), (["ipykernel"], None, "tqdm.std"), (["ipykernel"], "ipywidgets", "tqdm.auto")],
)
def test_a_notebook_without_widgets_has_text(modules, widgets, kind, monkeypatch):
    class Auto:
        pass

    for name in modules:
        monkeypatch.setitem(sys.modules, name, object())
    monkeypatch.setattr("tqdm.auto.tqdm", Auto)
    monkeypatch.setattr(_threads, "find_spec", lambda _: widgets and ModuleSpec(widgets, None))
    assert (_threads.tqdm_class() is Auto) == (kind == "tqdm.auto")


def test_a_bar_disappears_when_the_work_ends():
    lines = io.StringIO()
    with _threads.progress_bar(3, "diagnosing", unit="rows", file=lines, delay=0, mininterval=0) as bar:
        bar.update(2)
        assert "diagnosing:  67%" in lines.getvalue()
        assert "rows" in lines.getvalue()
    assert not lines.getvalue().rstrip("\r").split("\r")[-1].strip()
