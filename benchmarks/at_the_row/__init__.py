"""Whether rows that mislead are warned of, and whether suggested designs miss rows less."""
