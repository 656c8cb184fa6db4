"""Time and memory of a row's exact explanation of tree ensembles: limes beside its peers.

A competitor is a file with

    NAME       as the tables call it
    ANSWERS    the quantity that it computes; competitors with the same one must agree
    PACKAGE    the distribution whose version is reported
    ROWS       rows a call, as many as suit it
    prepare    case -> explain, where explain(rows) gives values (rows, d), or None where no
               competitor has the same values; it imports the package, and raises ``cases.AbsentError`` for a
               case that it does not support
"""
