"""The findings of limes.diagnose on real tables, and its time."""
