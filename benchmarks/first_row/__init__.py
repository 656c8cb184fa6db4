"""The first row of a function, in a new process with default options, of 10 to 10,000 columns."""
