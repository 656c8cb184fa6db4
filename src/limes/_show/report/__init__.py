"""The interactive report: one page with its numbers and a script of limes; no network."""
