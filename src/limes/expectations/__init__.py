"""Γ, and how sure of it one is."""
