"""Images: requests, results, the limit, and lime's own law."""
