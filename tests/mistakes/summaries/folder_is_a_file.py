# Write events into a file instead of a folder.
# refused: building
# got: 'logs'
# expected: not a directory
# fix: cannot write events to the folder

from pathlib import Path

import headrace as hr

Path("logs").write_text("")
writer = hr.summary.FileWriter("logs")  # the mistake
