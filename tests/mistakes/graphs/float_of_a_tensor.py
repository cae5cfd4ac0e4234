# Convert a tensor to a Python float.
# refused: building
# got: 'loss:0'
# expected: is no number while the graph is built
# fix: Fetch it with session.run

import headrace as hr

loss = hr.reduce_mean(hr.constant([1.0, 2.0]), name="loss")
print("loss:", float(loss))  # the mistake
