"""Texts: limes and ``lime`` on the same reviews and models; the same answer, and what it costs."""
