# List a variable twice.
# refused: building
# got: listed twice
# expected: v
# fix: list each once

import headrace as hr

v = hr.Variable(1.0, name="v")
saver = hr.train.Saver([v, v])  # the mistake
