"""Warnings of rows whose surrogate misleads, and misses of suggested designs."""
