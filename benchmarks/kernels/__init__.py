"""The compiled kernels beside those of an earlier commit, which numba compiled."""
