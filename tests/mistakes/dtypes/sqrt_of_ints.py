# Take the square root of integers.
# refused: building
# got: got int32
# expected: floating or complex
# fix: convert it with hr.cast

import headrace as hr

n = hr.constant(16, name="n")
y = hr.sqrt(n)  # the mistake
