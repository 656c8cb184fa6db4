"""Contributions from 32 to 300 calls: prompts, logs of probabilities, and sentences of reviews."""
