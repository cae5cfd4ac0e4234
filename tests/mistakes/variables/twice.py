# Make a variable that is there already.
# refused: building
# got: variable 'w' exists already
# expected: to share it
# fix: reuse=hr.AUTO_REUSE

import headrace as hr

w = hr.get_variable("w", [3, 4])
again = hr.get_variable("w", [3, 4])  # the mistake
