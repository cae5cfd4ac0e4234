# Ask for no threads.
# refused: building
# got: got 0
# expected: a positive integer
# fix: or None for all cores

import headrace as hr

config = hr.Config(threads=0)  # the mistake
