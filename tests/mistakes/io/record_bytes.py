# Read records of no bytes.
# refused: building
# got: got 0
# expected: record_bytes must be >= 1
# fix: FixedLengthRecordReader: record_bytes

import headrace as hr

reader = hr.FixedLengthRecordReader(record_bytes=0)  # the mistake
