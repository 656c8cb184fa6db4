"""Tables: their columns, their laws and literals, and models bound to them."""
