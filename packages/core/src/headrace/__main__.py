"""``python -m headrace``: what is installed, what works, and what ops there are."""

import sys

from headrace.cli.main import main

sys.exit(main())
