"""Black boxes as people have them, by the defaults of limes and of ``lime``: calls, seconds, error."""
