# Give one-hot labels where class numbers are expected.
# refused: building
# got: got shape [32, 10]
# expected: labels must be [n]
# fix: softmax_cross_entropy_with_logits takes one-hot labels

import headrace as hr

logits = hr.zeros([32, 10], name="logits")
labels = hr.zeros([32, 10], hr.int32, name="labels")
loss = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)  # the mistake
