# Parse a feature as a dtype that examples do not have.
# refused: building
# got: got int32
# expected: float32, int64, string
# fix: the kinds that examples have

import headrace as hr

features = {"label": hr.FixedLenFeature([], hr.int32)}
found = hr.parse_single_example(hr.constant(b""), features)  # the mistake
