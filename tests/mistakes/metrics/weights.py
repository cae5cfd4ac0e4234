# Weigh values by weights of another shape.
# refused: building
# got: [16, 10]
# expected: [32, 10]
# fix: they must be a scalar, or have as many axes

import headrace as hr

values = hr.zeros([32, 10], name="values")
mean, update = hr.metrics.mean(values, weights=hr.ones([16, 10]))  # the mistake
