"""Probabilities behind a link: speed and error beside sampling."""
