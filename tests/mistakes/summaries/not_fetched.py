# Write a summary that was not fetched.
# refused: building
# got: got Tensor
# expected: must be a Summary
# fix: Summary.FromString reads the bytes

import headrace as hr

summary = hr.summary.scalar("loss", 1.0)
writer = hr.summary.FileWriter("logs")
writer.add_summary(summary, 0)  # the mistake
