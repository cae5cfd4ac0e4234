# Name an executor that is not there.
# refused: building
# got: got 'fast'
# expected: executor must be
# fix: 'plan' or 'plain'

import headrace as hr

config = hr.Config(executor="fast")  # the mistake
