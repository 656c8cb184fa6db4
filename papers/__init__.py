"""The papers that limes rests on, made again: ``python -m papers`` checks the numbers of their figures."""
