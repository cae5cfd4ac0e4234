"""``python -m headrace_train.checkpoint``."""

from __future__ import annotations

import sys

from headrace_train.checkpoint.cli import main

if __name__ == "__main__":
    sys.exit(main())
