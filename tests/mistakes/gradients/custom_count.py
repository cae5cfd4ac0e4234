# Return too few gradients from a rule of one's own.
# refused: building
# got: returned 1 gradients
# expected: 2 arguments
# fix: grad_fn of product

import headrace as hr


@hr.custom_gradient
def product(x, y):
    return x * y, lambda g: g * y


x = hr.placeholder(hr.float32, [3], name="x")
g = hr.gradients(product(x, x + 1.0), x)  # the mistake
