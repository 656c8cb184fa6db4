"""Black boxes as people have them, explained by the defaults of limes and of ``lime``: calls, seconds, error."""
