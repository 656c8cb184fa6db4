"""lime's wrappers of other libraries."""
