"""lime's helpers."""
