"""The drop-in beside ``lime``: the same calls, what they cost outside the model, and altogether.

Each file has ``measure() -> {figure: number}`` and ``GOALS``, the least that some of the figures should be.
"""
