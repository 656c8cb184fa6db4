"""What an explanation is: frozen data, how it is checked, picked from, stored, and seen row by row.

``limes.show`` draws it, and is imported when something is drawn (``drawing.py``).
"""

from limes.explanation.explanation import Explanation
from limes.explanation.selection import UnknownNameError

__all__ = ["Explanation", "UnknownNameError"]
