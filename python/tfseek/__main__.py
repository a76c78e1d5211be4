"""``python -m tfseek`` runs the command."""

import sys

from _tfseek_command import main

sys.exit(main())
