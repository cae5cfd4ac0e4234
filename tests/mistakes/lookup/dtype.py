# Look up numbers in a table of words.
# refused: building
# got: got float32
# expected: keys must be string
# fix: as the table's are

from pathlib import Path

import headrace as hr

Path("words.txt").write_text("a\nb\n")
table = hr.lookup.index_table_from_file("words.txt")
ids = table.lookup(hr.constant([1.0, 2.0]))  # the mistake
