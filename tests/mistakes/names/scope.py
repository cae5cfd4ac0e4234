# Open a scope whose name is a number.
# refused: building
# got: got 3
# expected: a name is a string
# fix: without a colon, and not empty

import headrace as hr

with hr.name_scope(3):  # the mistake
    x = hr.constant(1.0)
