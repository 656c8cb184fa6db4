"""Rules that hold, beside anchors and rules of least squares."""
