# Compare labels and predictions of different shapes.
# refused: building
# got: [32] and [16]
# expected: must have one shape
# fix: labels and predictions

import headrace as hr

labels = hr.zeros([32], hr.int64, name="labels")
predictions = hr.zeros([16], hr.int64, name="predictions")
accuracy, update = hr.metrics.accuracy(labels, predictions)  # the mistake
