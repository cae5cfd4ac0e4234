# Give the cases of case without functions.
# refused: building
# got: got (<Tensor 'Greater:0' bool[]>
# expected: pairs of a condition and a function
# fix: lambda: x

import headrace as hr

x = hr.placeholder(hr.float32, [], name="x")
y = hr.case([(x > 0.0, x), (x < 0.0, -x)])  # the mistake
