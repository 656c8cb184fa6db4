"""Explanations: frozen data, its validation, selection and storage, and views row by row.

``limes._show`` draws it, and is imported when something is drawn (``drawing.py``).
"""

from limes._explanation.explanation import Explanation
from limes._explanation.selection import UnknownNameError

__all__ = ["Explanation", "UnknownNameError"]
