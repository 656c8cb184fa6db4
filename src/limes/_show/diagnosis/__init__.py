"""Drawings of a diagnosis: terminal, HTML, plots; nothing here calls a model."""
