# Pass a number in place of thresholds.
# refused: building
# got: got 0.5
# expected: a list of numbers
# fix: thresholds must be

import headrace as hr

labels, scores = [0, 1], [0.1, 0.9]
precision, update = hr.metrics.precision_at_thresholds(labels, scores, 0.5)  # the mistake
