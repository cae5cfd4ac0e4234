# Pass tensors where functions are expected.
# refused: building
# got: true_fn is <Tensor 'x:0' float32[]>
# expected: expected a function
# fix: lambda: x

import headrace as hr

x = hr.placeholder(hr.float32, [], name="x")
y = hr.cond(x > 0.0, x, -x)  # the mistake
