"""Prints the differences that are neither explained nor known gaps; ``--all`` prints all."""

from __future__ import annotations

import sys

import headrace

from .compare import differences, gaps, reasons, recorded

if __name__ == "__main__":
    everything = "--all" in sys.argv
    known, lacking = ([], set()) if everything else (reasons(), gaps())
    for difference in differences(headrace, recorded()):
        explained = any(reason.explains(difference) for reason in known)
        if not explained and str(difference) not in lacking:
            sys.stdout.write(f"{difference}\n")
