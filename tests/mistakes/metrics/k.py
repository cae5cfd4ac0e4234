# Look among more classes than there are.
# refused: building
# got: got 2
# expected: at least k columns
# fix: k = 3

import headrace as hr

labels, scores = [[1], [0]], [[0.1, 0.9], [0.7, 0.3]]
recall, update = hr.metrics.recall_at_k(labels, scores, 3)  # the mistake
