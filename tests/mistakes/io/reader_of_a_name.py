# Give a reader the name of a file.
# refused: building
# got: got 'lines.txt'
# expected: takes its work from a queue
# fix: string_input_producer makes a queue

import headrace as hr

reader = hr.TextLineReader()
key, line = reader.read("lines.txt")  # the mistake
