# Look up words before the table was initialized.
# refused: step: another step may initialize it
# got: table 'hash_table'
# expected: is not initialized
# fix: hr.tables_initializer()

from pathlib import Path

import headrace as hr

Path("words.txt").write_text("a\nb\n")
table = hr.lookup.index_table_from_file("words.txt")
ids = table.lookup(hr.constant(["a", "c"]))  # the mistake
with hr.Session() as session:
    session.run(ids)
