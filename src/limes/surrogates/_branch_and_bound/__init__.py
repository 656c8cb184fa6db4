"""The certified optimum of a sample's problem, by branch and bound on its Gram matrix.

``search.py`` is the search, ``nodes.py`` the nodes, the order in which they go and one lower bound;
``kernels/pairwise.cpp`` is the other.
"""

from limes.surrogates._branch_and_bound.search import branch_and_bound

__all__ = ["branch_and_bound"]
