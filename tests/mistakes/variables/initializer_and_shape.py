# Give a shape beside an initial value.
# refused: building
# got: variable 'w'
# expected: its initializer is a value, which has a shape
# fix: leave shape out

import headrace as hr

w = hr.get_variable("w", [2], initializer=[1.0, 2.0])  # the mistake
