"""One row or text of a function, on a fresh explainer: error and time at equal calls."""
