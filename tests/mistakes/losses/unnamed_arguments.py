# Give logits and labels without their names.
# refused: building
# got: call
# expected: labels=..., logits=...
# fix: both by name

import headrace as hr

logits = hr.zeros([32, 10], name="logits")
labels = hr.zeros([32], hr.int32, name="labels")
loss = hr.nn.sparse_softmax_cross_entropy_with_logits(logits, labels)  # the mistake
