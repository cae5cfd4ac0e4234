# Insert an axis where no axis can be.
# refused: building
# got: axis 4
# expected: expected -3 to 2
# fix: is out of range

import headrace as hr

x = hr.zeros([2, 3], name="x")
y = hr.expand_dims(x, 4)  # the mistake
