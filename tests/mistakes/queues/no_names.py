# Read the names of files from an empty list.
# refused: building
# got: got none
# expected: at least one string
# fix: string_input_producer needs

import headrace as hr

found = []
names = hr.train.string_input_producer(found)  # the mistake
