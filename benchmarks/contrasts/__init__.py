"""Contrasts with a proof or the gap, beside an optimiser that looks for a cheaper one, and enumeration."""
