"""How an explanation is shown: terminal, HTML, plots, JSON, data frame.

Every module draws the explanation it is given and is imported when it is first called, so that
explaining loads no plotting, table or template library.
"""
