# Read a file that holds no records.
# refused: step: files are opened then
# got: record 0 of 'data.tfrecord'
# expected: the checksum of its length
# fix: does not match

from pathlib import Path

import headrace as hr

Path("data.tfrecord").write_text("these are no records at all")
records = list(hr.python_io.tf_record_iterator("data.tfrecord"))  # the mistake
