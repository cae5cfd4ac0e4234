"""Files: those of the user's own, which hold code that runs, and those that end when read."""

from headrace.private_files import (
    SharedFileError,
    check_private,
    read_private,
    write_private,
)
from headrace.regular_files import is_device, open_regular

__all__ = [
    "SharedFileError",
    "check_private",
    "is_device",
    "open_regular",
    "read_private",
    "write_private",
]
