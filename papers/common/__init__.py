"""Parts that the reproduced papers share: LIME's own sampling, pictures of it, and expected numbers."""
