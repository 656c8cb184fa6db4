"""Which diagnostics there are, and for what: a new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from limes.diagnostics.alignment import alignments
from limes.diagnostics.bandwidth import paths
from limes.diagnostics.cancellation import cancellations
from limes.diagnostics.dependence import dependences
from limes.diagnostics.edges import edges
from limes.diagnostics.finding import Reading
from limes.diagnostics.fit import fits
from limes.diagnostics.sample_size import sample_sizes
from limes.diagnostics.scene import Scene
from limes.diagnostics.shrinkage import shrinkages
from limes.diagnostics.subset_scene import SubsetScene
from limes.diagnostics.table_scene import TableScene

# A reading of each row, None where there is nothing to read
Diagnostic = Callable[[Any], Sequence[Reading | None]]

_ANY: Mapping[str, Diagnostic] = {
    "fit": fits,
    "bandwidth": paths,
    "sample size": sample_sizes,
    "shrinkage": shrinkages,
}
_TABLE: Mapping[str, Diagnostic] = {
    "cancellation": cancellations,
    "alignment": alignments,
    "edge": edges,
    "dependence": dependences,
}
KINDS: Mapping[type[Scene], Mapping[str, Diagnostic]] = {
    TableScene: {**_ANY, **_TABLE},
    SubsetScene: _ANY,
}
