"""The modules and calls of ``lime`` 0.2.0.1 on top of limes.

One call, two engines (:mod:`limes.compat.lime.engines`): "limit" gives what lime converges to, exactly
where the model can be read; "lime" draws lime's own rows and fits lime's own surrogate.
"""

from __future__ import annotations

from limes.compat.lime.engines import ENGINES, engine
from limes.compat.lime.install import install

__all__ = ["ENGINES", "engine", "install"]
