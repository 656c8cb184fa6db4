"""The certified optimum of a sample's problem, by branch and bound on its Gram matrix.

``search.py`` is the search, ``nodes.py`` the nodes and the order in which they go, ``kernels/pairwise.cpp``
and ``perspective.py`` are the two lower bounds.
"""

from limes.surrogates.branch_and_bound.search import branch_and_bound

__all__ = ["branch_and_bound"]
