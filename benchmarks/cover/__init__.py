"""Rules that cover a table, beside draws that look for what contradicts them."""
