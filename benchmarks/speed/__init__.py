"""Time a row of exact explanations of tree ensembles, and weigh the memory: limes beside its peers.

A competitor is a file with

    NAME       as the tables call it
    ANSWERS    the question that it answers; competitors with the same one must agree
    PACKAGE    the distribution whose version is reported
    ROWS       rows a call, so many as suit it
    prepare    case -> explain, where explain(rows) gives values (rows, d), or None where they compare with
               nobody's; it imports the package, and raises ``cases.AbsentError`` where the case is not for it
"""
