# Assign to what is no variable.
# refused: building
# got: got <Tensor 'w:0' float32[3]>
# expected: expected a Variable
# fix: make it with hr.Variable

import headrace as hr

w = hr.zeros([3], name="w")
change = hr.assign(w, [1.0, 2.0, 3.0])  # the mistake
