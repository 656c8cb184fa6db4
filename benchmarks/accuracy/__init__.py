"""Error of all coefficients at equal model calls: limes beside ``lime``, and each control of limes by itself.

Both answer the same question: quartile bins, weights that count changed bins, the same bandwidth. A
competitor is a file with

    NAME       as the tables call it
    prepare    (case, bandwidth) -> explain, where explain(calls, seed) gives a ``sample.Sample``
"""
