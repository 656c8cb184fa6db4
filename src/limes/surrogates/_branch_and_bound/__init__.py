"""The certified optimum of a sample's problem, by branch and bound on its Gram matrix.

``search.py`` lets two searches take turns: ``pairwise.py`` with the nodes of ``nodes.py`` and the bound of
``kernels/pairwise.cpp``, and ``perspective.py`` with the semidefinite bound of ``relaxation.py``.
"""

from limes.surrogates._branch_and_bound.search import branch_and_bound

__all__ = ["branch_and_bound"]
