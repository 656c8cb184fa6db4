"""The limit of lime's own explanations, whose rows have numbers between whole ones, whatever the model is."""

from __future__ import annotations

from limes._explainers.tabular import TabularExplainer


class LimeLimit(TabularExplainer):
    """As :class:`limes.TabularExplainer`, by lime's law for columns of few whole numbers, too."""

    _keeps_whole = False
