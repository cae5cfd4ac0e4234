# Make a variable without a shape.
# refused: building
# got: got None
# expected: a shape that is fully known
# fix: or an initializer that is a value

import headrace as hr

w = hr.get_variable("w")  # the mistake
