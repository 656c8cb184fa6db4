"""Explanations of photographs and reviews beside other libraries, at equal calls."""
