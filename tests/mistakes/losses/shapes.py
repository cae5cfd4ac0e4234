# Compute the squared error of different shapes.
# refused: building
# got: labels [32, 1]
# expected: predictions [32]
# fix: must have one shape

import headrace as hr

labels = hr.zeros([32, 1], name="labels")
predictions = hr.zeros([32], name="predictions")
loss = hr.losses.mean_squared_error(labels, predictions)  # the mistake
