"""``python -m tfseek`` runs the command ``tfseek``."""

import sys

from ._command import main

sys.exit(main())
