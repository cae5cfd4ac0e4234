# Make a table of a file that is not there.
# refused: step: files are opened then
# got: 'words.txt'
# expected: there is no file
# fix: LookupTableInitializeFromFile

import headrace as hr

table = hr.lookup.index_table_from_file("words.txt")  # the mistake
with hr.Session() as session:
    session.run(hr.tables_initializer())
