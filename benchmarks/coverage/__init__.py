"""Whether 95 % intervals of sampled coefficients hold the truth, on functions chosen to break them."""
