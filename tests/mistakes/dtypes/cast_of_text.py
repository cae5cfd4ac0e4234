# Cast text to numbers.
# refused: building
# got: got string to float32
# expected: strings are not converted by cast
# fix: hr.strings.to_number

import headrace as hr

x = hr.constant(["1", "2"], name="x")
y = hr.cast(x, hr.float32)  # the mistake
