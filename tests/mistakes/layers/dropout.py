# Keep the share of dropout that is to be dropped.
# refused: building
# got: got 1.5
# expected: (0, 1]
# fix: keep_prob, what is kept

import headrace as hr

x = hr.placeholder(hr.float32, [None, 10], name="x")
y = hr.nn.dropout(x, keep_prob=1.5)  # the mistake
