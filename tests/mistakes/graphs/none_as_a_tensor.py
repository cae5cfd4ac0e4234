# Add what a function forgot to return.
# refused: building
# got: None converts to no tensor
# expected: numbers, booleans and strings
# fix: tensors are made of

import headrace as hr


def layer(x):
    hr.nn.relu(x)


x = hr.zeros([3], name="x")
y = x + layer(x)  # the mistake
