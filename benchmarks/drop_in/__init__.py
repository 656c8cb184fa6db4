"""The drop-in beside ``lime``: the same calls, what they cost outside the model, and altogether.

Each file has ``measure() -> {figure: number}``, which may be nested, and ``GOALS`` in the same shape: the
least that some of the figures should be.
"""
