"""Diagnostics of explanations: findings with a number, a sentence and advice."""
