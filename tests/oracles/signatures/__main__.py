"""Prints the differences that no reason explains; ``--all`` prints all of them."""

from __future__ import annotations

import sys

import headrace

from .compare import differences, reasons, recorded

if __name__ == "__main__":
    known = [] if "--all" in sys.argv else reasons()
    for difference in differences(headrace, recorded()):
        if not any(reason.explains(difference) for reason in known):
            sys.stdout.write(f"{difference}\n")
