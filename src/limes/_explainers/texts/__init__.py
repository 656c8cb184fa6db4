"""Texts: their words, and models bound to one text."""
