# Compare logits with labels of another shape.
# refused: building
# got: labels [32, 9]
# expected: logits [32, 10]
# fix: must have one shape

import headrace as hr

logits = hr.zeros([32, 10], name="logits")
labels = hr.zeros([32, 9], name="labels")
loss = hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)  # the mistake
