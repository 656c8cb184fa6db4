"""How often 95 % intervals of rows that share a pool hold the truth, and those of differences of two rows."""
