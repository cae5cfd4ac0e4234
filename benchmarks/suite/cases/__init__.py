"""The cases by kind: each module has some as ``CASES``.

To add a case, add it to a module's tuple; to add a kind, add a module. The programs get the library
as an argument, so that nothing here imports any.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from benchmarks.suite.case import Case


@functools.cache
def all_cases() -> dict[str, Case]:
    """Return all cases by name, in the order of the modules' names.

    Raises:
        ValueError: if two cases have one name.
    """
    found: dict[str, Case] = {}
    for info in pkgutil.iter_modules(__path__, f"{__name__}."):
        cases: tuple[Case, ...] = importlib.import_module(info.name).CASES
        for case in cases:
            if case.name in found:
                raise ValueError(f"two cases of the suite are named {case.name!r}; rename one")
            found[case.name] = case
    return found
