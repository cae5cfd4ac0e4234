# Assign a value of another shape.
# refused: building
# got: the value [4, 3]
# expected: the variable has shape [3, 4]
# fix: AssignVariable

import headrace as hr

w = hr.Variable(hr.zeros([3, 4]), name="w")
change = w.assign(hr.zeros([4, 3]))  # the mistake
