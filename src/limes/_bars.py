"""Progress bars, which go when the work is done."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any


def progress_bar(total: int, what: str, *, unit: str, shown: bool = True, **options: Any) -> Any:
    """Return tqdm's bar for work that takes more than a second, of notebooks or of terminals."""
    options = {"delay": 1.0, "leave": False, **options}
    return tqdm_class()(total=total, desc=what, unit=unit, disable=not shown, **options)


def tqdm_class() -> Any:
    """Return the bar of this place: text in a notebook without ipywidgets, where tqdm.auto would warn."""
    if "ipykernel" in sys.modules and find_spec("ipywidgets") is None:
        from tqdm.std import tqdm
    else:
        from tqdm.auto import tqdm
    return tqdm
