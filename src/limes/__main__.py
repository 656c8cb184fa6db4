"""``python -m limes`` is the command line."""

from limes.cli import main

main()
