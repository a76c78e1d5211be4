"""The command ``tfseek``.

It is beside the package ``tfseek``, not in it, because that imports NumPy, which takes longer than most commands. Both are in one native file.
"""

from __future__ import annotations

import _signal  # `signal` imports `enum`, which takes longer than all of this.
import os
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder


def main() -> int:
    """Runs the command with the arguments of the process."""
    # Ctrl-C ends the command immediately. Python's own handler would wait for Rust to return.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tfseek")
    native = PathFinder.find_spec("_tfseek", [folder])
    if native is None or native.origin is None:
        raise ImportError(f"{folder}: expected the native module of tfseek")
    loader = ExtensionFileLoader("_command", native.origin)
    module = loader.create_module(ModuleSpec("_command", loader, origin=native.origin))
    loader.exec_module(module)
    return module.run(["tfseek", *sys.argv[1:]])  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
