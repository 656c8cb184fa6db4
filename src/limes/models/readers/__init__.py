"""Readers: from a library's fitted model to a form; ``reading.READERS`` lists them by class."""
