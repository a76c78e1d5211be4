"""``python -m tfseek`` is the command ``tfseek``."""

import sys

from ._command import main

sys.exit(main())
