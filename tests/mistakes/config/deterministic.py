# Ask for equal bits where results depend on the order of work.
# refused: building
# got: got 'yes'
# expected: deterministic must be
# fix: True or False

import headrace as hr

config = hr.Config(deterministic="yes")  # the mistake
