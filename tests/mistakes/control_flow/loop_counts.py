# Return too few loop variables.
# refused: building
# got: got [<Tensor 'while/add:0' int32[]>]
# expected: of which there are 2
# fix: body must return

import headrace as hr

y = hr.while_loop(lambda i, s: i < 9, lambda i, s: i + 1, [0, 0.0])  # the mistake
