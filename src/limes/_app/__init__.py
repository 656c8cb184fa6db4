"""A page for what-if questions: move a row's values, see its explanation change.

`session.py` answers the page's questions by the public explainers, `server.py` serves them behind a token on
the loopback interface. ``static/`` is the page, which builds every element from text alone.
"""

from limes._checks import require

__all__: list[str] = []  # `server.serve` is what the command line calls

for library in ("starlette", "uvicorn"):
    require(library, "limes app", package="'limes[app]'")
