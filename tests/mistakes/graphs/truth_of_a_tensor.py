# Branch on a tensor as if it had a value.
# refused: building
# got: 'Greater:0'
# expected: has no truth value while the graph is built
# fix: hr.where, hr.cond

import headrace as hr

x = hr.placeholder(hr.float32, [], name="x")
if x > 0.0:  # the mistake
    x = -x
