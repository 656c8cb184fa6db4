"""``python -m limes`` is the command line."""

from limes._cli import main

main()
