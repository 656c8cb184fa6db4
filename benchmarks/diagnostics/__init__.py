"""What limes.diagnose finds on real tables, and how long it takes."""
