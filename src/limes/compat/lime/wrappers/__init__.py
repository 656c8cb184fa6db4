"""lime's doors to other libraries."""
