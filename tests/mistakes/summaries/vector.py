# Summarize a vector as a scalar.
# refused: building
# got: != [3]
# expected: takes one number
# fix: hr.reduce_mean(values)

import headrace as hr

losses = hr.zeros([3], name="losses")
summary = hr.summary.scalar("losses", losses)  # the mistake
