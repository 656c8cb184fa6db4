"""Tables: requests, the limit, and lime's own law."""
