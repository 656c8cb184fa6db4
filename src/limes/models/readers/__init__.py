"""Readers: a library's fitted object becomes a form; ``registry.py`` says which reads what."""
