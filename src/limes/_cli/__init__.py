"""The command line: ``limes`` and its commands, which ``limes --help`` lists."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line in a process that this one watches: exit code 0 means that it came to its end."""
    from limes._cli.watching import watched

    def run() -> int:
        from limes._cli.program import run  # it imports libraries, whose threads a fork would lose

        return run()

    raise SystemExit(watched(run))
