# Add tensors of two graphs.
# refused: building
# got: 'x:0'
# expected: the default one
# fix: build with it inside 'with graph.as_default():'

import headrace as hr

with hr.Graph().as_default():
    x = hr.constant(1.0, name="x")
y = hr.constant(2.0, name="y")
z = x + y  # the mistake
