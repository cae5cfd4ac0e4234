# Export into a folder that has files.
# refused: building
# got: the folder export is not empty
# expected: another one
# fix: or delete what is in it

from pathlib import Path

import headrace as hr

Path("export").mkdir()
Path("export/notes.txt").write_text("mine")
builder = hr.saved_model.Builder("export")  # the mistake
