"""Set the version of all packages: ``python tools/set_version.py 0.2.0``.

The version stands in core's ``version.py``, from which the build of every package reads it. What is
written elsewhere is which siblings a package requires: those of the same minor version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[1] / "packages"
SOURCE = PACKAGES / "core" / "src" / "headrace" / "version.py"
# Three numbers, and what the index calls a pre-release, if any.
VERSION = re.compile(r"(\d+)\.(\d+)\.\d+((a|b|rc)\d+|\.dev\d+)?")


def main(arguments: list[str]) -> int:
    """Write the version that is the only argument; the exit status says whether it was one."""
    number = " ".join(arguments)
    parts = VERSION.fullmatch(number)
    if parts is None:
        sys.stderr.write(
            f"{number!r} is not a version: expected three numbers and at most a suffix, such as "
            "0.2.0 or 0.2.0rc1\n"
        )
        return 1
    pin = f"~={parts[1]}.{parts[2]}.0"
    write(SOURCE, r'(?m)^__version__ = ".*"$', f'__version__ = "{number}"')
    for path in sorted(PACKAGES.glob("*/pyproject.toml")):
        write(path, r'"(headrace-[a-z-]+(?:\[[^]]*\])?)~=[\d.]+"', rf'"\1{pin}"')
    return 0


def write(path: Path, pattern: str, replacement: str) -> None:
    """Replace what matches in a file."""
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(pattern, replacement, text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
