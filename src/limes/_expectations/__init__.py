"""Moments E_w f and Γ of a model under a design, exact or sampled with standard errors.

Threads may share expectations. What a call computes is local to it; shared state is of three kinds:

- values that depend on the parameters alone (cached properties), equal if computed twice;
- caches whose entries are replaced whole and read once (``MomentCache``, tables of ``ExactExpectation``);
- stores behind a lock (tables of ``ForestExpectation``, unfinished rows of ``SampledExpectation``).
"""
