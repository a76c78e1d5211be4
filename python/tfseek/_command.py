"""The command ``tfseek``."""

from __future__ import annotations

import signal
import sys

from . import _tfseek


def main() -> int:
    """Runs the command with the arguments of the process."""
    # Ctrl-C ends the command immediately. Python's own handler would wait for Rust to return.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _tfseek.run(["tfseek", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
