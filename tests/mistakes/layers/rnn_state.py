# Start a cell from no state, and without a dtype.
# refused: building
# got: a recurrent network
# expected: needs
# fix: initial_state or dtype

import headrace as hr

cell = hr.nn.rnn_cell.GRUCell(8)
x = hr.placeholder(hr.float32, [None, 5, 8], name="x")
outputs, state = hr.nn.dynamic_rnn(cell, x)  # the mistake
