"""Rules: a prediction as a constant and few literals that add up to it, with a certificate.

A leaf: it uses the core, and no room of the core imports it. ``explainer.py`` explains rows: a model is read
(``model.py``), a neighbourhood of literals (``literals.py``, ``neighbourhood.py``) makes a sparse problem
(``problem.py``), solvers solve it (``solvers.py``, with the searches of ``pairwise.py`` and
``perspective.py``), and ``rule.py`` certifies the solution.
"""
