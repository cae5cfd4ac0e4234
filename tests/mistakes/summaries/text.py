# Make a histogram of text.
# refused: building
# got: got string
# expected: a real number
# fix: values must be

import headrace as hr

summary = hr.summary.histogram("words", hr.constant(["a", "b"]))  # the mistake
