# Make a variable with a size that is not known.
# refused: building
# got: got [None, 10]
# expected: a shape that is fully known
# fix: or an initializer that is a value

import headrace as hr

w = hr.get_variable("w", [None, 10])  # the mistake
