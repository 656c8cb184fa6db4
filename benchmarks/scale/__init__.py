"""Long tables: what engines add to the direct call, how time grows with rows, and where the memory is."""
