# Read a file that is not there.
# refused: step: files are opened then
# got: 'nosuch.txt'
# expected: cannot read
# fix: No such file or directory

import headrace as hr

element = hr.data.TextLineDataset("nosuch.txt").make_one_shot_iterator().get_next()  # the mistake
with hr.Session() as session:
    session.run(element)
