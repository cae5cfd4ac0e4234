# Make a queue without room.
# refused: building
# got: got 0
# expected: at least 1
# fix: or -1 for any number

import headrace as hr

queue = hr.FIFOQueue(0, hr.float32)  # the mistake
