# Run a cell over inputs without time steps.
# refused: building
# got: got shape [?, 8]
# expected: 3 dimensions
# fix: [batch, time, features]

import headrace as hr

cell = hr.nn.rnn_cell.BasicLSTMCell(8)
x = hr.placeholder(hr.float32, [None, 8], name="x")
outputs, state = hr.nn.dynamic_rnn(cell, x, dtype=hr.float32)  # the mistake
